"""Results that are kept between runs, so that a run that was stopped goes on and the page can be written again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from attrs import define, field

from benchmarks.figures import Figure

Key = Mapping[str, str | int | float | bool | None]


@define
class Kept:
    """One JSON line for each result, in one file for each figure. `fresh`: measure again what is there."""

    folder: Path
    fresh: bool = False
    _known: dict[str, dict[str, list[Figure]]] = field(factory=dict, init=False, repr=False)

    def of(self, figure: str, key: Key, measure: Callable[[], list[Figure]]) -> list[Figure]:
        """The rows kept under this key, or measured now and kept."""
        known = self._read(figure)
        name = json.dumps(dict(key), sort_keys=True)
        if name not in known:
            known[name] = measure()
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / f"{figure}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": name, "rows": known[name]}) + "\n")
        return known[name]

    def rows(self, figure: str) -> list[Figure]:
        """Every row of a figure, in the order of measuring."""
        return [row for rows in self._read(figure).values() for row in rows]

    def _read(self, figure: str) -> dict[str, list[Figure]]:
        if figure not in self._known:
            file = self.folder / f"{figure}.jsonl"
            if self.fresh:
                file.unlink(missing_ok=True)
            self._known[figure] = dict(_lines(file)) if file.is_file() else {}
        return self._known[figure]


def _lines(file: Path) -> Iterator[tuple[str, list[Figure]]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        yield found["key"], found["rows"]
