"""The toy `letters` through Tor: members who write to each other by the app of an aggregator behind its onion."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from aggregator.app import AggregatorApp
from anon.kit.testnet import PrivateNetwork
from anon.route.tor import TorKeeper
from anon.serving.onion_key import keep_key
from anon.storage.home import aggregators_home
from peer.rules.lifecycle import State
from tests.support.clock import Clock
from tests.support.course import Person, live_on
from tests.support.letters_world import PROTOCOLS, STUDY, learned
from tests.support.world import published
from tests.tor.test_toys_through_tor import _peer

pytestmark = [pytest.mark.tor, pytest.mark.timeout(300)]


async def test_a_sum_under_masks_through_tor(
    tmp_path: Path, through_tor: PrivateNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three members, of whom the second and the third are tired."""
    monkeypatch.setenv("ANONML_TORRC", str(through_tor.torrc_file))
    clock, home = Clock(), aggregators_home(tmp_path / "staff")
    async with (
        AggregatorApp(home, clock, os.urandom, processes=0, protocols=PROTOCOLS) as app,
        TorKeeper(tmp_path / "tor") as keeper,
    ):
        key = keep_key(app.home.path, os.urandom)
        up: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        manifest = await app.create_study(PROTOCOLS.proposal(STUDY), key.address())
        serving = asyncio.create_task(app.serve_onion(lambda _: (key,), up.set_result))
        peers = [_peer(tmp_path / f"peer-{number}", min(number, 1), keeper, clock, PROTOCOLS) for number in range(3)]
        try:
            await asyncio.wait({up, serving}, return_when=asyncio.FIRST_COMPLETED)
            assert up.done(), serving.exception()
            invites = await app.create_invites(manifest.study_id, len(peers), key.address())
            for peer, invite in zip(peers, invites, strict=True):
                await peer.join(invite, (await peer.look(invite)).epsilon)
            people = [Person(f"peer-{number}", peer, app, peer._home) for number, peer in enumerate(peers)]
            await live_on(clock, people, manifest.timetable.ends + 8 * 86400.0)
            assert [[status.state for status in peer.status()] for peer in peers] == [[State.FINISHED]] * 3
            assert learned(await published(app.study(manifest.study_id)))[:2] == ("2", "3")
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            for peer in peers:
                peer.close()
