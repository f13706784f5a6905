"""The published study that the third notebook audits: 80 made-up students, run by real peers of this machine.

    python -m benchmarks.notebook_study

It writes docs/researcher/notebooks/published-study.zip anew. A change of a document's form or of the report's words
needs that; tests/docs/test_researcher_pages.py audits it with the present program.
"""

from __future__ import annotations

import csv
import random
import tempfile
import zipfile
from pathlib import Path

from rich.console import Console

from examples.scenes import own_study
from examples.study_run import StudyRun, Wanted

TARGET = Path(__file__).resolve().parents[1] / "docs" / "researcher" / "notebooks" / "published-study.zip"
PEOPLE, OTHERS, SEED = 80, 40, 1
_INSTANT = (2026, 1, 1, 0, 0, 0)
STUDY = """
version = 1
title = "Course dropout, a made-up class"
purpose = "To show what a published study is made of."
contact = "nobody: these students are made up"
[tables]
activity = ["hours", "forum", "left_course"]
[label]
name = "dropout"
description = "Left the course before the final exam."
query = "SELECT left_course FROM activity"
positive = [1]
negative = [0]
missing = "negative"
[[features]]
name = "hours"
kind = "numeric"
description = "Hours spent on the course so far."
query = "SELECT hours FROM activity"
range = [0, 60]
cuts = [20]
missing = 0
[[features]]
name = "forum"
kind = "categorical"
description = "Use of the forum."
query = "SELECT forum FROM activity"
categories = ["never", "sometimes", "often"]
missing = "never"
[design]
kind = "one-packet"
epsilon = 4.0
[schedule]
enrol = "7d"
settle = "1h"
collect = "2d"
[cohort]
minimum = 40
"""


def students(count: int, seed: int) -> list[tuple[int, str, int]]:
    """Hours, use of the forum, and 1 for those who left: nearly all who spent few hours."""
    draws = random.Random(seed)
    found = []
    for _ in range(count):
        left = int(draws.random() < 0.4)
        found.append((
            draws.randrange(0, 20) if draws.random() < (0.95 if left else 0.08) else draws.randrange(20, 60),
            draws.choices(("never", "sometimes", "often"), (6, 3, 1) if left else (2, 4, 4))[0],
            left,
        ))
    return found


def main() -> None:
    """Run it, and write the archive."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "study.toml").write_text(STUDY, "utf-8")
        with (folder / "students.csv").open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([("hours", "forum", "left_course"), *students(PEOPLE + OTHERS, SEED)])
        scene = own_study(folder / "study.toml", folder / "students.csv", PEOPLE, SEED)
        run = folder / "run"
        run.mkdir()
        figures = StudyRun(Wanted(scene, run, SEED), Console()).figures()
        if not (figures["audited"] and figures["shown"]):
            raise SystemExit(f"not what the notebook says: {figures}")
        with zipfile.ZipFile(TARGET, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted((run / "published").rglob("*")):
                if path.is_file():
                    entry = zipfile.ZipInfo(path.relative_to(run / "published").as_posix(), _INSTANT)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, path.read_bytes())


if __name__ == "__main__":
    main()
