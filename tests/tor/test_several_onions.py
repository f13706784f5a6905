"""A study at two onion addresses, each with a tor of its own: real peers draw one of them for each exchange.

The aggregator is served by the commands of the systemd unit in `deploy/`: two processes on a PostgreSQL server. The
soak has one process on a file.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from math import ceil
from pathlib import Path

import pytest
from attrs import define, field

from anon.kit.testnet import PrivateNetwork
from anon.route import Response, Route, SocksRoute
from anon.wire.invite import parse_invite
from peer.app import PeerApp
from peer.data.importing import import_file
from peer.rules.consent import Policy
from peer.store.home import PeerHome
from tests.support.command_line import ENVIRONMENT, ROOT, anonml
from tests.support.deployed import database_set_up, unit_words
from tests.support.onion_commands import OnionServing, children_of, onion_study, tors_of
from tests.support.postgres import Server
from tests.support.routes import Ask, Exchanges, onward
from tests.support.studies import ONE_PACKET

pytestmark = [pytest.mark.tor, pytest.mark.postgres]
PEERS = 3
QUIET = 7.0
"""Seconds until two tors answer, on a quiet machine."""


@define
class Recorded(Exchanges):
    """A peer's route through Tor, and where its exchanges went."""

    route: Route
    came: list[tuple[str, str]] = field(factory=list)

    async def exchange(self, ask: Ask) -> Response:
        self.came.append((ask.address, ask.kind))
        return await onward(self.route, ask)


@define
class Seen:
    """The outcome, as the tests look at it."""

    addresses: list[str] = field(factory=list)
    link: str = ""
    tors: int = 0
    processes: int = 0
    went: list[list[tuple[str, str]]] = field(factory=list)
    statuses: list[list[tuple[str, str]]] = field(factory=list)
    code: int = -1
    left: list[int] = field(factory=list)


async def _beside(pid: int) -> None:
    """Until a further process of the aggregator runs."""
    for _ in range(300):
        if any("spawn_main" in Path(f"/proc/{child}/cmdline").read_text() for child in children_of(pid)):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("no further process came up")


async def _member(folder: Path, number: int, link: str, route: Recorded) -> list[tuple[str, str]]:
    """Join, send, and find the packet again; status and word of each packet."""
    file, home = folder / f"{number}.csv", PeerHome(folder / f"peer-{number}")
    file.write_text(
        f"age,sex,income\n{20 + 15 * number},{('Female', 'Male')[number % 2]},{('low', 'high')[number % 2]}\n"
    )
    policy = Policy(minimum_cohort=2, minimum_window=0)
    home.prepare()
    with closing(PeerApp(home, lambda: route, time.time, os.urandom, policy=policy)) as app:
        import_file(home.data_path, file, "person")
        invite = parse_invite(link)
        await app.join(invite, (await app.look(invite)).charge.amount)
        await app.run(max_seconds=240, once=True)
        return [(str(one.status), one.word) for one in app.receipts()]


@contextmanager
def _serving(home: Path, server: Server | None) -> Iterator[OnionServing]:
    if server is None:
        yield OnionServing(home, more=("--onions", "2"))
        return
    with database_set_up(server):
        begin = unit_words("ExecStartPre", home, server.folder)
        for _ in range(2):  # as at each start
            subprocess.run(
                [sys.executable, "-m", "anonml", *begin],
                check=True,
                cwd=ROOT,
                env=ENVIRONMENT,
                stdout=subprocess.DEVNULL,
            )
        yield OnionServing(home, "-m", "anonml", *unit_words("ExecStart", home, server.folder))


@pytest.fixture(scope="module", params=["server", pytest.param("file", marks=pytest.mark.soak)])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, through_tor: PrivateNetwork) -> Seen:
    folder, seen = tmp_path_factory.mktemp("onions"), Seen(processes=2 if request.param == "server" else 1)
    server = request.getfixturevalue("postgres") if request.param == "server" else None

    async def run(staff: OnionServing) -> None:
        began = time.monotonic()
        try:
            await staff.start()
            slowness = max(1.0, (time.monotonic() - began) / QUIET)
            lengths = {
                name: ceil(slowness * length) for name, length in {"enrol": 12, "settle": 3, "collect": 30}.items()
            }
            (folder / "study.toml").write_text(onion_study("Two", ONE_PACKET, "open", **lengths, margin=1))
            study = await anonml("study", "publish", folder / "study.toml", "--home", staff.home)
            seen.addresses, seen.tors = study["addresses"], len(tors_of(staff.pid))
            if seen.processes > 1:
                await _beside(staff.pid)
            assert staff.addresses == seen.addresses
            (seen.link,) = await staff.invited(study["study"])
            routes = [Recorded(SocksRoute(*through_tor.socks)) for _ in range(PEERS)]
            members = (_member(folder, number, seen.link, route) for number, route in enumerate(routes))
            seen.statuses = await asyncio.gather(*members)
            seen.went = [route.came for route in routes]
            children = children_of(staff.pid)
        finally:
            seen.code = await staff.stop()
        for _ in range(30):
            seen.left = [child for child in children if Path(f"/proc/{child}").exists()]
            await asyncio.sleep(0.1 if seen.left else 0)

    with _serving(folder / "staff", server) as staff:
        asyncio.run(run(staff))
    return seen


def test_each_address_has_a_tor_and_every_packet_is_found_again(seen: Seen) -> None:
    assert len(set(seen.addresses)) == seen.tors == 2
    assert seen.statuses == [[("included", "accepted")]] * PEERS


def test_all_processes_end_with_the_one_that_started_them(seen: Seen) -> None:
    assert (seen.code, seen.left) == (0, [])


def test_exchanges_of_one_peer_go_to_both_addresses(seen: Seen) -> None:
    """The first, before the manifest is known, goes to the link's. That no peer uses both happens once in 2**15."""
    first = seen.addresses[0]
    assert seen.link.startswith(f"anonml://{first}/")
    assert [went[0] for went in seen.went] == [(first, "get")] * PEERS
    drawn = [[address for address, _ in went[1:]] for went in seen.went]
    assert min(map(len, drawn)) >= 6 and {what for went in seen.went for _, what in went} == {"get", "post"}
    assert any(set(addresses) == set(seen.addresses) for addresses in drawn)
    assert set().union(*drawn) <= set(seen.addresses)
