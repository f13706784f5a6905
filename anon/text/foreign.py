"""Text that somebody else wrote: which characters it may hold, and how it is shown, alone and in a sentence of ours.

Allowed are letters, marks, numbers, punctuation, symbols and the plain space: what is seen as it is written. Every
other character can move the cursor, hide, reorder or pass for a space. Legitimate text loses joiners and variation
selectors by this rule (Persian writes with one of them); text from right to left stays, and is isolated when shown.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any, Final, Self

from anon.text.default_ignorable import BLANK, DEFAULT_IGNORABLE

MOST_MARKS = 4
"""Combining marks on one letter. Vietnamese and Hebrew need up to three; a tower of them covers other lines."""
LONGEST_IN_A_LINE = 48
"""Characters of a stranger's text in a line of ours."""
LINE_SIGNS = frozenset("\n\t")
"""Allowed beside the rest in a text of several lines."""
_SEEN = frozenset("LMNPS")
LONGEST_TOLD = 400
"""Characters of a message that came as a whole, such as an error's."""
LONGEST_PLACE = 4096
"""Characters of a file's path or of an address, which is worth nothing cut."""
FSI, PDI = "\u2068", "\u2069"
QUOTES: Final = "“”"
_ENDING_MARK: Final = re.compile(
    "QUOTATION MARK|CORNER BRACKET|DITTO|GERSHAYIM|APOSTROPHE|COMMA ORNAMENT|DOUBLE COMMA"
    "|(GRAVE|ACUTE) ACCENT$|^ACUTE ACCENT|PRIME$|DOUBLE (ACUTE|GRAVE) ACCENT$"
)
"""Unicode's names of signs that could pass for the mark that ends a quoted text, or that mean code in a sentence of
ours. All initial and final punctuation (Pi, Pf) counts too."""
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_WITHIN = re.compile(r"(?<![\n])[ \t]*\n(?![ \t]*(?:\n|\Z|[-*\u2022][ \t]|[0-9]{1,3}[.)][ \t]))[ \t]*")
"""A line end within a paragraph."""
_UNNAMED = "no character that has a name"


class Marked(str):
    """Text of ours in which every foreign part is marked: any surface may show it as it is."""

    def __str__(self) -> str:
        """Itself: an error keeps the text that it was raised with."""
        return self


class Quoted(Marked):
    """Text that somebody else wrote, as it stands in a sentence of ours: between marks that it cannot hold itself,
    isolated, and cut to `longest` characters. `said` is what stands between the marks."""

    said: str

    def __new__(cls, text: str, longest: int = LONGEST_IN_A_LINE) -> Self:
        """The text between English marks."""
        said = text.said if isinstance(text, Quoted) else _cut(escaped(str.__str__(text)), longest)
        said = "".join("'" if _ends_quote(sign) else sign for sign in said)
        made = super().__new__(cls, isolated(said).join(QUOTES))
        made.said = said
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """The parts, for copies between processes."""
        return self.said, len(self.said)


def whole_place(place: object) -> Quoted:
    """A file's path or an address in a sentence, which is worth nothing cut."""
    return Quoted(str(place), LONGEST_PLACE)


def fault(text: str, *, lines: bool = False) -> str:
    """The first character that is not shown as it is written, with its name and its place; empty if there is none.

    `lines` allows line ends and tabs.
    """
    if _plain(text):
        return ""
    for index, (sign, allowed) in enumerate(zip(text, _allowed(text, lines), strict=True), 1):
        if not allowed:
            return f"{named(sign)} at character {index}"
    return ""


def named(sign: str) -> str:
    """A character by its number and its name."""
    return f"U+{ord(sign):04X} ({unicodedata.name(sign, _UNNAMED)})"


def escaped(text: str, *, lines: bool = False) -> str:
    """The text with every character that is not allowed as <U+202E>, so that it is seen and does nothing."""
    if _plain(text) or isinstance(text, Marked):
        return text
    allowed = _allowed(text, lines)
    return "".join(sign if fine else f"<U+{ord(sign):04X}>" for sign, fine in zip(text, allowed, strict=True))


def paragraphs(text: str) -> str:
    """The text with the line ends within its paragraphs as spaces; empty lines stay, and lines that begin an entry of a
    list."""
    return _WITHIN.sub(" ", text)


def isolated(text: str) -> str:
    """The text, unable to reorder what stands beside it (UAX #9, FSI and PDI). Only text that runs from right to left
    is changed; every other stays as it is, for terminals and fonts that do not know these characters."""
    if isinstance(text, Marked) or text.isascii():
        return text
    if not any(unicodedata.bidirectional(sign) in _RIGHT_TO_LEFT for sign in text):
        return text
    return "\n".join(f"{FSI}{line}{PDI}" for line in text.split("\n"))


def brief(text: str) -> str:
    """`escaped` and cut to what fits a line beside our own words, so that it cannot fill the line and begin another."""
    return _cut(escaped(text), LONGEST_IN_A_LINE)


def shown(text: str, *, lines: bool = False) -> str:
    """`isolated` and `escaped`: what a surface may print of a stranger's text."""
    return isolated(escaped(text, lines=lines))


def folded(name: str) -> str:
    """The name without differences that an eye does not see in it: case, width and spaces."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _cut(plain: str, longest: int) -> str:
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def _plain(text: str) -> bool:
    """Most text: letters, signs and spaces of ASCII alone."""
    return text.isascii() and text.isprintable()


def _allowed(text: str, lines: bool) -> list[bool]:
    """For each character, whether it is shown as it is written. A mark needs a letter before it."""
    found: list[bool] = []
    marks = MOST_MARKS
    for sign in text:
        kind = _kind(sign)
        if kind == "M":
            marks += 1
            found.append(marks <= MOST_MARKS)
            continue
        fine = bool(kind) or (lines and sign in LINE_SIGNS)
        marks = 0 if kind and sign != " " else MOST_MARKS
        found.append(fine)
    return found


@lru_cache(4096)
def _ends_quote(sign: str) -> bool:
    """True for a sign that could pass for the mark that ends a quoted text. No letter of a word does (Lu, Ll, Lo)."""
    kind = unicodedata.category(sign)
    if kind in {"Pi", "Pf"}:
        return True
    return (kind == "Lm" or kind[0] in "PS") and _ENDING_MARK.search(unicodedata.name(sign, "")) is not None


@lru_cache(4096)
def _kind(sign: str) -> str:
    """The class of an allowed character, by the first letter of its category; empty for every other."""
    if sign == " ":
        return "Z"
    kind, point = unicodedata.category(sign)[0], ord(sign)
    if kind not in _SEEN or any(first <= point <= last for first, last in (*DEFAULT_IGNORABLE, *BLANK)):
        return ""
    return kind
