"""The three functions by which the language is used alone."""

from __future__ import annotations

from collections.abc import Iterable

from . import tree
from .config import Config, parse_config
from .errors import TlaConfigError
from .evaluate import Evaluator, Step
from .modules import load_text
from .parse import parse_module
from .show_values import show
from .values import Value, concrete

__all__ = ["evaluate", "parse", "show"]

_RESULT = "specwatch_result"


def parse(text: str) -> tree.Module:
    """The tree of a module; syntax only.

    :raises TlaSyntaxError: the text is no module.
    """
    return parse_module(text)


def evaluate(expression: str, *, extends: Iterable[str] = (), definitions: str = "", config: str = "") -> Value:
    """What a constant expression is worth (:mod:`.values` says what values are in Python).

    :param extends: standard modules; without one there is not even ``+``.
    :param definitions: the text of definitions and declarations that the expression uses.
    :param config: the text of a .cfg that gives the declared constants their values.
    :raises TlaError: any of its kinds.
    """
    names = ", ".join(extends)
    header = f"---- MODULE Expression ----\n{f'EXTENDS {names}' if names else ''}\n{definitions}\n"
    program = load_text(f"{header}{_RESULT} == {expression}\n====\n", "<expression>")
    given = parse_config(config) if config else Config()
    for name, parameter in program.constants.items():
        if name not in given.constants and name not in given.replacements:
            raise TlaConfigError(f"the constant {name} has no value", parameter.span, hint=f"CONSTANT {name} = …")
    evaluator = Evaluator(program, given.constants, {name: target.name for name, target in given.replacements.items()})
    result = program.definitions[_RESULT]
    assert isinstance(result, tree.Definition)  # it is the one that was just written
    return evaluator.guarded(lambda: concrete(evaluator.value(result.body, {}, Step({}))))
