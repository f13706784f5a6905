"""Peer, relays and aggregator in network namespaces of their own: nothing but tor connects them, and it suffices."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.tor.network_namespaces import (
    AGGREGATOR_ADDRESS,
    ROOT,
    Namespaces,
    needs_namespaces,
    relays_running,
    running,
    three_namespaces,
)

PARTS = str(Path(__file__).with_name("namespace_parts.py"))
UNREACHABLE = "Network is unreachable"

pytestmark = [pytest.mark.tor, needs_namespaces]


def test_only_tor_connects_a_peer_with_a_service(tmp_path: Path) -> None:
    with ExitStack() as stack:
        names = stack.enter_context(three_namespaces())
        environment, relay = stack.enter_context(relays_running(names, tmp_path))
        service = stack.enter_context(
            running(
                names.aggregator, [PARTS, "service", str(tmp_path / "service")], environment, tmp_path / "service.log"
            )
        )
        ways = [f"{AGGREGATOR_ADDRESS}:{service.first['port']}", f"127.0.0.1:{service.first['port']}"]
        visit = Namespaces.inside(
            names.peer, sys.executable, PARTS, "visitor", str(tmp_path / "v"), service.first["onion"]
        )
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
        # The namespaces alone cause the refusals above: from its own namespace the plain listener answers.
        connect = f"import socket; socket.create_connection(('{AGGREGATOR_ADDRESS}', {service.first['port']}), 3)"
        own = Namespaces.inside(names.aggregator, sys.executable, "-c", connect)
        assert subprocess.run(own, capture_output=True, check=False, timeout=10).returncode == 0
