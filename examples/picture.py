"""A demo's study as it goes on, in the terminal: the virtual day, people and packets, and bars that leave the noise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from attrs import define, field
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from examples.clock import START
from examples.progress import Reached, reached_in, sight_in

LOOK_SECONDS = 0.25
DAY = 86400.0
WIDE = 46
_BLOCKS = " ▁▂▃▄▅▆▇█"
_NORMAL_95 = 1.96


@define
class Picture:
    """A study as far as it is known now. `clock` gives the virtual time."""

    folder: Path
    peers: int
    clock: Callable[[], float]
    _began: float = START
    _by_day: dict[int, int] = field(factory=dict)
    """Virtual day -> how many packets had left by its last look."""

    def look(self) -> tuple[timedelta, Reached]:
        """The virtual time since the beginning, and how far the peers are."""
        passed, reached = self.clock() - self._began, reached_in(self.folder)
        self._by_day[int(passed // DAY)] = reached.sent
        return timedelta(seconds=passed), reached

    def drawn(self, said: str) -> RenderableType:
        """The whole picture."""
        passed, reached = self.look()
        rows = Table.grid(padding=(0, 2))
        rows.add_row("enrolled", _bar(reached.enrolled / self.peers), f"{reached.enrolled:,} of {self.peers:,}")
        rows.add_row("packets", Text(_days(self._by_day), style="cyan"), f"{reached.sent:,} sent")
        parts: list[RenderableType] = [Text(f"{moment(passed)}: {said}"), Text(), rows]
        if sight := sight_in(self.folder / "sight.json"):
            parts += [Text(), _estimate(sight)]
        return Panel(Group(*parts), width=100, padding=(0, 2))

    def line(self, said: str) -> str:
        """The same in one line, for where there is no terminal."""
        passed, reached = self.look()
        sent = f", {reached.sent:,} packet{'s' * (reached.sent != 1)} sent" if reached.sent else ""
        return f"  {moment(passed)}: {said}; {reached.enrolled:,} enrolled{sent}"


def moment(passed: timedelta) -> str:
    """The virtual time in words: day 3, 14:05."""
    hours, minutes = divmod(passed.seconds // 60, 60)
    return f"day {passed.days + 1}, {hours:02d}:{minutes:02d}"


def _bar(share: float) -> Text:
    full = round(min(max(share, 0.0), 1.0) * WIDE)
    return Text("━" * full, style="green") + Text("━" * (WIDE - full), style="dim")


def _days(by_day: dict[int, int]) -> str:
    """A column for each virtual day: how many packets left on it."""
    counts, before = list[int](), 0
    for day in range(max(by_day, default=-1) + 1):
        sent = by_day.get(day, before)
        counts.append(sent - before)
        before = sent
    most = max(counts, default=0) or 1
    return "".join(_BLOCKS[-(-(count * 8) // most)] * 2 for count in counts)


def _estimate(sight: dict[str, Any]) -> RenderableType:
    """Each category's share with what noise leaves open: the bar is the estimate, the line its 95 % interval."""
    rows = Table.grid(padding=(0, 2))
    for row in sight["rows"]:
        low, high = (row["share"] + sign * _NORMAL_95 * row["error"] for sign in (-1, 1))
        rows.add_row(Text(str(row["name"])[:34]), _interval(row["share"], low, high), f"{100 * row['share']:5.1f} %")
    return Group(Text(f"{sight['title']}, from {sight['reports']:,} noisy answers so far", style="dim"), rows)


def _interval(share: float, low: float, high: float) -> Text:
    at = [round(min(max(value, 0.0), 1.0) * (WIDE - 1)) for value in (low, share, high)]
    drawn = Text()
    for place in range(WIDE):
        inside = at[0] <= place <= at[2]
        drawn.append("█" if place <= at[1] else ("─" if inside else " "), "yellow" if inside else "cyan")
    return drawn


@contextmanager
def shown(console: Console, picture: Picture, said: str) -> Iterator[None]:
    """Draw it while the block runs; without a terminal, a line for each virtual day."""
    ended = threading.Event()
    draw = _live if console.is_terminal else _lines
    thread = threading.Thread(target=draw, args=(console, picture, said, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _live(console: Console, picture: Picture, said: str, ended: threading.Event) -> None:
    with Live(picture.drawn(said), console=console, transient=True, auto_refresh=False) as live:
        while not ended.wait(LOOK_SECONDS):
            live.update(picture.drawn(said), refresh=True)


def _lines(console: Console, picture: Picture, said: str, ended: threading.Event) -> None:
    day = -1
    while not ended.wait(LOOK_SECONDS):
        passed, _ = picture.look()
        if passed.days > day:
            day = passed.days
            console.print(picture.line(said), highlight=False, markup=False, soft_wrap=True)
