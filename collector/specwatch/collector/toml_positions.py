"""Where the keys of a TOML text stand. ``tomllib`` reads values and forgets positions; an error needs them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

Path = tuple[str | int, ...]
"""The way to a value: names of keys and, inside arrays, numbers from 0."""

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}\n#]*")


def positions(text: str) -> Mapping[Path, int]:
    """The offset of each key and of each element of an array. The text must be TOML that ``tomllib`` has read."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.found


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, int] = {}
        self.arrays: dict[Path, int] = {}
        """The number of the last table of each array of tables."""

    def document(self) -> None:
        table: Path = ()
        while self._skip(_SPACE) < len(self.text):
            if self.text.startswith("[[", self.at):
                self.at += 2
                *parents, last = self._keys()
                array = (*self._resolved([name for name, _ in parents]), last[0])
                self.arrays[array] = self.arrays.get(array, -1) + 1
                table = (*array, self.arrays[array])
                self._note(array, last[1])
                self._note(table, last[1])
                self._after("]]")
            elif self.text.startswith("[", self.at):
                self.at += 1
                keys = self._keys()
                for count in range(1, len(keys) + 1):
                    self._note(self._resolved([name for name, _ in keys[:count]]), keys[count - 1][1])
                table = self._resolved([name for name, _ in keys])
                self._after("]")
            else:
                self._pair(table)

    def _pair(self, table: Path) -> None:
        path = table
        for name, offset in self._keys():
            path = (*path, name)
            self._note(path, offset)
        self._after("=")
        self._skip(_BLANK)
        self._value(path)

    def _value(self, path: Path) -> None:
        if self.text.startswith("{", self.at):
            self.at += 1
            while self._skip(_SPACE) < len(self.text) and self.text[self.at] != "}":
                self._pair(path)
                self._skip(_SPACE)
                self.at += self.text.startswith(",", self.at)
            self.at += 1
        elif self.text.startswith("[", self.at):
            self.at += 1
            number = 0
            while self._skip(_SPACE) < len(self.text) and self.text[self.at] != "]":
                self._note((*path, number), self.at)
                self._value((*path, number))
                number += 1
                self._skip(_SPACE)
                self.at += self.text.startswith(",", self.at)
            self.at += 1
        elif string := _STRING.match(self.text, self.at):
            self.at = string.end()
        else:
            self._skip(_SCALAR)

    def _keys(self) -> list[tuple[str, int]]:
        keys: list[tuple[str, int]] = []
        while True:
            self._skip(_BLANK)
            if bare := _BARE.match(self.text, self.at):
                keys.append((bare[0], self.at))
                self.at = bare.end()
            elif quoted := _STRING.match(self.text, self.at):
                keys.append((_unquoted(quoted[0]), self.at))
                self.at = quoted.end()
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return keys
            self.at += 1

    def _resolved(self, names: list[str]) -> Path:
        """A header's names with the numbers of the arrays of tables on the way."""
        path: Path = ()
        for name in names:
            path = (*path, name)
            if path in self.arrays:
                path = (*path, self.arrays[path])
        return path

    def _note(self, path: Path, offset: int) -> None:
        self.found.setdefault(path, offset)

    def _skip(self, what: re.Pattern[str]) -> int:
        match = what.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return self.at

    def _after(self, token: str) -> None:
        """Never past the next line, so that a surprise here costs one position and not all that follow."""
        found = self.text.find(token, self.at)
        self.at = found + len(token) if found >= 0 else len(self.text)


def _unquoted(text: str) -> str:
    # A quoted key is written as a text is; the escapes are TOML's own.
    return str(tomllib.loads(f"key = {text}")["key"])
