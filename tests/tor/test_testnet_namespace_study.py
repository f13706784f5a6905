"""A whole study by `anonml peer` and `anonml aggregator` in separate network namespaces: tor alone connects them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.support.studies import income_study
from tests.tor.network_namespaces import (
    ROOT,
    Namespaces,
    Told,
    needs_namespaces,
    relays_running,
    running,
    three_namespaces,
)

pytestmark = [pytest.mark.tor, pytest.mark.soak, needs_namespaces]

PEOPLE = (("Female", "high"), ("Male", "low"))
STUDY = income_study(title="Wires", age="", enrol=30, settle=12, collect=25, minimum=2)


@frozen
class Place:
    """A namespace in which commands are run."""

    name: str
    environment: dict[str, str]

    def anonml(self, *words: str | Path) -> str:
        """`anonml WORDS`, which must succeed; what it printed."""
        command = Namespaces.inside(self.name, sys.executable, "-m", "anonml", *map(str, words))
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, f"anonml {' '.join(map(str, words))}: {done.stderr or done.stdout}"
        return done.stdout


def _take_part(place: Place, home: Path, link: str) -> list[dict[str, Any]]:
    """One person: join, run until the study has ended; the receipts."""
    place.anonml("peer", "join", link, "--yes", "--home", home, "--route", "tor")
    place.anonml("peer", "run", "--home", home, "--route", "tor", "--max-seconds", "150")
    receipts: list[dict[str, Any]] = json.loads(place.anonml("peer", "receipts", "--home", home, "--json"))
    return receipts


def _settle_in(place: Place, home: Path, row: tuple[str, str]) -> None:
    home.parent.mkdir(exist_ok=True)
    file = home.with_suffix(".csv")
    file.write_text("sex,income\n" + ",".join(row) + "\n")
    place.anonml("peer", "import", file, "--table", "person", "--home", home)
    place.anonml("peer", "budget", "--minimum-cohort", "2", "--minimum-window", "0", "--home", home)


def _until(told: Told, phase: str, seconds: float) -> dict[str, Any]:
    """The aggregator's line that a study has come to this phase."""
    until = time.monotonic() + seconds
    while (line := told.next()).get("phase") != phase or "links" in line:
        assert time.monotonic() < until, f"no {phase} in time; the last was {line}"
    return line


def test_a_study_through_tor_alone(tmp_path: Path) -> None:
    with ExitStack() as stack:
        names = stack.enter_context(three_namespaces())
        environment, _ = stack.enter_context(relays_running(names, tmp_path))
        staff, peers = Place(names.aggregator, environment), Place(names.peer, environment)
        homes = [tmp_path / "peers" / str(number) for number in range(len(PEOPLE))]
        for home, row in zip(homes, PEOPLE, strict=True):
            _settle_in(peers, home, row)
        home = tmp_path / "staff"
        serve = ["-m", "anonml", "aggregator", "serve", "--onion", "--invites", str(len(PEOPLE)), "--json"]
        staff.anonml("aggregator", "init", "--home", home)
        told = stack.enter_context(
            running(names.aggregator, [*serve, "--home", str(home)], environment, tmp_path / "staff.log")
        )
        assert told.first["address"].endswith(".onion:80")
        (tmp_path / "study.toml").write_text(STUDY)
        staff.anonml("study", "publish", tmp_path / "study.toml", "--home", home)
        while "links" not in (line := told.next()):
            pass
        with ThreadPoolExecutor() as pool:
            receipts = list(pool.map(_take_part, [peers] * len(homes), homes, line["links"]))
        published = _until(told, "published", 60)
        assert (published["enrolled"], published["accepted"]) == (2, 2)
        assert [[one["status"] for one in each] for each in receipts] == [["included"], ["included"]]
        assert _listening(names.aggregator) == [], "an onion aggregator has no network address but tor's, on loopback"
        assert not [line for line in os.popen(f"ip -n {names.peer} route").readlines() if line.startswith("default")]


def _listening(name: str) -> list[str]:
    """TCP sockets of a namespace that listen on other addresses than loopback."""
    command = Namespaces.inside(name, "cat", "/proc/net/tcp")
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    local = [row.split()[1] for row in rows if row.split()[3] == "0A"]
    return [address for address in local if not address.startswith("0100007F")]
