"""A route's words name whom it goes to: an aggregator, or a teller."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from aggregator.app import AggregatorApp
from aggregator.tellers.http_link import HttpLink
from anon.errors import Refused, Unreachable
from anon.route import DirectRoute, FarSide, SocksRoute
from anon.route.tor import TorRoute
from anon.route.tor.route import checked_onion
from tests.support.clock import Clock
from tests.support.served_tellers import free_port

OTHER = {FarSide.AGGREGATOR: "teller", FarSide.TELLER: "aggregator"}


@pytest.mark.parametrize("side", FarSide)
async def test_a_silence_and_a_refusal_name_the_side(side: FarSide) -> None:
    port = free_port()
    with pytest.raises(Unreachable, match=f"the {side.value} did not answer") as silent:
        await DirectRoute(5.0, side).get(f"127.0.0.1:{port}", "/", 10)
    with pytest.raises(Refused, match=side.value) as refused:
        checked_onion("example.org:80", side)
    words = [str(silent.value), str(refused.value), side.behind_proxy(OSError()), side.beyond_tor("x", "y")]
    assert all(side.value in one and OTHER[side] not in one for one in words)


def test_owners_routes_go_to_an_aggregator_and_staffs_links_to_tellers(tmp_path: Path) -> None:
    app = AggregatorApp(tmp_path, Clock(), processes=0)
    for address in ("127.0.0.1:1", "x" * 56 + ".onion:80"):
        link = app._link(address)
        assert isinstance(link, HttpLink) and isinstance(link.route, DirectRoute | TorRoute)
        assert link.route.far_side is FarSide.TELLER
    assert SocksRoute("127.0.0.1", 1).far_side is FarSide.AGGREGATOR
    assert inspect.signature(TorRoute).parameters["far_side"].default is FarSide.AGGREGATOR
