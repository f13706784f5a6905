"""QR codes that pages draw and printers print: pictures of them, and what a reader of codes finds there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import zxingcpp
from PIL import Image, ImageDraw

DARK = re.compile(r'stroke="#000".*?d="([^"]+)"')


def codes_in(picture: Image.Image) -> list[str]:
    """The texts of all codes in a picture."""
    return [found.text for found in zxingcpp.read_barcodes(picture.convert("L"))]


def scaled(svg: str, width: int) -> Image.Image:
    """A drawing whose style gives it a width in pixels, as SVG 2 section 8.6 has it: one without a `viewBox` is cut."""
    box = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    scale = width / int(box[1]) if box else 1.0
    turned = re.search(r'transform="scale\(([\d.]+)\)"', svg)
    scale *= float(turned[1]) if turned else 1.0
    picture = Image.new("L", (width, width), 255)
    pen, x, y = ImageDraw.Draw(picture), 0.0, 0.0
    runs = DARK.search(svg)
    assert runs is not None, "a code has dark modules"
    for kind, numbers in re.findall(r"([Mmh])([-\d. ]+)", runs[1]):
        values = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        if kind == "h":
            pen.rectangle([scale * x, scale * (y - 0.5), scale * (x + values[0]) - 1, scale * (y + 0.5) - 1], fill=0)
            x += values[0]
        else:
            x, y = (values[0], values[1]) if kind == "M" else (x + values[0], y + values[1])
    return picture


def leaves(pdf: bytes, folder: Path, dots: int = 150) -> list[Image.Image]:
    """The pages of a PDF as a printer with so many dots per inch prints them, by poppler's pdftoppm."""
    file = folder / "printed.pdf"
    file.write_bytes(pdf)
    subprocess.run(["pdftoppm", "-r", str(dots), "-gray", "-png", file, folder / "leaf"], check=True, timeout=60)
    return [Image.open(leaf) for leaf in sorted(folder.glob("leaf*.png"))]
