r"""Text → tokens. The rules are SANY's (``tla2sany`` ``tla+.jj``), and .cfg files are read by them too.

The longest match wins, without word boundaries: ``x \inS`` is ``x \in S``. Block comments nest and strings hide nothing
in them; ``\*`` hides the rest of its line. Around a module, text is no code: see :func:`module_tokens`.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from . import operators
from .errors import TlaSyntaxError
from .source import SourceText, Span


class Token(NamedTuple):
    r"""A token. ``start`` and ``end`` are offsets in the source.

    ``kind`` is ``NAME``, ``NUMBER``, ``STRING`` or ``STEP`` (``<1>2.``), ``HEADER`` (``---- MODULE``), ``SEPARATOR``
    (``----``), ``FOOTER`` (``====``), ``EOF``, and for a reserved word, an operator or a bracket its canonical
    spelling: ``VARIABLES`` is of the kind ``VARIABLE``, ``\cup`` of the kind ``\union``. ``text`` is what was written.
    ``TRUE``, ``BOOLEAN``, ``STRING`` and ``@`` are NAMEs.
    """

    kind: str
    text: str
    start: int
    end: int


RESERVED: dict[str, str] = {
    word: words.split()[0]
    for words in (
        "ACTION ACTIONS", "ASSUME", "ASSUMPTION AXIOM", "BY", "CASE", "CHOOSE", "CONSTANT CONSTANTS", "DEF DEFS",
        "DEFINE", "ELSE", "EXCEPT", "EXTENDS", "HAVE", "HIDE", "IF", "IN", "INSTANCE", "LAMBDA", "LET", "LOCAL",
        "MODULE", "NEW", "OBVIOUS", "OMITTED", "ONLY", "OTHER", "PICK", "PROOF", "PROPOSITION LEMMA COROLLARY", "PROVE",
        "QED", "RECURSIVE", "STATE", "SUFFICES", "TAKE", "TEMPORAL TEMPORALS", "THEN", "THEOREM", "USE",
        "VARIABLE VARIABLES", "WITH", "WITNESS", "ENABLED", "UNCHANGED", "SUBSET", "UNION", "DOMAIN",
    )
    for word in words.split()
}  # fmt: skip
"""Every reserved word → its canonical spelling."""

_PUNCTUATION: dict[str, str] = {
    **{text: text for text in (
        r"\A", r"\E", r"\AA", r"\EE", "(", ")", "[", "]", "]_", "{", "}", "<<", ">>", ">>_", ",", ":", "::", ".", "_",
        "!", "==", "->", "<-", "|->", "WF_", "SF_", "[]ASSUME", "[]PROVE",
    )},
    r"\forall": r"\A", "∀": r"\A", r"\exists": r"\E", "∃": r"\E", "⟨": "<<", "⟩": ">>", "⟩_": ">>_", "∷": "::",
    "≜": "==", "→": "->", "←": "<-", "↦": "|->",
}  # fmt: skip

_WORDS = {"ENABLED", "UNCHANGED", "SUBSET", "UNION", "DOMAIN"}

CANONICAL: dict[str, str] = {
    **{name: name for name in operators.ALL if name not in _WORDS},
    **operators.SPELLINGS,
    **_PUNCTUATION,
}
"""Every symbol → its canonical spelling."""

_SYMBOLS = "|".join(re.escape(text) for text in sorted(CANONICAL, key=len, reverse=True))

# Ordered so that the first alternative that matches is the longest match.
_TOKEN = re.compile(
    rf"""
      (?P<SPACE>[ \t\r\n]+ | \\\*[^\r\n]*)
    | (?P<COMMENT>\(\*)
    | (?P<HEADER>-{{4,}}\ *MODULE)
    | (?P<SEPARATOR>-{{4,}})
    | (?P<FOOTER>={{4,}})
    | (?P<STRING>"(?:[^"`\n\r\\] | `[^']*' | \\[ntrf\\"])*")
    | (?P<STEP><(?:[0-9]+|[+*])>(?:[A-Za-z0-9_]+\.* | [*-]\.* | \.*))
    | (?P<NAME>(?![WS]F_)[A-Za-z0-9_]*[A-Za-z][A-Za-z0-9_]* | @(?!@) | [ℕℤℝ])
    | (?P<NUMBER>[0-9]+ | \\[oO][0-7]+ | \\[bB][01]+ | \\[hH][0-9A-Fa-f]+)
    | (?P<SYMBOL>{_SYMBOLS})
    """,
    re.VERBOSE,
)
FIELD = re.compile(r"\$(?:\{([^{}\r\n]+)\}|([A-Za-z_][A-Za-z0-9_]*))")
"""``$name`` or ``${any name}``: a value that comes from elsewhere, where a text may have such."""

_HEADER = re.compile(r"-{4,} *MODULE")
_COMMENT_EDGE = re.compile(r"\(\*|\*\)")
_STRING_START = re.compile(r"""\"(?:[^"`\n\r\\]|`[^']*'|\\[ntrf\\"])*""")

_HINTS: dict[str, str] = {
    "\N{MINUS SIGN}": "write the ASCII `-`",
    "\N{EN DASH}": "write the ASCII `-`",
    "\N{EM DASH}": "write the ASCII `-`",
    "\N{PRIME}": "write the ASCII `'` for prime",
    "\N{LEFT SINGLE QUOTATION MARK}": "write the ASCII `'` for prime",
    "\N{RIGHT SINGLE QUOTATION MARK}": "write the ASCII `'` for prime",
    "\N{LEFT DOUBLE QUOTATION MARK}": 'strings stand in ASCII quotes: "…"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": 'strings stand in ASCII quotes: "…"',
    "'": "write the ASCII `'` for prime",
    "\N{FULLWIDTH LEFT PARENTHESIS}": "write the ASCII `(`",
    "\N{FULLWIDTH RIGHT PARENTHESIS}": "write the ASCII `)`",
    "\N{GREEK SMALL LETTER LAMDA}": "write `LAMBDA x : …`",
    "\N{THERE DOES NOT EXIST}": "write `~ \\E x \\in S : …`",
    "\N{NO-BREAK SPACE}": "put an ordinary space there",
    "\f": "put an ordinary space or a new line there",
    "\v": "put an ordinary space or a new line there",
    "\ufeff": "save the file without a byte order mark inside",
    ";": "TLA+ has no semicolons: remove it",
    "`": "a backquote has no meaning in TLA+",
    "?": "only `??` is an operator",
}
_NAMED = {
    "\f": "a form feed", "\v": "a vertical tab", "\x00": "a NUL byte", "\N{NO-BREAK SPACE}": "a no-break space",
    "\ufeff": "a byte order mark",
}  # fmt: skip


def tokens(source: SourceText, start: int = 0, *, module: bool = False, fields: bool = False) -> list[Token]:
    """The tokens of a text, comments skipped; the last one is ``EOF``.

    With ``module`` the text from ``start`` is a module, and what follows its ``====`` is not read. With ``fields`` a
    ``$name`` is a NAME, which no module can define.
    Raises TlaSyntaxError at what is no token.
    """
    text = source.text
    position = start
    found: list[Token] = []
    depth = 0
    match_token = _TOKEN.match
    while position < len(text):
        field = FIELD.match(text, position) if fields else None
        if field is not None:
            found.append(Token("NAME", field[0], position, field.end()))
            position = field.end()
            continue
        match = match_token(text, position)
        if match is None:
            _refuse(source, position)
        kind = match.lastgroup or ""
        end = match.end()
        if kind == "SPACE":
            position = end
            continue
        if kind == "COMMENT":
            position = _comment_end(source, position)
            continue
        written = match[0]
        if kind == "NAME":
            kind = RESERVED.get(written, kind)
        elif kind == "SYMBOL":
            kind = CANONICAL[written]
        found.append(Token(kind, written, position, end))
        position = end
        if kind == "HEADER":
            depth += 1
        elif kind == "FOOTER":
            depth -= 1
            if module and depth == 0:
                break
    # SANY's place for the end of a file is its last character, a line's end included.
    last = max(len(text) - 1, 0) if position >= len(text) else position
    found.append(Token("EOF", "", last, last))
    return found


def module_tokens(source: SourceText) -> list[Token]:
    """The tokens of a file's first module. All text before ``---- MODULE`` and after its ``====`` is skipped.

    Raises TlaSyntaxError where there is no module, and at what is no token.
    """
    header = _HEADER.search(source.text)
    if header is None:
        end = max(len(source.text) - 1, 0)
        hint = None
        if re.search(r"-{2,}[^\S\n]*MODULE", source.text, re.IGNORECASE):
            hint = "the header needs at least four ASCII dashes, and MODULE in capitals on the same line"
        elif not source.text.strip():
            hint = "the file is empty"
        raise TlaSyntaxError(
            "There is no module here: expected `---- MODULE Name ----`", Span(source, end, end), hint=hint
        )
    return tokens(source, header.start(), module=True)


def _comment_end(source: SourceText, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(source.text, start):
        depth += 1 if edge[0] == "(*" else -1
        if depth == 0:
            return edge.end()
    raise TlaSyntaxError(
        "The comment that starts here is never closed", Span(source, start, start + 2), hint="close it with `*)`"
    )


def _refuse(source: SourceText, position: int) -> NoReturn:
    text = source.text
    if text[position] == '"':
        string = _STRING_START.match(text, position)
        assert string is not None  # it matches a lone quote
        stop = string.end()
        if stop < len(text) and text[stop] == "\\" and text[stop + 1 : stop + 2] not in ("", "\n", "\r"):
            raise TlaSyntaxError(
                f"`\\{text[stop + 1]}` is no escape of a string",
                Span(source, stop + 1, stop + 2),
                hint='the escapes are \\" \\\\ \\n \\t \\r \\f',
            )
        raise TlaSyntaxError(
            "The string is not closed on its line",
            Span(source, min(stop, max(len(text) - 1, 0)), stop + 1),
            hint=f'it starts at column {source.position(position)[1]}: close it with `"`',
        )
    character = text[position]
    if character in _NAMED:
        what = _NAMED[character]
    elif character.isprintable():
        what = f"`{character}`"
    else:
        what = "a control character"
    if not character.isascii():
        what += f" (U+{ord(character):04X})"
    hint = _HINTS.get(character)
    if hint is None and character.isalpha():
        hint = "names are made of ASCII letters, digits and `_`"
    raise TlaSyntaxError(f"TLA+ has no {what}", Span(source, position, position + 1), hint=hint)
