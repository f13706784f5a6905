"""A published report, which staff wrote, as a page that its reader's browser may show: text, tables and drawings alone.

Every element, attribute and text is written anew, and what is not listed here is left out: scripts, forms, links, and
whatever fetches. `POLICY` forbids the same to the browser, and keeps the page from everything of ours.
"""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser
from typing import Final

from anon.text.foreign import shown

POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; sandbox; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_TEXT = "h1 h2 h3 h4 p div span section figure figcaption strong em b i small sub sup code pre blockquote bdi br hr"
_LISTS = "ul ol li dl dt dd table caption thead tbody tfoot tr th td details summary time abbr"
_DRAWN = "svg g rect line path circle ellipse polyline polygon text tspan"
_ELEMENTS = frozenset(f"{_TEXT} {_LISTS} {_DRAWN}".split())
_VOID = frozenset({"br", "hr"})
_SAID = "class dir lang scope colspan rowspan role aria-label aria-hidden open datetime start"
_PLACED = "viewbox preserveaspectratio x y x1 x2 y1 y2 dx dy cx cy r rx ry width height d points transform"
_PAINTED = frozenset(["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "text-anchor", "font-size"])
_ATTRIBUTES = frozenset(f"{_SAID} {_PLACED}".split()) | _PAINTED
_FETCHING = re.compile(r"url|src|@import|image|[<\\]", re.IGNORECASE)
"""Of a style or a colour: what could name another place, or hide that it does."""
_UNSHOWN = frozenset({"script", "style", "title", "template", "noscript", "textarea", "iframe", "object"})
KEPT = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The part of `POLICY` that a page can carry in itself, for a report that is kept as a file."""
_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    f'<meta http-equiv="Content-Security-Policy" content="{KEPT}">'
)


class _Rewriter(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.written: list[str] = []
        self.styles: list[str] = []
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSHOWN:
            self._within.append(tag)
        elif tag in _ELEMENTS and not self._within:
            kept = "".join(
                f' {name}="{escape(shown(value or "", lines=True))}"'
                for name, value in attrs
                if name in _ATTRIBUTES and not (name in _PAINTED and _FETCHING.search(value or ""))
            )
            self.written.append(f"<{tag}{kept}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSHOWN:
            while self._within and self._within.pop() != tag:
                pass
        elif tag in _ELEMENTS - _VOID and not self._within:
            self.written.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self._within[-1:] == ["style"]:
            self.styles.append(data)
        elif not self._within:
            self.written.append(escape(shown(data, lines=True)))


def as_page(body_untrusted: bytes, title: str, above: str, lang: str = "en") -> str:
    """The report as a whole page, with a sentence of ours above it, in `lang`. Whatever the bytes are, there is one."""
    rewriter = _Rewriter()
    rewriter.feed(body_untrusted.decode("utf-8", "replace"))
    rewriter.close()
    style = "".join(sheet for sheet in rewriter.styles if not _FETCHING.search(sheet))
    head = f"{_HEAD}<title>{escape(shown(title))}</title><style>{style}</style></head>"
    said = f'<p lang="{escape(lang)}"><strong>{escape(above)}</strong></p>'
    return f"{head}<body>{said}<main>{''.join(rewriter.written)}</main></body></html>"
