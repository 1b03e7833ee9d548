"""Of how much time an expression speaks (SANY's levels), and what it reads, through all definitions."""

from __future__ import annotations

from collections.abc import Container, Mapping
from enum import IntEnum

from . import tree
from .modules import Program

_TEMPORAL = ("[]", "<>", "~>", "-+->")


class Level(IntEnum):
    """What an expression needs to have a value; each level includes those before it."""

    CONSTANT = 0
    STATE = 1
    ACTION = 2
    """Two states: a step."""
    TEMPORAL = 3
    """A whole behaviour."""


class Levels:
    """The levels of a program's expressions.

    :param replaced: ``name <- other`` of the config.
    :param constants: names that have a value, whatever their definitions say.
    """

    def __init__(self, program: Program, replaced: Mapping[str, str], constants: Container[str]) -> None:
        self._program = program
        self._replaced = replaced
        self._constants = constants

    def of(self, node: tree.Node) -> Level:
        """The level of an expression."""
        return self._reach(node)[0]

    def variables(self, node: tree.Node) -> frozenset[str]:
        """The variables that an expression may read, primed or not."""
        return frozenset(self._reach(node)[1].intersection(self._program.variables))

    def constants(self, node: tree.Node) -> frozenset[str]:
        """The declared constants that an expression may read."""
        return frozenset(self._reach(node)[1].intersection(self._program.constants))

    def _reach(self, node: tree.Node) -> tuple[Level, set[str]]:
        """The level of an expression, and all names in it and in the definitions that it uses."""
        highest = Level.CONSTANT
        names: set[str] = set()
        stack: list[tuple[tree.Node, bool]] = [(node, False)]
        seen: set[tuple[str, bool]] = set()
        while stack:
            current, enabled = stack.pop()
            level = _own_level(current)
            if isinstance(current, tree.Name):
                name = self._replaced.get(current.name, current.name)
                names.add(name)
                if name in self._program.variables:
                    level = Level.STATE
                elif name in self._program.definitions and name not in self._constants and (name, enabled) not in seen:
                    seen.add((name, enabled))
                    stack.append((self._program.definitions[name], enabled))
            # Below an ENABLED stand steps, of which it says in one state whether there is one.
            enabled = enabled or (isinstance(current, tree.Apply) and current.operator.name == "ENABLED")
            highest = max(highest, min(level, Level.STATE) if enabled else level)
            stack.extend((child, enabled) for child in tree.children(current))
        return highest, names


def _own_level(node: tree.Node) -> Level:
    if isinstance(node, (tree.Fairness, tree.TemporalQuantifier)):
        return Level.TEMPORAL
    if isinstance(node, (tree.Prime, tree.ActionBox)):
        return Level.ACTION
    if isinstance(node, tree.Name):
        if node.name in _TEMPORAL:
            return Level.TEMPORAL
        return Level.ACTION if node.name == "UNCHANGED" else Level.CONSTANT
    return Level.CONSTANT


__all__ = ["Level", "Levels"]
