"""Peer, relays and aggregator in network namespaces of their own: nothing but tor connects them, and it suffices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from network_namespaces import AGGREGATOR_ADDRESS, RELAYS_ADDRESS, Namespaces, needs_namespaces, three_namespaces

ROOT = Path(__file__).resolve().parents[2]
PARTS = str(Path(__file__).with_name("namespace_parts.py"))
UNREACHABLE = "Network is unreachable"

pytestmark = [pytest.mark.tor, needs_namespaces]


@contextmanager
def running(name: str, words: list[str], environment: Mapping[str, str], log: Path) -> Iterator[dict[str, Any]]:
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
            yield json.loads(line)
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
        lines = Path(told["torrc"]).read_text()
        port = lines.partition("orport=")[2].partition(" ")[0]
        yield {**os.environ, "PYTHONPATH": str(ROOT), "ANONML_TORRC": told["torrc"]}, f"{RELAYS_ADDRESS}:{port}"


def test_only_tor_connects_a_peer_with_a_service(tmp_path: Path) -> None:
    with ExitStack() as stack:
        names = stack.enter_context(three_namespaces())
        environment, relay = stack.enter_context(relays_running(names, tmp_path))
        service = stack.enter_context(
            running(names.aggregator, [PARTS, "service", str(tmp_path / "service")], environment, tmp_path / "service.log")
        )
        ways = [f"{AGGREGATOR_ADDRESS}:{service['port']}", f"127.0.0.1:{service['port']}"]
        visit = Namespaces.inside(names.peer, sys.executable, PARTS, "visitor", str(tmp_path / "v"), service["onion"])
        done = subprocess.run(
            [*visit, relay, *ways], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {
            "tor": "answered",
            relay: "connected",
            ways[0]: UNREACHABLE,
            ways[1]: "Connection refused",
        }
        # What is asserted above is the wires' doing: from its own namespace the plain listener answers.
        connect = f"import socket; socket.create_connection(('{AGGREGATOR_ADDRESS}', {service['port']}), 3)"
        own = Namespaces.inside(names.aggregator, sys.executable, "-c", connect)
        assert subprocess.run(own, capture_output=True, check=False, timeout=10).returncode == 0
