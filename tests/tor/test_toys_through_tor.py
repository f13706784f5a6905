"""Protocols that no product file knows run through Tor: the app of an aggregator behind its onion, and apps of
peers."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from aggregator.app import AggregatorApp
from anon.kit.testnet import PrivateNetwork
from anon.ldp import nano
from anon.protocols.registry import ProtocolParts
from anon.route.tor import TorKeeper, TorRoute
from anon.serving.onion_key import keep_key
from anon.storage.home import aggregators_home
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.data.importing import import_rows
from peer.rules.consent import Policy
from peer.rules.lifecycle import State
from peer.store.home import PeerHome
from tests.networks.test_rows_protocol import GIVEN
from tests.networks.test_rows_protocol import STUDY as ROWS
from tests.networks.test_second_protocol import STUDY as COUNTED
from tests.support import drawn_rows, noisy_count
from tests.support.clock import Clock
from tests.support.course import Person, live_on
from tests.support.protocols import with_toy
from tests.support.world import published

pytestmark = [pytest.mark.tor, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("toy", "text", "given", "results"),
    [
        (noisy_count.PROTOCOL, COUNTED, {}, [("model", 0)]),
        (drawn_rows.PROTOCOL, ROWS, GIVEN, [("model", 0), ("rows", 0)]),
    ],
    ids=["noisy-count", "rows"],
)
async def test_a_whole_study_through_tor(
    tmp_path: Path, through_tor: PrivateNetwork, monkeypatch: pytest.MonkeyPatch,
    toy: ProtocolParts, text: str, given: dict[str, bytes], results: list[tuple[str, int]],
) -> None:  # fmt: skip
    monkeypatch.setenv("ANONML_TORRC", str(through_tor.torrc_file))
    clock, protocols = Clock(), with_toy(toy)
    home = aggregators_home(tmp_path / "staff")
    async with (
        AggregatorApp(home, clock, os.urandom, processes=0, protocols=protocols) as app,
        TorKeeper(tmp_path / "tor") as keeper,
    ):
        key = keep_key(app.home.path, os.urandom)
        up: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        manifest = await app.create_study(protocols.proposal(text), key.address(), given)
        serving = asyncio.create_task(app.serve_onion(lambda _: (key,), up.set_result))
        peers = [_peer(tmp_path / f"peer-{number}", number, keeper, clock, protocols) for number in range(2)]
        try:
            await asyncio.wait({up, serving}, return_when=asyncio.FIRST_COMPLETED)
            assert up.done(), serving.exception()
            invites = await app.create_invites(manifest.study_id, len(peers), key.address())
            for peer, invite in zip(peers, invites, strict=True):
                await peer.join(invite, (await peer.look(invite)).epsilon)
            people = [Person(f"peer-{number}", peer, app, peer._home) for number, peer in enumerate(peers)]
            await live_on(clock, people, manifest.timetable.ends + 8 * 86400.0)
            assert [[status.state for status in peer.status()] for peer in peers] == [[State.FINISHED]] * 2
            bodies = await published(app.study(manifest.study_id))
            assert [place for place in bodies if place in results] == results
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            for peer in peers:
                peer.close()


def _peer(path, number, keeper, clock, protocols) -> PeerApp:  # type: ignore[no-untyped-def]
    home = PeerHome(path)
    home.prepare()
    import_rows(home.data_path, "person", ("age", "cups", "tired"), [(30 + number, 2, number)])
    return PeerApp(
        home, lambda: TorRoute(keeper, timeout=60), clock, os.urandom, sleep=clock.sleep,
        policy=Policy(lifetime=nano(4.0), minimum_cohort=2), evaluate=at_once, protocols=protocols,
    )  # fmt: skip
