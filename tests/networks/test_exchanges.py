"""The exchanges of one peer's life are those that docs/protocol.md lists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.world import World, in_memory, study_text

pytestmark = pytest.mark.usefixtures("answered_at_once")

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
ROW = re.compile(r"\| (?P<what>[^|]+) \| (?P<cuts>\d+) \| (?P<quantile>\d+) \| [^|]+ \|")
HEADS = "heads, "
NAMES = {
    "heads/opening": "heads with manifest and tellers' words, at `join`",
    "heads/clock": "heads with the time",
    "heads/closing": "heads with roster, seed, credentials",
    "heads/transcripts": "heads with the transcripts",
    "enrol": "enrolment",
    "packets": "packet",
    "heads": HEADS,
}
MOST = 10
"""In a study with one window."""


def _listed(design: str) -> Counter[str]:
    """The number of each exchange in the page's table. Looks at the heads alone are counted together: a check may be
    drawn before or within its window."""
    text = PAGE.read_text("utf-8").partition("### How many in a life")[2].partition("\n## ")[0]
    found: Counter[str] = Counter()
    for row in ROW.finditer(text):
        found[HEADS if row["what"].startswith(HEADS) else row["what"]] += int(row[design])
    return found


def _seen(world: World, number: int) -> Counter[str]:
    """One peer's exchanges under the names of the table."""
    kinds = {f"documents/{one.head.number}": one.head.kind for one in world.live.chain}
    return Counter(NAMES.get(one.what) or kinds[one.what] for one in world.routes[number].requests)


@pytest.mark.parametrize("design", ["cuts", pytest.param("quantile", marks=pytest.mark.slow)])
@pytest.mark.slow
async def test_a_life_has_the_exchanges_that_the_page_lists(tmp_path: Path, design: str) -> None:
    listed = _listed(design)
    week = study_text(design).replace('enrol = "100s"', 'enrol = "7d"')
    async with in_memory(tmp_path / "aggregator", week) as world:
        assert world.live.manifest.timetable.enrol_closes - world.clock() > 6 * 86400
        await world.settle_in(3)
        await world.go_on()
        for number in range(3):
            assert +_seen(world, number) == +listed
    assert design != "cuts" or listed.total() <= MOST
