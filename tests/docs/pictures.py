"""Pictures for README and documents, kept small: cut from what the newcomer's walk saw, and from a report.

    python -m tests.docs.pictures [REPORT.html]      put those of the last run, and of a report, into docs/pictures
"""

from __future__ import annotations

import shutil
import sys
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from tests.support.browsing import chromium

OUT = Path(__file__).parent / "out"
KEPT = Path(__file__).resolve().parents[2] / "docs" / "pictures"
MOVING, MOVED = KEPT / "a-yes.gif", ("step-4-look-at-it", "step-5-read-and-decide", "step-6-sent")
WIDTH = 640
COLOURS, FEW_COLOURS = 48, 24
TALLEST, FINDING = 760, 650
SCROLLED = 400
"""Pixels from one picture of a page to the next."""


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


def moving(steps: list[Path], file: Path) -> None:
    """The steps one after the other, as somebody goes through them: a window that moves down each page."""
    frames, lengths = [], []
    for step in steps:
        with Image.open(step) as whole:
            page = Image.new("RGB", (WIDTH, max(TALLEST, whole.height)), whole.convert("RGB").getpixel((0, 0)))
            page.paste(whole.convert("RGB"), (0, 0))
        last = page.height - TALLEST
        for top in [*range(0, last, SCROLLED), last]:
            shown = page.crop((0, top, WIDTH, top + TALLEST))
            frames.append(shown.quantize(FEW_COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE))
            lengths.append(2_500)
    frames[0].save(file, save_all=True, append_images=frames[1:], duration=lengths, loop=0, optimize=True)


def of_report(file: Path) -> None:
    """The beginning of a report, as a browser shows it."""
    OUT.mkdir(exist_ok=True)
    with TemporaryDirectory() as profile, chromium(Path(profile)) as browser:
        browser.view(WIDTH, "light", TALLEST)
        browser.open(file.resolve().as_uri())
        cut(browser.shot("last", OUT), "report", (0, FINDING))


def main() -> None:
    """Replace the pictures by those of the last run."""
    for report in sys.argv[1:]:
        of_report(Path(report))
    found = sorted([*OUT.glob("step-*.png"), *OUT.glob("report.png")])
    if not found:
        sys.exit("no pictures yet: run `make pictures`, which runs the test that makes them")
    for file in found:
        shutil.copyfile(file, KEPT / file.name)
    moving([KEPT / f"{name}.png" for name in MOVED], MOVING)


if __name__ == "__main__":
    main()
