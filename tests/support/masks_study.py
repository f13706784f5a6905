"""Studies of sums under masks for tests: the file, and its members in one process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from peer.data.importing import import_rows
from tests.support.studies import head_of, label_of, numeric, study
from tests.support.world import World, in_memory

MOMENTS = 'kind = "masked-moments"\nepsilon = 1.0'
AVERAGING = 'kind = "masked-averaging"\nepsilon = 1.0\nstrength = 0.1'
COLUMNS = ("day", "age", "sleep", "tired")
Rows = Sequence[tuple[object, ...]]


def masks_study(design: str = MOMENTS, keys: str = "", cohort: str = "minimum = 4\nmaximum = 20") -> str:
    """A study file. `keys`: those of many records, whose queries name the day."""
    asked = [f"SELECT day, {name} FROM person" if keys else None for name in ("age", "sleep", "tired")]
    features = [
        numeric("age", (0, 100), "cuts = [30, 60]", query=asked[0]),
        numeric("sleep", (0, 12), "cuts = [6]", query=asked[1]),
    ]
    head = head_of("Sleep", "To test sums.", list(COLUMNS), label_of("tired", 1, 0, query=asked[2]), features)
    text = study(head, design, {"enrol": "60m", "settle": "20m", "collect": "60m"}, cohort)
    return text.replace("version = 1", f"version = 1\n{keys}")


@asynccontextmanager
async def members(folder: Path, text: str, rows: Sequence[Rows]) -> AsyncIterator[World]:
    """A study in which members with these rows take part."""
    async with in_memory(folder / "home", text, len(rows)) as world:
        await world.settle_in(len(rows))
        for number, held in enumerate(rows):
            import_rows(world._home(number).data_path, "person", COLUMNS, held)
        yield world
