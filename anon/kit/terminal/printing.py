"""Printing on a terminal: a text is printed as it is, and styles stand in templates of ours alone.

rich takes words in square brackets for its markup and eats them, and turns `:name:` into a picture, whoever wrote the
text. So every module prints on a `Terminal`, which knows neither, and a line with styles is made by `styled`.
"""

from __future__ import annotations

import re
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from anon.kit.terminal.hints import additions, completed

_FIELD = re.compile(r"\{([a-z_]+)\}")


class Terminal(Console):
    """A console for which every text is plain: as an argument of `print`, in a cell of a table, as a title."""

    def __init__(self, *, stderr: bool = False, soft_wrap: bool = False, file: TextIO | None = None) -> None:
        super().__init__(stderr=stderr, soft_wrap=soft_wrap, file=file, markup=False, emoji=False, highlight=False)
        self.legacy_windows = self.legacy_windows and self.is_terminal  # rich takes Windows' pipes for one

    def print(self, *objects: Any, **how: Any) -> None:
        """As rich's, with each command that a line of text hints at as it is typed here."""
        super().print(*map(_as_typed, objects), **how)

    def input(self, prompt: object = "", **_: object) -> str:
        """A line that somebody types after a plain prompt. Raises `EOFError` where nobody is there."""
        return super().input(str(prompt), markup=False, emoji=False)


def _as_typed(value: object) -> object:
    if isinstance(value, str):
        return completed(value)
    if isinstance(value, Text):
        for place, words in reversed([*additions(value.plain)]):
            value = Text.assemble(value[:place], words, value[place:])
    return value


def styled(template: str, /, **values: object) -> Text:
    """A line of ours with rich's markup, such as "[bold]{name}[/]: {text}", and values that are plain text.

    The template is written out where this is called: a test finds any other. Raises `KeyError` for a value that is
    missing.
    """
    line, made, end = Text.from_markup(template, emoji=False), Text(), 0
    for field in _FIELD.finditer(line.plain):
        made.append_text(line[end : field.start()])
        value = Text(str(values[field[1]]))
        for span in line[field.start() : field.end()].spans:
            value.stylize(span.style)
        made.append_text(value)
        end = field.end()
    return made.append_text(line[end:])
