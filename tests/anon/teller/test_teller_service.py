"""Tellers as services in processes of their own: a whole sum over HTTP, kills at every point, a stop, two processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from anon.errors import Conflict, Refused
from anon.sharing import exchange
from anon.sharing.combine import combine
from anon.sharing.statements import Disagreed, check_countersignatures
from anon.teller import journal
from anon.teller.overview import overview
from tests.support.command_line import ROOT
from tests.support.served_tellers import ServedTeller, joined
from tests.support.tellers import PLACES, expected
from tests.support.tries import soaked

pytestmark = pytest.mark.process
WAY = [f"{side}-commit-of-{write}" for write in journal.WRITES if write != "stop" for side in ("before", "after")]


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[list[ServedTeller]]:
    served: list[ServedTeller] = []
    yield served
    for teller in served:
        teller.stop()


@pytest.mark.parametrize("deaths", soaked(2, ((WAY[::2], WAY[1::2]), (WAY, WAY))), ids=["one of them", "both"])
def test_a_whole_sum_with_tellers_killed_at_every_point(
    deaths: tuple[list[str], ...], tmp_path: Path, begun: list[ServedTeller]
) -> None:
    """Each dies at one point after the other. The sum is exact, and every repeated call is answered by the same
    bytes."""
    begun += [ServedTeller.begun(tmp_path / str(number), f"teller {number}", deaths[number]) for number in (0, 1)]
    world = joined(begun)
    manifest = world.aggregator.manifest.to_bytes()
    said = [teller.countersign(world.study, b"", manifest) for teller in world.tellers]
    check_countersignatures(world.study, world.arrangement, said)
    packets, occasion = world.packets(), world.occasion()
    statements = world.admit(packets)
    assert world.admit(packets) == statements
    accepted = world.settle(statements)
    assert world.settle(statements) == accepted == {packet.tag for packet in packets}
    body = world.list_of(accepted)
    signatures = world.signatures(body)
    assert world.signatures(body) == signatures
    shares = world.noisy(signatures)
    assert world.noisy(signatures) == shares
    assert combine(world.arrangement, occasion, body, signatures, shares).values == expected(PLACES[:4])
    for teller in world.tellers:
        teller.finish(world.study)
        teller.finish(world.study)
        with pytest.raises(Refused, match="over"):
            teller.admit(occasion, [])
    assert [teller.deaths for teller in begun] == [len(points) for points in deaths]
    assert [len(teller.crashes) for teller in begun] == [0, 0]
    (study,) = overview(tmp_path / "0" / "teller.sqlite")
    assert (study.stage, study.members, study.sums[0].stage) == ("over", 4, "done")
    assert study.sums[0].accepted == 4, "the list is kept when the shares are gone"


def test_tellers_that_were_shown_two_lists_tell_it_with_evidence(tmp_path: Path, begun: list[ServedTeller]) -> None:
    """Also a teller that is killed on each side of keeping the evidence."""
    points = ["before-commit-of-stop", "after-commit-of-stop"]
    begun += [
        ServedTeller.begun(tmp_path / str(number), f"teller {number}", points[: 2 - 2 * number]) for number in (0, 1)
    ]
    world = joined(begun)
    packets, occasion = world.packets(), world.occasion()
    accepted = world.settle(world.admit(packets))
    one = world.tellers[0].sign_list(occasion, world.list_of(accepted))
    with pytest.raises(Conflict, match="second list"):
        world.tellers[0].sign_list(occasion, world.list_of(accepted - {packets[0].tag}))
    with pytest.raises(Conflict):
        world.tellers[0].admit(
            occasion, [world.members[0].packet(world.arrangement, occasion, [0, 0]).relayed(0).to_bytes()]
        )
    other = world.tellers[1].sign_list(occasion, world.list_of(accepted - {packets[0].tag}))
    for teller, statement in ((world.tellers[0], other), (world.tellers[1], one)):
        with pytest.raises(Disagreed) as stopped:
            teller.add_noise(occasion, [statement])
        assert sorted(stopped.value.evidence.tellers) == [0, 1]
    assert [teller.deaths for teller in begun] == [2, 0]
    assert overview(tmp_path / "0" / "teller.sqlite")[0].sums[0].stage == "stopped: tellers disagree"


def test_a_home_is_served_once_and_its_process_stops_at_once(tmp_path: Path, begun: list[ServedTeller]) -> None:
    teller = ServedTeller.begun(tmp_path / "home", "one")
    name, words = exchange.read_words(teller.post(exchange.WORDS_PATH, None)[1])
    assert name == "one" and len(words.split("-")) == 12
    second = [sys.executable, "-m", "anonml", "teller", "serve", "--home", str(tmp_path / "home")]
    done = subprocess.run(second, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 4 and "another process serves" in done.stderr
    assert teller.stop() == 0
    with closing(sqlite3.connect(tmp_path / "home" / "teller.sqlite")) as connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
