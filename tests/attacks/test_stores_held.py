"""A store that another program holds, or whose disk is full: no study ends for it, and nothing is exchanged more
often."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from anon.errors import NoRoom
from peer.app import PeerApp
from peer.rules.lifecycle import State
from peer.run.following import POLL_SECONDS
from peer.store.database import store_file
from peer.store.home import PeerHome, RunElsewhere
from peer.store.store import Store
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer


async def looked(app: PeerApp, aggregator: FakeAggregator, times: int) -> None:
    """A run that looks at its studies so often."""
    for _ in range(times):
        with suppress(sqlite3.OperationalError):  # of the last study, told at the end
            await app.run(once=True)
        aggregator.clock.seconds += POLL_SECONDS


async def test_a_program_that_stands_still_within_a_transaction_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault was to be kept for the owner, in the store that was held: this second one ended the run of all
    studies."""
    monkeypatch.setattr(store_file, "BUSY_SECONDS", 0.01)
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    app.close()
    with closing(sqlite3.connect(app._home.store_path, isolation_level=None)) as stopped:
        stopped.execute("BEGIN IMMEDIATE")  # another `anonml peer`, stopped by Ctrl-Z
        await looked(app, aggregator, 2)
    assert app.store.state(aggregator.study) is State.CONSENTED
    await looked(app, aggregator, 20)
    assert app.store.state(aggregator.study) is State.ENROLLED
    app.close()


def test_a_reader_that_stands_still_holds_the_loop_up_for_a_moment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log was to be emptied, and readers were waited for 30 s: no packet of any study could leave meanwhile."""
    monkeypatch.setattr(store_file, "BUSY_SECONDS", 90.0)
    store = Store(tmp_path / "peer.sqlite", os.urandom)
    log = tmp_path / "peer.sqlite-wal"
    with closing(sqlite3.connect(tmp_path / "peer.sqlite", isolation_level=None)) as status:
        status.execute("BEGIN")
        status.execute("SELECT count(*) FROM studies").fetchone()
        began = time.monotonic()
        store.set_policy(store.policy())
        assert time.monotonic() - began < 60
        assert log.stat().st_size > 0
    store.pause(None, None)
    assert log.stat().st_size == 0, "emptied after the next transaction, whatever that is"
    store.close()


async def test_a_full_disk_is_no_reason_to_ask_every_five_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to an enrolment could not be kept, and the enrolment was sent again at every look: 120 times."""

    def full(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK")
        raise NoRoom("peer.sqlite: cannot be written")

    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    with monkeypatch.context() as filled:
        filled.setattr(app.store, "_commit", full)
        await looked(app, aggregator, 120)
    assert 2 <= len(aggregator.sent("enrol")) <= 20
    await looked(app, aggregator, 240)
    assert app.store.state(aggregator.study) is State.ENROLLED
    app.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows descriptors in /proc")
def test_a_program_that_is_being_started_holds_no_home(tmp_path: Path) -> None:
    """Between fork and exec it shares the lock of the process that starts it, which may have let the home go
    meanwhile."""
    home = PeerHome(tmp_path)
    with home.running():
        forked = os.dup(lock_of(tmp_path))
    ending = threading.Timer(0.05, os.close, (forked,))
    ending.start()
    with home.running():
        ending.join()
    with home.running(), pytest.raises(RunElsewhere), home.running():
        raise AssertionError


def lock_of(home: Path) -> int:
    """This process's descriptor of a home's lock."""
    (descriptor,) = [int(entry.name) for entry in Path("/proc/self/fd").iterdir() if entry.resolve() == home / "lock"]
    return descriptor
