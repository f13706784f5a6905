"""The templates of both pages, and the sentences and QR codes in them."""

from __future__ import annotations

from collections.abc import Callable

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from anon.text.html import alike, seen, whole
from anon.text.qr import qr_svg


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
