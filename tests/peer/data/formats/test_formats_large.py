"""Long files are streamed: what a process needs at its peak does not grow with the file."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.real_exports import edx_lines, moodle_csv, takeout_html, takeout_json
from tests.support.tries import soaked

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
MB = 1_000_000
GROWTH = 12 * MB
"""The bytes of memory that a long file may need beyond a short one: the database's own cache, and noise."""
_SCRIPT = """
import json, resource, sys
from pathlib import Path
from peer.data import foreign
from peer.data.importing import import_file
from peer.data.preview import preview
database, file = map(Path, sys.argv[1:])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count = preview(file).tables[0].count
summary = import_file(database, file)
foreign._CHILDREN.stop()
peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps([summary.format, summary.rows, summary.skipped, peak * 1024]))
"""


def imported(folder: Path, file: Path) -> tuple[str, int, int, int]:
    """Format, rows, skipped and the most resident bytes of a process that previews and imports the file, and of its
    child."""
    database = folder / "d.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, database, file], capture_output=True, text=True, check=True, cwd=ROOT
    )
    database.unlink()
    found = json.loads(done.stdout)
    return found[0], found[1], found[2], found[3]


def _repeated(file: Path, head: bytes, unit: bytes, tail: bytes, size: int) -> Path:
    with file.open("wb") as stream:
        stream.write(head)
        written = 0
        block = unit * max(1, MB // len(unit))
        while written < size:
            written += stream.write(block)
        stream.write(tail)
    return file


def _edx(folder: Path, size: int) -> Path:
    lines = [json.loads(line) for line in edx_lines(4)]
    for line in lines:
        line["event"] = {"answers": "x" * 4000}
    return _repeated(
        folder / "t.log", b"", "".join(json.dumps(line) + "\n" for line in lines).encode() + b"broken\n", b"", size
    )


def _json(folder: Path, size: int) -> Path:
    entries = takeout_json(2)[1:-1].replace("Searched for", "Searched for " + "x" * 4000).encode()
    return _repeated(folder / "MyActivity.json", b"[" + entries, b"," + entries, b"]", size)


def _html(folder: Path, size: int) -> Path:
    head, cells, tail = takeout_html().partition('<div class="outer-cell')
    unit = (cells + tail).partition("</div></body>")[0].replace("Topics", "x").replace("Weather", "w" * 4000)
    return _repeated(folder / "MyActivity.html", head.encode(), unit.encode(), b"</div></body></html>", size)


def _csv(folder: Path, size: int) -> Path:
    heading, *body = moodle_csv().splitlines(keepends=True)
    unit = "".join(body).replace("Course viewed", "Course viewed " + "x" * 4000)
    return _repeated(folder / "l.csv", heading.encode(), unit.encode(), b"", size)


FORMATS: dict[str, Callable[[Path, int], Path]] = {
    "edx": _edx,
    "takeout json": _json,
    "takeout html": _html,
    "moodle": _csv,
}


@pytest.mark.parametrize("name", soaked(2, FORMATS))
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str) -> None:
    short = imported(tmp_path, FORMATS[name](tmp_path, 6 * MB))
    long = imported(tmp_path, FORMATS[name](tmp_path, 36 * MB))
    assert long[0] == name.partition(" ")[0]
    assert long[1] > 5 * short[1] > 0
    assert long[3] - short[3] < GROWTH, f"{short[3] / MB:.0f} MB for 6 MB, {long[3] / MB:.0f} MB for 36 MB"


@pytest.mark.soak
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_a_gigabyte(tmp_path: Path, name: str) -> None:
    short = imported(tmp_path, FORMATS[name](tmp_path, 6 * MB))
    file = FORMATS[name](tmp_path, 1000 * MB)
    assert file.stat().st_size >= 1000 * MB
    before = time.monotonic()
    long = imported(tmp_path, file)
    print(
        f"{name}: {long[1]} rows, {long[2]} skipped, {time.monotonic() - before:.0f} s, peak {long[3] / MB:.0f} MB (6 "
        f"MB file: {short[3] / MB:.0f} MB)"
    )
    file.unlink()
    assert long[3] - short[3] < GROWTH
