"""The event loop that times packets is never held up by an aggregator's long documents or by the page's computations.

Both once held it for a second and more.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anon.queries import process
from anon.queries.answers import Question, Request, parse_answers
from peer.data.importing import import_rows
from peer.rules.lifecycle import State
from tests.support.fake_aggregator import DECLARED, FakeAggregator, advance, peer, until_closed
from tests.support.visiting import visited

LOOP = threading.current_thread()


def noted(names: list[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which notes the threads that it is called in."""

    def called(*given: Any, **named: Any) -> Any:
        names.append("loop" if threading.current_thread() is LOOP else "thread")
        return function(*given, **named)

    return called


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where stored heads are verified again: 4,000 of them take 0.4 s, and 20 s in Python alone."""
    from peer.store import records

    names: list[str] = []
    monkeypatch.setattr(records, "parse_chain", noted(names, records.parse_chain))
    return names


@pytest.mark.slow
@pytest.mark.skipif(not process.has_children(), reason="no child processes here")
async def test_an_evaluator_that_was_killed_is_started_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting a program took 2 to 76 ms, in which no packet could leave."""
    import_rows(tmp_path / "data.sqlite", "person", ("age",), [(60,)])
    request = Request(
        tmp_path / "data.sqlite", {"person": ("age",)}, (Question("numeric", "select age from person"),), 0
    )
    started: list[str] = []
    monkeypatch.setattr(subprocess, "Popen", noted(started, subprocess.Popen))
    for server in process._SERVERS:
        server.stop()
    await process.start()
    assert started == ["thread"] * len(process._SERVERS), "a fork that is under way holds the locks of this process"
    for killed in (False, True):
        if killed and process._SERVER._process is not None:
            process._SERVER._process.kill()
            process._SERVER._process.wait()
        assert parse_answers(request, await process.by_deadline(process.queries(request), 2.5)) == (60.0,)
    assert started == ["thread"] * (len(process._SERVERS) + 1)


async def test_stored_heads_are_read_beside_the_loop_in_a_whole_life(tmp_path: Path, parsed: list[str]) -> None:
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator, 4)
    await advance(app, aggregator, aggregator.manifest.windows[-1].closes)
    aggregator.transcribe()
    await advance(app, aggregator)
    assert app.store.state(aggregator.study) is State.FINISHED
    assert len(parsed) > 1 and set(parsed) == {"thread"}
    app.close()


async def test_a_study_that_is_looked_at_on_the_page_is_computed_beside_the_loop_and_once(
    tmp_path: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open page asks again every three seconds; a study of three packets took 1.6 s each time."""
    from anon.accounting import statement

    composed: list[str] = []
    monkeypatch.setattr(statement, "compose", noted(composed, statement.compose))
    async with visited(tmp_path) as page:
        aggregator = page.aggregator
        await page.peer.join(aggregator.invite, aggregator.manifest.epsilon)
        await until_closed(page.peer, aggregator, 4)
        await advance(page.peer, aggregator, aggregator.manifest.windows[0].opens)
        parsed.clear()
        for _ in range(3):
            got = await page.get(f"/study/{aggregator.study.hex()}")
            assert got.status == 200 and "members" in got.words
    assert set(parsed) == {"thread"}
    assert composed == ["thread"]
