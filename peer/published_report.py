"""A published report, which staff wrote, as a page that its reader's browser may show: text, tables and drawings alone.

Shown is only a report of the form that AnonML writes (`aggregator.report`); any other is refused as a whole. Elements,
attributes and texts are written anew: nothing runs, is fetched or leads away. Its style sheet is dropped, and ours
stands in its place (`anon.text.report_sheet`), so that it cannot hide or move our sentence above it. `POLICY` forbids
the same to the browser, and keeps the page from everything of ours. The work grows as the length does, and every step
of it is short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape, unescape
from typing import Final

from attrs import define, field

from anon.errors import Malformed
from anon.text.foreign import shown
from anon.text.report_sheet import SHEET
from anon.text.sentences import say

POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; sandbox; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
LONGEST: Final = 4 * 2**20
"""Bytes of a report that is shown. One of 500 tables of 12 categories has half of them."""
MOST_TAGS: Final = 2**18
LONGEST_TEXT: Final = 2**18
"""Characters between two tags."""
DEEPEST: Final = 64
"""Elements within one another."""
_BEGINS = "<!doctype html>"
_TEXT = "h1 h2 h3 h4 p div span section figure figcaption strong em b i small sub sup code pre blockquote bdi br hr"
_LISTS = "ul ol li dl dt dd table caption thead tbody tfoot tr th td details summary time abbr"
_DRAWN = "svg g rect line path circle ellipse polyline polygon text tspan"
_ELEMENTS = frozenset(f"{_TEXT} {_LISTS} {_DRAWN}".split())
_VOID = frozenset({"br", "hr", "meta"})
_UNSHOWN = frozenset({"html", "head", "meta", "title", "style", "body", "main"})
"""Elements of every report, which are not written: the page has its own."""
_SAID = "class dir lang scope colspan rowspan role aria-label aria-hidden open datetime start tabindex"
_PLACED = "viewBox preserveAspectRatio x y x1 x2 y1 y2 dx dy cx cy r rx ry width height d points transform"
_PAINTED = frozenset(["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "text-anchor", "font-size"])
_ATTRIBUTES = frozenset(f"{_SAID} {_PLACED}".split()) | _PAINTED
_UNWRITTEN = frozenset({"font-family", "charset", "name", "content"})
_PAINT = re.compile(r"#[0-9a-fA-F]{3,8}|[a-zA-Z]{1,20}|[0-9. ]{1,40}")
"""A colour, a word or numbers: all that a drawing is painted with."""
_ENTITY = "&(?:amp|lt|gt|quot|nbsp|#34|#39);"
_TOKEN = re.compile(
    r"<(?P<begun>[a-z][a-z0-9]{0,15})"
    r'(?P<given>(?: [a-zA-Z][a-zA-Z0-9-]{0,31}(?:="[^"<>]{0,65536}")?){0,16}) ?(?P<closed>/?)>'
    rf"|</(?P<ended>[a-z][a-z0-9]{{0,15}})>|(?P<text>(?:[^<>&]{{1,1024}}|{_ENTITY}){{1,64}})"
)
"""No match takes longer than its bounds allow, and each begins where the last one ended."""
_GIVEN = re.compile(r' ([a-zA-Z0-9-]+)(?:="([^"]*)")?')
_SHEET = re.compile(r"[^<]{0,65536}")
KEPT = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The part of `POLICY` that a page can carry in itself, for a report that is kept as a file."""
_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    f'<meta http-equiv="Content-Security-Policy" content="{KEPT}">'
)


class _Unlike(Exception):
    """The text is not of the form of a report. Carries nothing of it."""


@define
class _Rewriter:
    written: list[str] = field(factory=list)
    _within: list[str] = field(factory=list)
    _pending: list[str] = field(factory=list)
    _length: int = 0
    _tags: int = 0

    def whole(self, text: str) -> None:
        """Take all of the text, or raise `_Unlike`."""
        place = len(_BEGINS)
        _demand(text[:place] == _BEGINS)
        while place < len(text):
            token = _TOKEN.match(text, place)
            if token is None:
                raise _Unlike
            place = self._token(token)
        self._flush()
        _demand(not self._within)

    def _token(self, token: re.Match[str]) -> int:
        """Take one; where the next begins."""
        begun, given, closed, ended, _text = token.groups()
        if not (begun or ended):
            self._say(token[0])
            return token.end()
        self._flush()
        self._tags += 1
        _demand(self._tags <= MOST_TAGS)
        if ended:
            _demand(bool(self._within) and self._within.pop() == ended)
            if ended in _ELEMENTS:
                self.written.append(f"</{ended}>")
            return token.end()
        self._begin(begun, given, bool(closed))
        return _after_sheet(token) if begun == "style" else token.end()

    def _begin(self, tag: str, given: str, closed: bool) -> None:
        _demand(tag in _UNSHOWN or tag in _ELEMENTS)
        written = "".join(_attributes(given))
        if tag in _ELEMENTS:
            self.written.append(f"<{tag}{written}>{f'</{tag}>' if closed else ''}")
        if not (closed or tag in _VOID):
            self._within.append(tag)
            _demand(len(self._within) <= DEEPEST)

    def _say(self, text: str) -> None:
        self._length += len(text)
        _demand(self._length <= LONGEST_TEXT)
        self._pending.append(text)

    def _flush(self) -> None:
        """Write the text before a tag, as one: its characters lean on each other."""
        text, self._length = "".join(self._pending), 0
        self._pending.clear()
        if text and not (self._within and self._within[-1] in _UNSHOWN - {"body", "main"}):
            self.written.append(escape(shown(unescape(text), lines=True)))


def _after_sheet(token: re.Match[str]) -> int:
    """Where the text of a style sheet ends, of which nothing is taken."""
    sheet = _SHEET.match(token.string, token.end())
    assert sheet is not None, "no text at all fits too"
    return sheet.end()


def _attributes(given: str) -> Iterator[str]:
    for name, value in _GIVEN.findall(given):
        if name in _UNWRITTEN:
            continue
        _demand(name in _ATTRIBUTES and (name not in _PAINTED or _PAINT.fullmatch(value) is not None))
        _demand(name != "tabindex" or value == "0")
        yield f' {name}="{escape(shown(unescape(value), lines=True))}"'


def _demand(fits: bool) -> None:
    if not fits:
        raise _Unlike


def as_page(body_untrusted: bytes, title: str, above: str, lang: str = "en") -> bytes:
    """The report as a whole page, with a sentence of ours above it, in `lang`.

    Raises `Malformed` for bytes that are too long or not of the form that reports have.
    """
    if len(body_untrusted) > LONGEST:
        raise Malformed(
            say("the published report is longer than {most} MiB and is not shown; ask staff for it", most=LONGEST >> 20)
        )
    rewriter = _Rewriter()
    try:
        rewriter.whole(body_untrusted.decode())
    except (_Unlike, UnicodeDecodeError):
        raise Malformed(
            say(
                "the published report does not have the form that AnonML writes, and is not shown: it may hold what "
                "runs or fetches; ask staff why"
            )
        ) from None
    head = f"{_HEAD}<title>{escape(shown(title))}</title><style>{SHEET}</style></head>"
    said = f'<header><p lang="{escape(lang)}"><strong>{escape(above)}</strong></p></header>'
    return f"{head}<body>{said}<main>{''.join(rewriter.written)}</main></body></html>".encode()
