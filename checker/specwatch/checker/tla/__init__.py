"""TLA+, usable alone: parse, evaluate, show. Every error is a :class:`TlaError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..face import become_face
from .errors import TlaConfigError, TlaError, TlaEvaluationError, TlaSemanticError, TlaSyntaxError

if TYPE_CHECKING:
    from .language import evaluate, parse, show

__all__ = [
    "TlaConfigError",
    "TlaError",
    "TlaEvaluationError",
    "TlaSemanticError",
    "TlaSyntaxError",
    "evaluate",
    "parse",
    "show",
]

_HOMES = {"evaluate": ".language", "parse": ".language", "show": ".language"}
become_face(__name__)
