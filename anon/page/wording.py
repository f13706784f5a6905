"""How both pages show a program's sentence."""

from __future__ import annotations

from markupsafe import Markup


def coded(text: str) -> Markup:
    """Text whose parts in backticks are commands or names of a program. Everything is escaped."""
    plain, named = Markup("{}"), Markup("<code>{}</code>")
    return Markup("").join((named if place % 2 else plain).format(part) for place, part in enumerate(text.split("`")))


def sentence(text: str) -> Markup:
    """The same with a capital and a full stop, for a message that stands alone."""
    whole = f"{text[:1].upper()}{text[1:]}"
    return coded(whole if whole.endswith((".", "!", "?")) else f"{whole}.")
