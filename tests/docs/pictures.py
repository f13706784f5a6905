"""The README's pictures: cut from what the walk saw, kept small. `python tests/docs/pictures.py` puts the last run's
into `docs/pictures`, where the README finds them."""

from __future__ import annotations

import shutil
import sys
from html import escape
from pathlib import Path

from PIL import Image

OUT = Path(__file__).parent / "out"
KEPT = Path(__file__).resolve().parents[2] / "docs" / "pictures"
WIDTH = 640
COLOURS = 48
TALLEST = 760


def terminal(lines: list[tuple[str, str]]) -> str:
    """A page that shows commands and what they answered, as a terminal does."""
    shown = "".join(f"<b>$ {escape(command)}</b>\n{escape(answer)}\n" for command, answer in lines)
    style = "margin:0;background:#1c2327;color:#c9d2d6;font:15px/1.5 'DejaVu Sans Mono',monospace"
    return (
        f'<!doctype html><meta charset="utf-8"><style>b{{color:#8fd5da;font-weight:400}}</style><body style="{style}">'
        f'<pre style="margin:0;padding:16px 20px;white-space:pre-wrap;font:inherit">{shown}</pre>'
    )


def cut(source: Path, name: str, *parts: tuple[int, int]) -> Path:
    """Parts (top, bottom) of a picture, one below the other, in few colours."""
    with Image.open(source) as whole:
        pieces = [whole.convert("RGB").crop((0, top, whole.width, min(bottom, whole.height))) for top, bottom in parts]
    joined = Image.new("RGB", (pieces[0].width, sum(piece.height for piece in pieces)), "white")
    top = 0
    for piece in pieces:
        joined.paste(piece, (0, top))
        top += piece.height
    file = OUT / f"{name}.png"
    joined.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(file, optimize=True)
    return file


def main() -> None:
    """Replace the README's pictures by those of the last run."""
    found = sorted(OUT.glob("step-*.png"))
    if not found:
        sys.exit("no pictures yet: run `make pictures`, which runs the test that makes them")
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir(parents=True)
    for file in found:
        shutil.copyfile(file, KEPT / file.name)


if __name__ == "__main__":
    main()
