"""A peer lives where POSIX is not: every call that Windows lacks has a twin on its path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from anon.storage.locks import locked, synced
from tests.support.clock import START, Clock
from tests.support.fake_aggregator import DECLARED, FakeAggregator

PROGRAM = Path(__file__).with_name("without_posix.py")


@pytest.mark.slow
def test_a_life_from_join_to_found_again_without_posix(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["state"] == "finished" and told["slots"] == ["included"] and told["rows"] > 0
    assert told["spent"] == FakeAggregator.with_study(DECLARED, Clock(START)).manifest.epsilon
    assert told["modules"] > 150 and told["locks"] > 0
    assert [one for one in told["proc"] if "statm" not in one] == []  # a reading of memory, which has a twin


@pytest.mark.slow
def test_a_lock_is_one_holders_and_a_shared_one_many(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.touch()
    one, two, three = (os.open(file, os.O_RDWR) for _ in range(3))
    assert locked(one) and not locked(two) and not locked(two, shared=True)
    os.close(one)
    assert locked(two, shared=True) and locked(three, shared=True) and not locked(three)
    os.close(two)
    os.close(three)
    synced(tmp_path)
