"""Three network namespaces, peer, relays and aggregator: each of the two outer ones has one wire, to the relays' own.

    peer 10.213.1.2 ---- 10.213.1.1 [relays 10.213.0.1] 10.213.2.1 ---- 10.213.2.2 aggregator

There is no default route anywhere, the outer ones have a route to the relays' address alone, and the middle one
forwards nothing. So whatever the peer's processes say to the aggregator's was carried by tor.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import pytest
from attrs import frozen

ROOT = Path(__file__).resolve().parents[2]
RELAYS_ADDRESS = "10.213.0.1"
PEER_ADDRESS = "10.213.1.2"
AGGREGATOR_ADDRESS = "10.213.2.2"


@frozen
class Namespaces:
    """Names of the three."""

    peer: str
    relays: str
    aggregator: str

    @staticmethod
    def inside(name: str, *command: str) -> list[str]:
        """The command line that runs a command in one of them."""
        return ["ip", "netns", "exec", name, *command]


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def can_make_them() -> bool:
    """True if this process may make namespaces; tried, since containers differ."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"anonml-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return made


@contextmanager
def three_namespaces() -> Iterator[Namespaces]:
    """Make them, and remove them with every process inside and every wire, whatever happens."""
    made = Namespaces(*(f"anonml-{part}-{os.getpid()}" for part in ("peer", "relays", "aggregator")))
    try:
        for name in (made.peer, made.relays, made.aggregator):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", made.relays, "address", "add", f"{RELAYS_ADDRESS}/32", "dev", "lo")
        _wire(made.relays, made.peer, PEER_ADDRESS)
        _wire(made.relays, made.aggregator, AGGREGATOR_ADDRESS)
        off = "echo 0 > /proc/sys/net/ipv4/ip_forward; cat /proc/sys/net/ipv4/ip_forward"
        said = subprocess.run(made.inside(made.relays, "sh", "-c", off), capture_output=True, text=True, check=False)
        assert said.stdout.strip() == "0", "the middle namespace must not forward"
        yield made
    finally:
        for name in (made.peer, made.relays, made.aggregator):
            _remove(name)


def _wire(middle: str, outer: str, address: str) -> None:
    near = address.rpartition(".")[0] + ".1"
    inner_name = f"to-{address.split('.')[2]}"
    _ip("link", "add", inner_name, "netns", middle, "type", "veth", "peer", "name", "wire", "netns", outer)
    _ip("-n", middle, "address", "add", f"{near}/30", "dev", inner_name)
    _ip("-n", outer, "address", "add", f"{address}/30", "dev", "wire")
    _ip("-n", middle, "link", "set", inner_name, "up")
    _ip("-n", outer, "link", "set", "wire", "up")
    _ip("-n", outer, "route", "add", f"{RELAYS_ADDRESS}/32", "via", near)


def _remove(name: str) -> None:
    inside = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
    for pid in map(int, inside.stdout.split()):
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


@frozen
class Told:
    """The first line of JSON that a process printed, and where the next ones come from."""

    first: dict[str, Any]
    _lines: TextIO

    def next(self) -> dict[str, Any]:
        """Its next line. Raises `AssertionError` when it has ended."""
        line = self._lines.readline()
        assert line, "it has ended"
        return dict(json.loads(line))


@contextmanager
def running(name: str, words: list[str], environment: Mapping[str, str], log: Path) -> Iterator[Told]:
    """A Python process in a namespace, from its first line of JSON to the end of the block."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            Namespaces.inside(name, sys.executable, *words), cwd=ROOT, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, log.read_text()
            yield Told(json.loads(line), process.stdout)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def relays_running(names: Namespaces, folder: Path) -> Iterator[tuple[dict[str, str], str]]:
    """The network in the middle; the environment that lets others join, and where its authority listens."""
    up = ["-m", "anonml", "testnet", "up", "--foreground", "--json", "--address", RELAYS_ADDRESS]
    with running(names.relays, [*up, "--folder", str(folder / "relays")], os.environ, folder / "relays.log") as told:
        lines = Path(told.first["torrc"]).read_text()
        port = lines.partition("orport=")[2].partition(" ")[0]
        yield {**os.environ, "PYTHONPATH": str(ROOT), "ANONML_TORRC": told.first["torrc"]}, f"{RELAYS_ADDRESS}:{port}"


needs_namespaces = pytest.mark.skipif(
    not can_make_them(), reason="network namespaces cannot be made here: it takes root and `ip netns` (iproute2)"
)
