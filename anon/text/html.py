"""Text in a page: what an expression of a template shows of it, whoever wrote it."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup, escape

from anon.text.foreign import FSI, PDI, Marked, shown

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
