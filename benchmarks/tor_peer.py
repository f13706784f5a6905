"""The needs of a peer for a study of 13 packets through Tor: wall time, processor and memory of its own two processes.

The study is the paper's design with eleven numeric features: two histogram packets and eleven of binning. The real
commands run it: `anonml aggregator serve --onion`, and `anonml peer join` and `run` for each of two peers, on tors of
their own that join the given private network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from benchmarks.figures import Figure

ROOT = Path(__file__).resolve().parents[1]
NUMERIC = 11
HISTOGRAMS = 2
PACKETS = NUMERIC + HISTOGRAMS
WINDOWS = {"enrol": 40, "settle": 15, "binning": 40, "collect": 40}
SAMPLE_SECONDS = 0.1
NAMES = tuple(f"score_{number}" for number in range(NUMERIC))
FEATURE = """
[[features]]
name = "{name}"
kind = "numeric"
description = "A score"
query = "SELECT {name} FROM person"
range = [0, 100]
bins = 2
missing = 50
"""
STUDY = f"""
version = 1
title = "Thirteen packets"
purpose = "To measure a peer."
contact = "nobody@example.org"
[tables]
person = [{", ".join(f'"{name}"' for name in (*NAMES, "passed"))}]
[label]
name = "passed"
description = "Passed"
query = "SELECT passed FROM person"
positive = ["yes"]
negative = ["no"]
missing = "negative"
{"".join(FEATURE.format(name=name) for name in NAMES)}
[design]
kind = "paper"
partitions = 2
subset_size = 1
subsets_per_partition = {HISTOGRAMS}
epsilon_histogram = 0.5
epsilon_binning = 0.5
binning = "median"
binning_rounds = 2
[schedule]
enrol = "{WINDOWS["enrol"]}s"
settle = "{WINDOWS["settle"]}s"
binning = "{WINDOWS["binning"]}s"
collect = "{WINDOWS["collect"]}s"
[cohort]
minimum = 2
admission = "invite"
"""


@define
class Watched:
    """Processor seconds and the largest resident size, in bytes, of a process and of the tors it started, sampled."""

    pid: int
    own_cpu: float = 0.0
    own_peak: int = 0
    tor_cpu: float = 0.0
    tor_peak: int = 0
    _over: threading.Event = field(factory=threading.Event)

    def watch(self) -> None:
        """Until `over`."""
        while not self._over.wait(SAMPLE_SECONDS):
            with suppress(OSError, KeyError):
                self.own_cpu, self.own_peak = _cpu(self.pid), _peak(self.pid)
                for child in _children(self.pid):
                    self.tor_cpu, self.tor_peak = _cpu(child), _peak(child)

    def over(self) -> None:
        """Stop."""
        self._over.set()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak(pid: int) -> int:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def peer_of_13_packets(folder: Path, torrc: Path) -> Figure:
    """Run the study with two peers and measure the first. Raises `AssertionError` unless every packet was included."""
    folder.mkdir()
    environment = {**os.environ, "ANONML_TORRC": str(torrc), "OMP_NUM_THREADS": "1"}
    (folder / "study.toml").write_text(STUDY)
    homes = [folder / "peer-0", folder / "peer-1"]
    for number, home in enumerate(homes):
        _settle_in(home, number, environment)
    staff = folder / "staff"
    _anonml(environment, "aggregator", "init", "--home", str(staff))
    with _serving(staff, folder / "staff.log", environment) as lines:
        next(lines)
        _anonml(environment, "study", "publish", str(folder / "study.toml"), "--home", str(staff))
        links = next(line["links"] for line in lines if "links" in line)
        with ThreadPoolExecutor() as pool:
            figures = list(pool.map(lambda home, link: _take_part(home, link, environment), homes, links))
    for home in homes:
        receipts = json.loads(_anonml(environment, "peer", "receipts", "--home", str(home), "--json"))
        assert [one["status"] for one in receipts] == ["included"] * PACKETS, receipts
    return figures[0]


def _settle_in(home: Path, number: int, environment: Mapping[str, str]) -> None:
    file = home.with_suffix(".csv")
    values = [str(7 * number + 9 * index) for index in range(NUMERIC)]
    file.write_text(",".join((*NAMES, "passed")) + "\n" + ",".join((*values, "yes" if number else "no")) + "\n")
    _anonml(environment, "peer", "import", str(file), "--table", "person", "--home", str(home))
    limits = ("--minimum-cohort", "2", "--lifetime", "20", "--per-study", "20")
    _anonml(environment, "peer", "budget", *limits, "--home", str(home))


def _anonml(environment: Mapping[str, str], *words: str) -> str:
    command = [sys.executable, "-m", "anonml", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"anonml {' '.join(words)}: {done.stderr or done.stdout}"
    return done.stdout


@contextmanager
def _serving(home: Path, log: Path, environment: Mapping[str, str]) -> Iterator[Iterator[dict[str, Any]]]:
    command = [sys.executable, "-m", "anonml", "aggregator", "serve", "--onion", "--invites", "2", "--json"]
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*command, "--home", str(home)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        try:
            assert process.stdout is not None
            yield map(json.loads, process.stdout)
        finally:
            process.terminate()
            process.wait(30)


def _take_part(home: Path, link: str, environment: Mapping[str, str]) -> Figure:
    """One peer: how long joining took, then `run` under watch."""
    start = time.monotonic()
    _anonml(environment, "peer", "join", link, "--yes", "--home", str(home))
    joined = time.monotonic()
    command = [sys.executable, "-m", "anonml", "peer", "run", "--home", str(home)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    watched = Watched(process.pid)
    thread = threading.Thread(target=watched.watch)
    thread.start()
    try:
        process.wait(2 * sum(WINDOWS.values()))
    finally:
        watched.over()
        thread.join()
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == 0, f"peer run ended with {process.returncode}"
    return {
        "peer_packets": PACKETS,
        "peer_windows_seconds": sum(WINDOWS.values()),
        "peer_join_seconds": round(joined - start, 1),
        "peer_run_seconds": round(time.monotonic() - joined, 1),
        "peer_cpu_seconds": round(watched.own_cpu, 2),
        "peer_tor_cpu_seconds": round(watched.tor_cpu, 2),
        "peer_peak_mb": round(watched.own_peak / 1e6, 1),
        "peer_tor_peak_mb": round(watched.tor_peak / 1e6, 1),
    }
