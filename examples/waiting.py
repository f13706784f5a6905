"""A wait that shows how far it has got: a bar on a terminal, elsewhere a line every few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

LOOK_SECONDS = 0.25
LINE_SECONDS = 5.0


@contextmanager
def waiting(
    console: Console, what: str, total: float | None, done: Callable[[], float] | None = None
) -> Iterator[None]:
    """Show `what` and how much of `total` is done while the block runs.

    `done` counts; without it the seconds since the beginning do. Without a `total` only that it goes on is shown.
    """
    began = time.monotonic()
    ended = threading.Event()
    reached = done or (lambda: time.monotonic() - began)
    show = _on_a_terminal if console.is_terminal else _in_lines
    thread = threading.Thread(target=show, args=(console, what, total, reached, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _on_a_terminal(
    console: Console, what: str, total: float | None, done: Callable[[], float], ended: threading.Event
) -> None:
    columns = (TextColumn("  {task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        while not ended.wait(LOOK_SECONDS):
            progress.update(task, completed=done())


def _in_lines(
    console: Console, what: str, total: float | None, done: Callable[[], float], ended: threading.Event
) -> None:
    while not ended.wait(LINE_SECONDS):
        share = "" if total is None else f" {min(done() / total, 1):4.0%}"
        console.print(f"  {what}...{share}", highlight=False)
