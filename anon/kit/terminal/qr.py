"""QR codes (ISO/IEC 18004) drawn with half blocks, two modules per character cell, for terminals and plain text."""

from __future__ import annotations

from anon.errors import Refused
from anon.kit.terminal.printing import Terminal
from anon.text.qr import qr_code

QUIET = 2
"""Modules of margin. Four are the standard's; phones read two, and a terminal has few lines."""
_BLOCKS = {(False, False): " ", (True, False): "\N{UPPER HALF BLOCK}", (False, True): "\N{LOWER HALF BLOCK}",
           (True, True): "\N{FULL BLOCK}"}


def drawing(text: str) -> tuple[str, ...]:
    """The code of a text as lines of equal length; a filled half is a dark module, to be shown dark on light.

    Raises `Refused` for a text that is too long for one code that can be read off a screen.
    """
    try:
        code = qr_code(text)
    except ValueError:
        raise Refused("too long for a QR code; compare the words instead") from None
    rows = [[bool(module) for module in row] for row in code.matrix_iter(border=QUIET)]
    if len(rows) % 2:
        rows.append([False] * len(rows[0]))
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return tuple("".join(_BLOCKS[above, below] for above, below in zip(*pair, strict=True)) for pair in pairs)


def figures(text: str) -> dict[str, object]:
    """A code for `--json`: what it carries, and its drawing line by line."""
    return {"text": text, "drawing": list(drawing(text))}


def show(console: Terminal, text: str) -> None:
    """Print a code dark on light, whatever the terminal's colours, with what it carries below it."""
    for line in drawing(text):
        console.print(line, style="black on bright_white", no_wrap=True)
    console.print(text, style="dim", soft_wrap=True)
