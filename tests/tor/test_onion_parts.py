"""The parts of an onion service that need no tor keep their rules.

They are a peer's choice of the way, its messages while it waits, and the options that `serve` refuses.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aggregator.cli.main import app as aggregator
from anon.errors import Refused
from anon.route import DirectRoute, Response, SocksRoute
from anon.route.tor import TorEvent, TorRoute
from anon.route.tor.following import telling
from anon.wire.onion_address import onion_host
from examples.circuits import CircuitLog
from peer.network.routes import Routes

ONION = f"{onion_host(bytes(32))}:80"
LOOPBACK = "127.0.0.1:8750"


@pytest.mark.parametrize(
    ("name", "address", "kind"),
    [
        ("auto", ONION, TorRoute),
        ("auto", LOOPBACK, DirectRoute),
        ("auto", "[::1]:1", DirectRoute),
        ("tor", ONION, TorRoute),
        ("tor", LOOPBACK, TorRoute),  # which refuses it
        ("direct", ONION, DirectRoute),  # which refuses it
        ("socks://127.0.0.1:9050", ONION, SocksRoute),
    ],
)
def test_the_way_goes_by_the_address(tmp_path: Path, name: str, address: str, kind: type) -> None:
    assert isinstance(Routes(name, tmp_path / "tor")._leading_to(address), kind)
    assert not (tmp_path / "tor").exists(), "nothing is started before it is needed"


@pytest.mark.parametrize(
    "address", ["example.org:80", "10.0.0.1:80", "onion:80", "127.0.0.1.example.org:80", "localhost:1"]
)
async def test_nothing_else_is_spoken_to(tmp_path: Path, address: str) -> None:
    with pytest.raises(Refused, match="ask staff for a link with an onion address"):
        await Routes("auto", tmp_path).get(address, "/", 1)


async def test_tor_and_direct_refuse_what_is_not_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONML_TOR", "/nowhere")
    with pytest.raises(Refused):
        await Routes("tor", tmp_path).get(LOOPBACK, "/", 1)
    with pytest.raises(Refused):
        await Routes("direct", tmp_path).post(ONION, "/", b"", 1)


@pytest.mark.parametrize("name", ["", "onion", "socks://", "socks://x", "http://127.0.0.1:1", "socks://127.0.0.1:0"])
def test_another_name_says_what_is_expected(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match="expected auto, tor, direct or socks"):
        Routes(name, tmp_path)


@pytest.mark.slow
async def test_progress_is_told_once_each_and_wiped() -> None:
    told: list[str] = []
    steps = iter([None, 5, 5, 45])
    now: list[int | None] = [None]

    def percent() -> int | None:
        now[0] = next(steps, now[0])
        return now[0]

    async def work() -> Response:
        await asyncio.sleep(1)
        return Response(200, b"")

    assert (await telling(work(), percent, told.append)).status == 200
    assert told == ["connecting to Tor: 5 % ...", "connecting to Tor: 45 % ...", ""]


def test_serve_says_which_options_go_together(tmp_path: Path) -> None:
    for words in (
        ["--onion", "--port", "1"],
        ["--onion", "--host", "127.0.0.1"],
        ["--ephemeral"],
        ["--invites", "3"],
        ["--onions", "2"],
    ):
        result = CliRunner().invoke(aggregator, ["serve", "--home", str(tmp_path / "home"), *words])
        assert isinstance(result.exception, Refused), words
    assert not (tmp_path / "home").exists()


def test_circuits_are_counted_by_what_tor_said() -> None:
    """Two packets on circuits of their own, one whose circuit is none of a rendezvous, two requests that share one."""
    log = CircuitLog()
    for name, text in [
        ("CIRC", "7 BUILT $A~a,$B~b BUILD_FLAGS=NEED_CAPACITY PURPOSE=HS_CLIENT_REND HS_STATE=HSCR_JOINED"),
        ("CIRC", "8 BUILT $A~a PURPOSE=GENERAL"),
        ("CIRC_MINOR", '8 PURPOSE_CHANGED $A~a PURPOSE=HS_CLIENT_REND OLD_PURPOSE=GENERAL SOCKS_USERNAME="b"'),
        ("CIRC", "9 BUILT $A~a PURPOSE=HS_CLIENT_INTRO"),
        ("STREAM", '1 NEW 0 x.onion:80 SOCKS_USERNAME="a" SOCKS_PASSWORD="p"'),
        ("STREAM", '1 SUCCEEDED 7 x.onion:80 SOCKS_USERNAME="a" SOCKS_PASSWORD="p"'),
        ("STREAM", '2 SUCCEEDED 8 x.onion:80 SOCKS_USERNAME="b" SOCKS_PASSWORD="p"'),
        ("STREAM", '3 SUCCEEDED 9 x.onion:80 SOCKS_USERNAME="c" SOCKS_PASSWORD="p"'),
        ("STREAM", '4 SUCCEEDED 7 x.onion:80 SOCKS_USERNAME="d" SOCKS_PASSWORD="p"'),
    ]:
        log.heard(TorEvent(name, text))
    assert log.of(["a", "b"]) == {"7", "8"}
    assert log.of(["a", "d"]) == {"7"}
    assert log.of(["c"]) == set()
