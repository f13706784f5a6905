"""Two machines on one PostgreSQL server take every packet once: a load test between network namespaces."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.machines import CLIENTS, Network
from tests.support.command_line import ROOT
from tests.tor.network_namespaces import needs_namespaces

MEASURE = """
import argparse, asyncio, json, pathlib, sys
from benchmarks import machines, workers
machines.WARM_UP = workers.WARM_UP = 4
kept, run = pathlib.Path(sys.argv[1]), sys.argv[2]
options = argparse.Namespace(machines=[2], packets=11, rate=50.0, kept=kept, inside=run)
print(json.dumps(asyncio.run(machines.measure(options))))
"""


@needs_namespaces
@pytest.mark.process
@pytest.mark.slow
@pytest.mark.postgres
def test_two_machines_on_one_database_lose_and_double_nothing(tmp_path: Path) -> None:
    """Each is a namespace of its own, and a packet that is sent again comes to the other one."""
    network = Network("test")
    with network.made():
        command = network.inside(CLIENTS, sys.executable, "-c", MEASURE, str(tmp_path), network.run)
        (row,) = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
    assert (row["accepted"], row["again_accepted"], row["lost"], row["doubled"]) == (22, 3, 0, 0)
    assert row["sent_to_each"] == "15/19"  # 4 to warm up and 11; four of the first are sent again to the other
    left = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    assert network.name(CLIENTS) not in left
