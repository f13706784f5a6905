"""Peers in processes of their own: what each sends is the same, byte for byte, and nothing leaves but to tor's port.

ANONML_OTHER_PYTHONS names further interpreters that can run the package (separated as in PATH); they take part in the
same study. Without it those tests are skipped by name.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.support.socks_recorder import Heard
from tests.support.watched_study import ADDRESS, Variant, Watched, serving, whole_study
from tests.support.witnesses import audited, connections, strace_works, traced

pytestmark = [pytest.mark.process, pytest.mark.timeout(200)]
"""A watched program that waits is ended after two minutes, and says where it was."""

PROXY = "http://127.0.0.1:9"
OTHERS = [one for one in os.environ.get("ANONML_OTHER_PYTHONS", "").split(os.pathsep) if one]
PROXIES = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), PROXY)
VARIANTS = [
    Variant("plain"),
    Variant("locale and zone", {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"}),
    Variant("clock", {"TZ": "Pacific/Marquesas", "LC_ALL": "C", "PYTHONHASHSEED": "7"}, skew=0.4),
    Variant("proxies and netrc", {**PROXIES, "NETRC": "netrc"}),
    Variant(
        "other http code", {"AIOHTTP_NO_EXTENSIONS": "1", "MULTIDICT_NO_EXTENSIONS": "1", "YARL_NO_EXTENSIONS": "1"}
    ),
    *([Variant("traced", traced=True)] if strace_works() else []),
    *[Variant(python, python=python) for python in OTHERS],
]
NAMES = [one.name for one in VARIANTS]
KINDS = {"GET heads", "POST enrol", "POST packets", "GET heads/opening"}


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Watched]:
    """One whole study in which every variant took part."""
    folder = tmp_path_factory.mktemp("watched")
    netrc = folder / "netrc"
    netrc.write_text(
        f"machine {ADDRESS.rpartition(':')[0]} login somebody password something\ndefault login a password b\n"
    )
    netrc.chmod(0o600)
    variants = [
        Variant(one.name, {**one.environment, "NETRC": str(netrc)}, one.skew, one.python, one.traced)
        if "NETRC" in one.environment
        else one
        for one in VARIANTS
    ]
    return {one.variant.name: one for one in asyncio.run(whole_study(folder, variants))}


def _shapes(peer: Watched) -> dict[str, set[tuple[bytes, int]]]:
    """Per kind of request, its header bytes and the length of its body."""
    found: dict[str, set[tuple[bytes, int]]] = {}
    for one in peer.socks.heard:
        found.setdefault(one.kind, set()).add((one.head, len(one.body)))
    return found


def _doors(peer: Watched) -> set[tuple[bytes, int, int, bytes]]:
    """How the SOCKS port was spoken to: greeting, lengths of the credentials, what was asked for."""
    return {(one.greeting, len(one.user), len(one.password), one.asked) for one in peer.socks.heard}


def _packets(peer: Watched) -> list[Heard]:
    return [one for one in peer.socks.heard if one.kind == "POST packets"]


@pytest.mark.parametrize("name", NAMES)
def test_every_peer_lived_a_whole_life(lives: dict[str, Watched], name: str) -> None:
    peer = lives[name]
    assert peer.code == 0, peer.said
    (receipt,) = json.loads(peer.said.strip().splitlines()[-1])
    assert receipt["status"] == "included"
    assert set(_shapes(peer)) >= KINDS
    assert len({one.body for one in _packets(peer)}) == 4, "two connections in each of two windows"


@pytest.mark.parametrize("name", NAMES[1:])
def test_what_the_aggregator_sees_is_the_same_for_every_peer(lives: dict[str, Watched], name: str) -> None:
    """The kind of address, the header bytes in their order, and the body's length, for every kind of request."""
    ours, theirs = _shapes(lives["plain"]), _shapes(lives[name])
    assert theirs == ours
    assert all(len(shapes) == 1 for shapes in ours.values()), "and for every request of a kind"
    assert _doors(lives[name]) == _doors(lives["plain"])


def test_header_bytes_are_these_and_no_others(lives: dict[str, Watched]) -> None:
    study = lives["plain"].socks.heard[0].head.split(b"/")[2].decode()
    sizes = {"POST enrol": None, "POST packets": None}
    for kind, shapes in _shapes(lives["plain"]).items():
        ((head, length),) = shapes
        method, what = kind.split(" ")
        lines = [f"{method} /v1/{study}/{what} HTTP/1.1", f"Host: {ADDRESS.removesuffix(':80')}"]
        assert head.decode().split("\r\n")[:2] in (lines, [lines[0], f"Host: {ADDRESS}"])
        assert {line.split(":")[0] for line in head.decode().split("\r\n")[1:] if line} <= {
            "Host",
            "Content-Length",
            "Connection",
        }
        assert (length > 0) == (kind in sizes)


def test_every_request_has_credentials_of_its_own(lives: dict[str, Watched]) -> None:
    every = [(one.user, one.password) for peer in lives.values() for one in peer.socks.heard]
    assert len(set(every)) == len({user for user, _password in every}) == len(every)
    assert {one.asked[3] for peer in lives.values() for one in peer.socks.heard} == {3}, "a name, never an address"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_leaves_the_process_but_to_the_socks_port(lives: dict[str, Watched], name: str) -> None:
    peer = lives[name]
    assert audited(peer.trap, peer.socks.port) == []
    assert connections(peer.trap, peer.socks.port) >= len(peer.socks.heard) > 10


@pytest.mark.skipif(
    not strace_works(), reason="strace is missing or may not trace: install it (apt-get install strace)"
)
def test_the_kernel_saw_nothing_else_either(lives: dict[str, Watched]) -> None:
    peer = lives["traced"]
    assert traced(peer.trace, peer.socks.port) == []
    assert peer.trace.read_text().count(f"htons({peer.socks.port})") >= len(peer.socks.heard)


def test_every_interpreter_that_was_named_took_part(lives: dict[str, Watched]) -> None:
    """ANONML_OTHER_PYTHONS names them; without it this one alone is watched, in all its circumstances."""
    assert set(OTHERS) <= set(lives)


@pytest.mark.parametrize("leak", ["", "request", "request by name", "datagram", "look-up"])
def test_one_request_past_the_proxy_is_seen_by_both_witnesses(tmp_path: Path, leak: str) -> None:
    """The negative control: the same trap, and one thing that an honest peer never does."""

    async def look() -> Watched:
        async with serving(tmp_path) as setting:
            environment = {"RES_OPTIONS": "timeout:1 attempts:1"}
            peer = await setting.peer(Variant(leak or "honest", environment, traced=strace_works()), 0)
            await setting.live(peer, setting.life(peer, 0)[:2], leak)
            return peer

    peer = asyncio.run(look())
    assert bool(audited(peer.trap, peer.socks.port)) is bool(leak)
    if strace_works() and leak != "look-up":  # localhost is looked up in a file: no call of the network
        assert bool(traced(peer.trace, peer.socks.port)) is bool(leak)
    assert (peer.code == 0) is (leak not in ("request", "request by name")), peer.said
