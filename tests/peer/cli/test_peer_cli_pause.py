"""Pausing by the command line."""

from __future__ import annotations

import time

import pytest

from peer.store.home import PeerHome
from peer.store.store import Store
from tests.support.peer_command import Command, Served


def _joined(command: Command, served: Served) -> None:
    command("budget", "--minimum-cohort", "3")
    assert command("join", served.link, "--yes").code == 0


def test_a_paused_home_sends_nothing_until_it_is_resumed(command: Command, served: Served) -> None:
    _joined(command, served)
    assert "paused" not in command("status").out
    assert "paused until" in command("pause", "2h").out
    assert "everything is paused until" in command("status").out
    assert command("run", "--once", "--max-seconds", "1").code == 0
    assert served.aggregator.posts == []
    assert command("resume").code == 0
    assert command("run", "--once", "--max-seconds", "1").code == 0
    assert [what for what, *_ in served.aggregator.posts] == ["enrol"]


def test_one_study_is_paused_by_its_id(command: Command, served: Served) -> None:
    _joined(command, served)
    assert command("pause", "30m", "--study", served.aggregator.study.hex()[:6]).code == 0
    assert f"{served.aggregator.study.hex()[:8]} is paused until" in command("status").out
    store = Store(PeerHome(command.home).store_path, lambda size: bytes(size))
    until = store.paused_until(served.aggregator.study) - time.time()
    assert 29 * 60 < until <= 30 * 60 and store.paused_until() == 0
    store.close()


@pytest.mark.parametrize("wrong", ["soon", "4", "4y", "h", "999999d"])
def test_a_duration_that_is_none_is_named(command: Command, served: Served, wrong: str) -> None:
    _joined(command, served)
    done = command("pause", wrong)
    assert done.code == 3 and "30m, 4h or 2d" in done.err
