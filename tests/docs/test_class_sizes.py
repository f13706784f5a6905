"""The page about class sizes: its rule of thumb holds in its own tables, and the benchmark writes such tables."""

from __future__ import annotations

import re

from aggregator.lab.simulation.people import people_from_rows
from anon.study.proposal import load_proposal
from benchmarks.class_sizes import BEGIN, END, EPSILONS, HOPELESS, SIZES, WORKS, asking, measure, tables
from benchmarks.class_sizes import STUDY as CENSUS
from examples.census.data import COLUMNS
from tests.docs.repository import ROOT

PAGE = ROOT / "docs" / "staff" / "class-size.md"


def shown(text: str) -> dict[tuple[int, float], float]:
    """The shares of the first table, by size and epsilon."""
    rows = re.findall(r"^\| ([\d,]+) \|((?: \d+%, [\w -]+\|)+)$", text, re.MULTILINE)
    found = {
        (int(size.replace(",", "")), epsilon): int(share) / 100
        for size, cells in rows[: len(SIZES)]
        for epsilon, share in zip(EPSILONS, re.findall(r"(\d+)%", cells), strict=True)
    }
    assert len(found) == len(SIZES) * len(EPSILONS)
    return found


def test_the_rule_of_thumb_is_what_was_measured() -> None:
    measured = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    found = shown(measured)
    for epsilon, enough in ((4.0, 500), (2.0, 2_000), (1.0, 10_000)):
        assert found[enough, epsilon] >= WORKS
        assert all(found[size, epsilon] < WORKS for size in SIZES if size < enough)
    assert all(share < HOPELESS for (size, _), share in found.items() if size < 200)
    assert all(found[size, 0.5] < HOPELESS for size in SIZES)


def test_a_measured_study_becomes_a_table() -> None:
    """Of people made up so that schooling decides all: even few of them are heard at a large epsilon."""
    blank = dict.fromkeys(COLUMNS)
    rows = [blank | {"education_num": 16 * (n % 2), "income": (">50K", "<=50K")[n % 2]} for n in range(400)]
    study = asking(load_proposal(CENSUS), ("education_num",), 4.0)
    people = people_from_rows(study, rows)
    found = measure(study, people, people, 300, 6, [1])
    assert found["shown"] == 1 and found["auc_mean"] == 1 and found["accuracy_low"] == 1
    every = [{"features": many, "people": size, "epsilon": epsilon, **found} for many in ("eleven", "three") for size in SIZES for epsilon in EPSILONS]
    text = tables(every, 0.75)
    assert text.count("| 100%, works | 100%, works | 100%, works | 100%, works |") == 2 * len(SIZES)
    assert "1.00 (1.00 to 1.00)" in text and "right in 75.0%" in text
