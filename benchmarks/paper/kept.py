"""Results that are kept between runs, so that a run that was stopped goes on and the page can be written again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from attrs import define, field

from benchmarks.figures import Figure
from benchmarks.paper import sources

Key = Mapping[str, str | int | float | bool | None]


@define
class Kept:
    """One JSON line for each result, in one file for each figure. `fresh`: measure again what is there.

    The key holds the digest of the code that measured, so that a change of the code measures again.
    """

    folder: Path
    fresh: bool = False
    _known: dict[str, dict[str, list[Figure]]] = field(factory=dict, init=False, repr=False)

    def has(self, figure: str, key: Key) -> bool:
        """True if the present code's result under this key is kept."""
        return _name(figure, key) in self._read(figure)

    def add(self, figure: str, key: Key, rows: list[Figure]) -> list[Figure]:
        """Keep rows under this key, each with the digest of the code that measured it."""
        source = _source(figure, key)
        stamped: list[Figure] = [{**row, "source": source} for row in rows]
        self._read(figure)[_name(figure, key)] = stamped
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{figure}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": _name(figure, key), "rows": stamped}) + "\n")
        return stamped

    def of(self, figure: str, key: Key, measure: Callable[[], list[Figure]]) -> list[Figure]:
        """The rows kept under this key, or measured now and kept."""
        if self.has(figure, key):
            return self._read(figure)[_name(figure, key)]
        return self.add(figure, key, measure())

    def rows(self, figure: str) -> list[Figure]:
        """Every row of a figure that the present code measured, in the order of measuring."""
        return [row for rows in self._read(figure).values() for row in rows if sources.is_current(figure, row)]

    def _read(self, figure: str) -> dict[str, list[Figure]]:
        if figure not in self._known:
            file = self.folder / f"{figure}.jsonl"
            if self.fresh:
                file.unlink(missing_ok=True)
            self._known[figure] = dict(_lines(file)) if file.is_file() else {}
        return self._known[figure]


def _source(figure: str, key: Key) -> str:
    return sources.digest(sources.kind_of(figure, str(key.get("design", ""))))


def _name(figure: str, key: Key) -> str:
    return json.dumps({**key, "source": _source(figure, key)}, sort_keys=True)


def _lines(file: Path) -> Iterator[tuple[str, list[Figure]]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        yield found["key"], found["rows"]
