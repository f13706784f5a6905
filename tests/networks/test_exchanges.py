"""The exchanges of one peer's life are those that docs/protocol.md lists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.world import World, in_memory, study_text

pytestmark = pytest.mark.usefixtures("answered_at_once")

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
ROW = re.compile(r"\| (?P<what>[^|]+) \| (?P<cuts>\d+(?: to \d+)?) \| (?P<quantile>\d+(?: to \d+)?) \| [^|]+ \|")
WATCHED, BETWEEN = "heads while enrolment is open", "heads, "


def _listed(design: str) -> dict[str, tuple[int, int]]:
    """The fewest and the most of each exchange in the page's table."""
    text = PAGE.read_text("utf-8").partition("### How many in a life")[2].partition("\n## ")[0]
    found = {}
    for row in ROW.finditer(text):
        first, _, last = row[design].partition(" to ")
        found[row["what"]] = (int(first), int(last or first))
    return found


def _seen(world: World, number: int) -> Counter[str]:
    """One peer's exchanges under the names of the table. Heads between enrolment and the last window are counted
    together: a check may be drawn before or within its window."""
    requests = world.routes[number].requests
    closes, ends = world.live.manifest.timetable.enrol_closes, max(window.closes for window in world.windows)
    kinds = {f"documents/{one.head.number}": one.head.kind for one in world.live.chain}
    joined = next(at for at, one in enumerate(requests) if one.what == "enrol")
    found: Counter[str] = Counter()
    for at, one in enumerate(requests):
        if one.what in ("enrol", "packets"):
            found["enrolment" if one.what == "enrol" else "packet"] += 1
        elif at < joined:
            found["heads and manifest, at `join`"] += 1
        elif one.what == "heads":
            found[WATCHED if one.at < closes else BETWEEN if one.at < ends else "heads after the last window"] += 1
        elif kinds.get(one.what) in ("roster", "seed", "credentials"):
            found["roster, seed, credentials"] += 1
        else:
            found["edges" if kinds.get(one.what) == "edges" else "transcripts"] += 1
    return found


@pytest.mark.parametrize("design", ["cuts", pytest.param("quantile", marks=pytest.mark.slow)])
async def test_a_life_has_the_exchanges_that_the_page_lists(tmp_path: Path, design: str) -> None:
    listed = _listed(design)
    between = [what for what in listed if what.startswith(BETWEEN)]
    assert len(listed) == 12 and len(between) == 4
    listed[BETWEEN] = (sum(listed.pop(what)[0] for what in between),) * 2
    async with in_memory(tmp_path / "aggregator", study_text(design)) as world:
        await world.settle_in(3)
        await world.go_on()
        for number in range(3):
            seen = _seen(world, number)
            assert set(seen) <= set(listed)
            assert all(fewest <= seen[what] <= most for what, (fewest, most) in listed.items()), (seen, listed)
