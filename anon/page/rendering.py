"""The templates of both pages, and the sentences and QR codes in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from anon.text.foreign import FSI, PDI, Marked, shown
from anon.text.qr import qr_svg

_ISOLATES: Final = {FSI: Markup("<bdi>"), PDI: Markup("</bdi>")}


def seen(value: object) -> object:
    """The filter of every expression of every template: text, whoever wrote it, in the one way it is shown.

    Markup of ours passes; its texts were shown when it was made. A stranger's text in a sentence of ours is an element
    of its own there. Elements that hold nothing else have `dir="auto"`.
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    if not isinstance(value, Marked):
        return shown(value, lines=True)
    html = escape(str.__str__(value))
    for sign, tag in _ISOLATES.items():
        html = html.replace(sign, tag)
    return html


def whole(text: str) -> Markup:
    """A stranger's text in a sentence, where the template gives it an element of its own that marks it."""
    return escape(shown(text))


def alike(before: str, after: str) -> str:
    """A text made of another, whose foreign parts are marked if the other's were."""
    return Marked(after) if isinstance(before, Marked) and not isinstance(after, Markup) else after


def typed(text: str) -> Markup:
    """The reader's own words, back in a field of a form to the letter: they are sent again as it is."""
    return escape(text)


def coded(text: str) -> Markup:
    """Text whose parts in backticks are commands or names of a program. Everything is escaped."""
    kinds = Markup("{}"), Markup("<code>{}</code>")
    parts = (alike(text, part) for part in text.split("`"))
    return Markup("").join(kinds[index % 2].format(seen(part)) for index, part in enumerate(parts))


def sentence(text: str) -> Markup:
    """The same with a capital and a full stop, for a message that stands alone."""
    begun = f"{text[:1].upper()}{text[1:]}"
    return coded(alike(text, begun if begun.endswith((".", "!", "?")) else f"{begun}."))


def templates_of(package: str, shown: Callable[[object], object] = seen) -> Environment:
    """The templates of a package. Everything is escaped, and a name that no handler gave is an error.

    `shown` is applied to every value before it is escaped; it must do what `seen` does.
    """
    templates = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    templates.filters |= {"coded": coded, "sentence": sentence, "typed": typed, "whole": whole}
    return templates


def qr_drawing(text: str) -> Markup:
    """A QR code as a drawing within a page, black on white in any colour scheme."""
    return Markup(qr_svg(text))  # noqa: S704  (made of modules, not of the text)
