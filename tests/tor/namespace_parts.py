"""Two programs inside the namespaces: `service` behind an onion address, and `visitor`, which tries every way to it.

    python namespace_parts.py service FOLDER
    python namespace_parts.py visitor FOLDER ONION RELAYS_ADDRESS:PORT HOST:PORT...

Each prints one line of JSON; the service then stays until its standard input ends.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path

from anon.errors import AnonmlError
from anon.kit.testnet import probe
from anon.route.tor import TorKeeper, TorProcess, TorRoute, extra_lines, torrc_of_client


async def service(folder: Path) -> None:
    """A tor that joins by ANONML_TORRC, a probe on it, and, on every address of the namespace, a plain listener."""
    plain = await asyncio.start_server(probe._answer, "0.0.0.0", 0)
    tor = await TorProcess.start(torrc_of_client(folder / "data", extra_lines()), folder)
    try:
        await tor.bootstrap(60)
        async with probe.serving(tor.controller) as serving:
            _say({"onion": serving.address, "port": plain.sockets[0].getsockname()[1]})
            await asyncio.to_thread(sys.stdin.read)
    finally:
        await tor.stop()
        plain.close()


async def visitor(folder: Path, onion: str, relay: str, *direct: str) -> None:
    """Print the end of each way: `answered`, `connected`, or the text of the error."""
    async with TorKeeper(folder) as keeper:
        route = TorRoute(keeper, timeout=15)
        try:
            await probe.Probe(onion).answered(route, 60)
            found = {"tor": "answered"}
        except AnonmlError as error:
            found = {"tor": str(error)}
    for address in (relay, *direct):
        found[address] = _connect(address)
    _say(found)


def _connect(address: str) -> str:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=3):
            return "connected"
    except OSError as error:
        return error.strerror or type(error).__name__


def _say(value: dict[str, object] | dict[str, str]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    part, where, *rest = sys.argv[1:]
    asyncio.run(service(Path(where)) if part == "service" else visitor(Path(where), *rest))
