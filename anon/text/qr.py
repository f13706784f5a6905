"""QR codes (ISO/IEC 18004): how a text becomes a code, and the code as a drawing for pages and prints."""

from __future__ import annotations

import segno

PIXELS = 4
"""The width of a module on a screen, where no style says another."""
QUIET = 4
"""Modules of margin in a drawing, as the standard wants."""


def qr_code(text: str) -> segno.QRCode:
    """The code of a text, read again where up to 15 % of it is damaged.

    Raises `ValueError` for a text that is too long for one code.
    """
    return segno.make(text, error="m", boost_error=False, micro=False)


def qr_svg(text: str) -> str:
    """The code as an SVG element, black on white in any colour scheme, whole at any width that a style gives it.

    A drawing without a `viewBox` would be cut, not scaled. `ValueError` as of `qr_code`.
    """
    code = qr_code(text)
    side = code.symbol_size(border=QUIET)[0] * PIXELS
    drawing = code.svg_inline(omitsize=True, border=QUIET, dark="#000", light="#fff", svgclass="qr", lineclass=None)
    return drawing.replace("<svg ", f'<svg width="{side}" height="{side}" ', 1)
