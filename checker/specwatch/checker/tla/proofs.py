"""The steps of a proof. Proofs are read and skipped, but their steps must nest as SANY wants (``correctLevel``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .errors import TlaSyntaxError
from .source import Span


@dataclass(frozen=True, slots=True)
class ProofPart:
    """``PROOF``; an ``END`` (OBVIOUS, OMITTED, BY …); a ``CLAIM``, which takes a proof; ``QED``; any other ``STEP``."""

    kind: Literal["PROOF", "END", "CLAIM", "QED", "STEP"]
    span: Span


_LEVEL = re.compile(r"<([0-9]+|[+*])>")


def check_proof(parts: Sequence[ProofPart]) -> None:
    """Raises TlaSyntaxError at a step of a wrong level, a proof of what takes none, and a proof without its QED."""
    levels: list[int | None] = []  # the level of each open proof; None before its first step
    after_qed: list[bool] = []
    takes_proof = True
    after_keyword = False
    for part in parts:
        if part.kind == "PROOF":
            if not takes_proof or after_keyword:
                raise TlaSyntaxError("`PROOF` stands where no proof begins", part.span)
            after_keyword = True
            continue
        if part.kind == "END":
            if not takes_proof:
                raise TlaSyntaxError("This is the proof of a step that takes none", part.span)
            takes_proof = after_keyword = False
            continue
        match = _LEVEL.match(part.span.text)
        assert match is not None  # the scanner makes no other step
        written = match[1]
        if _begins_proof(written, levels) or after_keyword:
            if not takes_proof:
                raise TlaSyntaxError("This begins the proof of a step that takes none", part.span)
            levels.append(None)
            after_qed.append(False)
        else:
            while after_qed and after_qed[-1]:
                levels.pop()
                after_qed.pop()
        if not levels:
            raise TlaSyntaxError("This step follows the QED of its proof", part.span)
        outer = next((level for level in reversed(levels[:-1]) if level is not None), -1)
        current = levels[-1]
        if written in "*+":
            if current is None:
                levels[-1] = outer + 1
            elif written == "+":
                raise TlaSyntaxError("`<+>` only begins a proof", part.span)
        elif current is None and int(written) > outer:
            levels[-1] = int(written)
        elif current != int(written):
            expected = f"<{current}>" if current is not None else f"a level above <{outer}>"
            raise TlaSyntaxError(f"The step's level is wrong: expected {expected}", part.span)
        takes_proof = part.kind in ("CLAIM", "QED")
        after_keyword = False
        after_qed[-1] = part.kind == "QED"
    while after_qed and after_qed[-1]:
        levels.pop()
        after_qed.pop()
    if levels or after_keyword:
        raise TlaSyntaxError("The proof has no QED step", parts[-1].span, hint="end it with `<…> QED`")


def _begins_proof(written: str, levels: list[int | None]) -> bool:
    if written == "+":
        return True
    if not levels:
        return True
    current = levels[-1]
    return written != "*" and current is not None and int(written) > current
