"""The text of a QR code in a picture: a photo of a slide, a screenshot. Needs the extra `qr`; read on this machine."""

from __future__ import annotations

import io
import warnings
from importlib.util import find_spec

from anon.errors import Malformed, Refused
from anon.machine.extras import install
from anon.text.sentences import Term, say

LARGEST = 32 * 2**20
"""Bytes of a picture."""
MOST_PIXELS = 64 * 10**6
_LONGEST_SIDE = 3000
"""A larger picture is made smaller first: a code that somebody photographed on purpose fills a good part of it."""
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")


def available() -> bool:
    """True if pictures can be read here."""
    return find_spec("PIL") is not None and find_spec("zxingcpp") is not None


def text_in_picture(picture_untrusted: bytes) -> str:
    """The text of the one QR code in a picture, not yet judged.

    Raises `Refused` without the extra and for a picture that is too large, `Malformed` for what is no picture, or has
    no code in it or several.
    """
    if not available():
        raise Refused(say("pictures cannot be read here; paste the link, or `{command}`", command=install("qr")))
    if not picture_untrusted:
        raise Malformed(say("no picture was chosen; choose a photo or a screenshot of the code, or paste the link"))
    codes = _codes(picture_untrusted)
    if len(codes) == 1:
        return codes.pop()
    if codes:
        raise Malformed(say(
            "several different codes are in this picture; cut out the one of the invite, or paste the link",
        ))
    raise Malformed(say("no QR code was found in this picture; take it closer and straighter, or paste the link"))


def _codes(picture: bytes) -> set[str]:
    import zxingcpp
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            with Image.open(io.BytesIO(picture), formats=_FORMATS) as opened:
                if opened.width * opened.height > MOST_PIXELS:
                    raise Refused(say(
                        "a picture of more than {most_pixels} million pixels; make it smaller",
                        most_pixels=MOST_PIXELS // 10**6,
                    ))
                grey = opened.convert("L")
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            raise Malformed(say(
                "not a picture that can be read; expected one of {formats}",
                formats=Term(", ".join(_FORMATS)),
            )) from None
    grey.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    pixels = memoryview(grey.tobytes()).cast("B", (grey.height, grey.width))
    formats = zxingcpp.BarcodeFormats(zxingcpp.BarcodeFormat.QRCode)
    return {read_barcode.text for read_barcode in zxingcpp.read_barcodes(pixels, formats=formats)}
