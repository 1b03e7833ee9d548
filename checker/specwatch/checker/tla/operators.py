"""The operators of TLA+: their spellings, precedence ranges, and how ranges turn a flat expression into a tree.

Every operator has a *range* of precedences (SANY, ``tla2sany/configuration/ConfigConstants.java``). Of two operators
beside each other the one whose whole range lies above binds tighter; where the ranges overlap the expression is an
error and wants parentheses, unless both are the same left-associative operator.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from . import tree
from .errors import TlaSyntaxError
from .source import Span

Fix = Literal["prefix", "infix", "postfix"]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator symbol in its canonical spelling. ``low`` to ``high`` is its precedence range."""

    name: str
    low: int
    high: int
    left_associative: bool
    fix: Fix


def _table(fix: Fix, left_associative: bool, rows: dict[tuple[int, int], str]) -> dict[str, Operator]:
    return {
        name: Operator(name, low, high, left_associative, fix)
        for (low, high), names in rows.items()
        for name in names.split()
    }


PREFIX: dict[str, Operator] = _table(
    "prefix",
    False,
    {
        (4, 4): r"\lnot",
        (4, 15): "[] <> ENABLED UNCHANGED",
        (10, 13): "SUBSET UNION DOMAIN",
        (12, 12): "-.",
    },
)

POSTFIX: dict[str, Operator] = _table("postfix", False, {(15, 15): "' ^+ ^* ^#"})

INFIX: dict[str, Operator] = {
    **_table(
        "infix",
        False,
        {
            (1, 1): "=>",
            (2, 2): r"~> \equiv -+->",
            (5, 5): r"""= /= \in \notin < \leq > \geq \subseteq |- |= -| =| := ::= \prec \succ \preceq \succeq \sim
                        \simeq \ll \gg \asymp \subset \supset \supseteq \approx \cong \sqsubset \sqsubseteq \sqsupset
                        \sqsupseteq \doteq \propto""",
            (7, 7): "<: :>",
            (8, 8): "\\",
            (9, 9): "... ..",
            (9, 13): "!!",
            (9, 14): r"\wr",
            (10, 11): "%",
            (13, 13): r"/ // \oslash \div",
            (14, 14): "^ ^^",
        },
    ),
    **_table(
        "infix",
        True,
        {
            (3, 3): r"\land \lor",
            (5, 14): r"\cdot",
            (6, 6): "@@",
            (8, 8): r"\intersect \union",
            (9, 13): r"$$ $ ?? ## \uplus \sqcap \sqcup",
            (10, 10): r"+ ++ \oplus",
            (10, 11): "| || %%",
            (10, 13): r"\times",
            (11, 11): r"- -- \ominus",
            (13, 13): r"* && & ** \odot \otimes \star \o \bigcirc \bullet",
        },
    ),
}

ALL: dict[str, Operator] = {**PREFIX, **POSTFIX, **INFIX}
"""Every operator by its canonical spelling. The two minus signs are ``-`` and ``-.``: no name is of two kinds."""

# What is written → the canonical spelling, which is SANY's.
SPELLINGS: dict[str, str] = {
    "~": r"\lnot", r"\neg": r"\lnot", "¬": r"\lnot", "□": "[]", "◇": "<>", "⁺": "^+",
    "/\\": r"\land", "∧": r"\land", "\\/": r"\lor", "∨": r"\lor", "⇒": "=>", "<=>": r"\equiv", "⇔": r"\equiv",
    "≡": r"\equiv", "↝": "~>", "⇸": "-+->", "#": "/=", "≠": "/=", "∈": r"\in", "∉": r"\notin", "<=": r"\leq",
    "=<": r"\leq", "≤": r"\leq", ">=": r"\geq", "≥": r"\geq", "⊆": r"\subseteq", "⊢": "|-", "⊨": "|=", "⊣": "-|",
    "⫤": "=|", "≔": ":=", "⩴": "::=", "≺": r"\prec", "≻": r"\succ", "⪯": r"\preceq", "⪰": r"\succeq", "∼": r"\sim",
    "≃": r"\simeq", "≪": r"\ll", "≫": r"\gg", "≍": r"\asymp", "⊂": r"\subset", "⊃": r"\supset", "⊇": r"\supseteq",
    "≈": r"\approx", "≅": r"\cong", "⊏": r"\sqsubset", "⊑": r"\sqsubseteq", "⊐": r"\sqsupset", "⊒": r"\sqsupseteq",
    "≐": r"\doteq", "∝": r"\propto", "⋅": r"\cdot", r"\cap": r"\intersect", "∩": r"\intersect", r"\cup": r"\union",
    "∪": r"\union", "…": "...", "‥": "..", "‖": "||", "⁇": "??", "‼": "!!", "⊎": r"\uplus", "⊓": r"\sqcap",
    "⊔": r"\sqcup", "≀": r"\wr", "(+)": r"\oplus", "⊕": r"\oplus", "(-)": r"\ominus", "⊖": r"\ominus",
    "(.)": r"\odot", "⊙": r"\odot", "(/)": r"\oslash", "⊘": r"\oslash", r"(\X)": r"\otimes", "⊗": r"\otimes",
    r"\X": r"\times", "×": r"\times", "÷": r"\div", "⋆": r"\star", r"\circ": r"\o", "∘": r"\o", "◯": r"\bigcirc",
    "●": r"\bullet",
}  # fmt: skip


MISTAKEN: dict[str, str] = {
    "&&": "the conjunction of TLA+ is `/\\`",
    "||": "the disjunction of TLA+ is `\\/`",
    ":=": "to compare, or to say what a primed variable equals, write `=`",
    "and": "the conjunction of TLA+ is `/\\`",
    "or": "the disjunction of TLA+ is `\\/`",
    "not": "the negation of TLA+ is `~`",
    "mod": "the remainder is `a % b`, of Naturals",
    "true": "write `TRUE`",
    "false": "write `FALSE`",
    "True": "write `TRUE`",
    "False": "write `FALSE`",
}
"""What other languages write → what to write here. The first three are operators that a module may define."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """An operator symbol where it stands. ``name`` is canonical; ``text`` is what was written."""

    name: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a flat expression. ``postfix`` are the postfix symbols already applied to it, left to right."""

    node: tree.Expression
    postfix: tuple[Symbol, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefix:
    symbol: Symbol


@dataclass(frozen=True, slots=True)
class Infix:
    symbol: Symbol


Item = Operand | Prefix | Infix

# The operators whose chains are one node. \times is n-ary in the language; \land and \lor are flattened.
_CHAINS: dict[str, type[tree.And] | type[tree.Or] | type[tree.Product]] = {
    r"\land": tree.And,
    r"\lor": tree.Or,
    r"\times": tree.Product,
}


@dataclass(slots=True)
class _Value:
    """An operand on the stack. ``items`` are collected while the chain of ``operator`` may still grow."""

    items: list[tree.Expression]
    operator: str | None = None

    def node(self) -> tree.Expression:
        if self.operator is None:
            return self.items[0]
        return _CHAINS[self.operator](_cover(self.items[0].span, self.items[-1].span), tuple(self.items))


def resolve(items: list[Item]) -> tree.Expression:
    """The tree of a flat expression ``prefix* operand (infix prefix* operand)*``.

    Raises TlaSyntaxError where two operators need parentheses.
    """
    if len(items) == 1 and isinstance(items[0], Operand):
        return items[0].node
    try:
        return _resolve(items)
    except TlaSyntaxError as conflict:
        for item in items:
            if isinstance(item, Infix) and item.symbol.text in MISTAKEN:
                conflict.hint = MISTAKEN[item.symbol.text]
        raise


def _resolve(items: list[Item]) -> tree.Expression:
    values: list[_Value] = []
    pending: list[tuple[Operator, Symbol]] = []
    for item in items:
        match item:
            case Prefix(symbol):
                operator = PREFIX["-." if symbol.name == "-" else symbol.name]
                # A prefix operator never conflicts with what stands on its left, but for the minus.
                if operator.name == "-." and pending and pending[-1][0].low > operator.high:
                    raise _conflict(pending[-1], (operator, symbol))
                pending.append((operator, symbol))
            case Operand(node, postfix):
                for symbol in postfix:
                    if pending and pending[-1][0].high >= POSTFIX[symbol.name].low:
                        raise _conflict(pending[-1], (POSTFIX[symbol.name], symbol))
                values.append(_Value([node]))
            case Infix(symbol):
                right = (INFIX[symbol.name], symbol)
                while pending and _reduces(pending[-1], right):
                    _reduce(values, *pending.pop())
                pending.append(right)
    while pending:
        _reduce(values, *pending.pop())
    return values[0].node()


def _reduces(left: tuple[Operator, Symbol], right: tuple[Operator, Symbol]) -> bool:
    """Whether the left operator takes the operand between the two; raises if neither may."""
    if left[0].low > right[0].high or (left[0] == right[0] and left[0].left_associative):
        return True
    if left[0].high < right[0].low:
        return False
    raise _conflict(left, right)


def _reduce(values: list[_Value], operator: Operator, symbol: Symbol) -> None:
    name = tree.Name(symbol.span, operator.name)
    right = values.pop()
    if operator.fix == "prefix":
        body = right.node()
        values.append(_Value([tree.Apply(_cover(symbol.span, body.span), name, (body,))]))
        return
    left = values.pop()
    if operator.name in _CHAINS:
        first = left.items if left.operator == operator.name else [left.node()]
        first.append(right.node())
        values.append(_Value(first, operator.name))
    else:
        operands = (left.node(), right.node())
        values.append(_Value([tree.Apply(_cover(operands[0].span, operands[1].span), name, operands)]))


def _cover(first: Span, last: Span) -> Span:
    return dataclasses.replace(first, end=last.end)


def _conflict(left: tuple[Operator, Symbol], right: tuple[Operator, Symbol]) -> TlaSyntaxError:
    first, second = left[1].text, right[1].text
    if left[0].fix == "prefix":
        hint = f"write `{first} (… {second} …)` or `({first} …) {second} …`"
    elif right[0].fix == "prefix":
        hint = f"write `… {first} ({second} …)`"
    elif right[0].fix == "postfix":
        hint = f"write `… {first} (…{second})`"
    else:
        hint = f"write `(… {first} …) {second} …` or `… {first} (… {second} …)`"
    reason = f"`{first}` cannot be chained" if left[0] == right[0] else "neither binds tighter than the other"
    # SANY reports a conflict at the left operator, but one with a postfix operator at that.
    place = right if right[0].fix == "postfix" else left
    message = f"Precedence conflict between `{first}` and `{second}`: {reason}"
    return TlaSyntaxError(message, place[1].span, hint=f"add parentheses: {hint}")
