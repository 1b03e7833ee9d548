"""From a file to a program: the module, what it EXTENDS, and what each name means.

A module is looked for beside the file that names it, then among the standard modules. SANY's rule that a file is named
after its module holds for every file.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field
from pathlib import Path

from . import tree
from .builtins import MODULES, Builtin
from .errors import TlaSemanticError, TlaSyntaxError
from .parse import parse_module


@dataclass(slots=True)
class Program:
    """A root module with all that it extends, flattened: ``modules`` has the extended ones first and the root last."""

    root: tree.Module
    modules: list[tree.Module] = field(default_factory=list)
    standard: list[str] = field(default_factory=list)
    """Names of the standard modules that are reached, each once."""
    constants: dict[str, tree.Parameter] = field(default_factory=dict)
    variables: dict[str, tree.Parameter] = field(default_factory=dict)
    definitions: dict[str, tree.Definition | tree.FunctionDefinition] = field(default_factory=dict)
    builtins: dict[str, Builtin] = field(default_factory=dict)
    assumptions: list[tree.Assume] = field(default_factory=list)
    recursive: set[str] = field(default_factory=set)
    instances: list[tree.Instance] = field(default_factory=list)


def load(path: str | os.PathLike[str]) -> Program:
    """Parses a file and all that it extends, and checks names.

    :raises TlaSyntaxError: no TLA+, a missing or circular module, or a file that is not named after its module.
    :raises TlaSemanticError: an undefined name, a wrong arity, a name defined twice.
    :raises OSError: the file cannot be read.
    """
    return load_text(read_text(Path(path)), str(path))


def read_text(path: Path) -> str:
    """A source file's text, its line ends untouched; what is not UTF-8 becomes U+FFFD, and an error only where it
    matters.
    """
    return path.read_bytes().decode("utf-8", errors="replace").removeprefix("\ufeff")


def load_text(text: str, path: str) -> Program:
    """Like :func:`load`, for a text that is not (or no longer) what the file holds."""
    from . import names

    root = parse_module(text, path)
    _check_file_name(root, path)
    program = Program(root)
    _extend(program, root, Path(path).parent, {}, ())
    names.check(program)
    return program


def _check_file_name(module: tree.Module, path: str) -> None:
    stem = Path(path).name
    if stem.endswith(".tla") and stem != f"{module.name}.tla":
        raise TlaSyntaxError(
            f"the file {stem} holds the module {module.name}",
            module.span,
            hint=f"a module stands in a file of its name: {module.name}.tla",
        )


def _extend(program: Program, module: tree.Module, folder: Path, seen: dict[str, bool], path: tuple[str, ...]) -> None:
    """Adds what a module extends, depth first, and then the module. ``seen`` is False for a module not yet finished."""
    seen[module.name] = False
    for extended in module.extends:
        name = extended.name
        finished = seen.get(name)
        if finished is False:
            circle = " → ".join((*path, module.name, name))
            raise TlaSyntaxError(f"the modules extend each other in a circle: {circle}", extended.span)
        if finished:
            continue
        file = folder / f"{name}.tla"
        if file.is_file():
            other = parse_module(read_text(file), str(file))
            _check_file_name(other, str(file))
            _extend(program, other, folder, seen, (*path, module.name))
        elif name in MODULES:
            _add_standard(program, name)
            seen[name] = True
        else:
            near = difflib.get_close_matches(name, [*MODULES, *(found.stem for found in folder.glob("*.tla"))], 3)
            hint = (
                f"did you mean {' or '.join(near)}?"
                if near
                else f"there is no {name}.tla in {folder or '.'}, and no standard module of that name here"
            )
            raise TlaSyntaxError(f"the module {name} is not found", extended.span, hint=hint)
    seen[module.name] = True
    program.modules.append(module)
    for unit in module.units:
        _add_unit(program, unit)


def _add_standard(program: Program, name: str) -> None:
    if name in program.standard:
        return
    module = MODULES[name]
    for extended in module.extends:
        _add_standard(program, extended)
    program.standard.append(name)
    for operator, builtin in module.operators.items():
        program.builtins.setdefault(operator, builtin)


def _add_unit(program: Program, unit: tree.Unit) -> None:
    if isinstance(unit, tree.Constants):
        program.constants.update({parameter.name: parameter for parameter in unit.declarations})
    elif isinstance(unit, tree.Variables):
        program.variables.update({parameter.name: parameter for parameter in unit.declarations})
    elif isinstance(unit, (tree.Definition, tree.FunctionDefinition)):
        program.definitions.setdefault(unit.name, unit)
    elif isinstance(unit, tree.Assume):
        program.assumptions.append(unit)
    elif isinstance(unit, tree.Recursive):
        program.recursive.update(parameter.name for parameter in unit.declarations)
    elif isinstance(unit, tree.Instance):
        program.instances.append(unit)


def refuse_instances(program: Program) -> None:
    """What parses and cannot be evaluated yet is refused before anything is computed, with its place."""
    for instance in program.instances:
        raise TlaSemanticError(
            "INSTANCE parses, and cannot be evaluated yet",
            instance.span,
            hint=f"EXTENDS {instance.module}, where no name clashes",
        )
