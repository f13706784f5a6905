"""The process that owns a private network: it ends with it, however it ends.

    python -m anon.kit.testnet.owner --folder DIR [--address IP]

is what `anonml testnet up` leaves in the background. It holds the control connection of every tor, so that the kernel
ends them all the moment this process is gone, even by SIGKILL.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from attrs import evolve

from anon.errors import AnonmlError, Unreachable
from anon.kit.testnet.network import PrivateNetwork
from anon.kit.testnet.state import NetworkState, NetworkStatement

WATCH = 1.0


async def own(state: NetworkState, address: str, ready: Callable[[NetworkStatement], None]) -> None:
    """Run a network until SIGTERM or SIGINT, or until one of its tors dies (`Unreachable`).

    `ready` is called once an onion service has answered. Raises `Refused` when the folder has an owner already.
    """
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with state.owned():
        standing = NetworkStatement("starting", os.getpid(), time.time(), address)
        state.tell(standing)
        await _run(state, standing, ready)


async def _run(state: NetworkState, standing: NetworkStatement, ready: Callable[[NetworkStatement], None]) -> None:
    async with PrivateNetwork(state.network, standing.address) as network:
        standing = evolve(
            standing,
            phase="ready",
            torrc=str(network.torrc_file),
            socks=network.proxy,
            relays=network.relays,
            seconds=round(network.seconds, 2),
            attempts=network.attempts,
            troubles=network.troubles,
            tors=network.pids,
        )
        state.tell(standing)
        ready(standing)
        while all(map(is_running, network.pids.values())):  # noqa: ASYNC110 — asks the kernel
            await asyncio.sleep(WATCH)
        dead = [name for name, pid in network.pids.items() if not is_running(pid)]
        raise Unreachable(f"of the private network {', '.join(dead)} ended; `anonml testnet up` starts a new one")


def is_running(pid: int) -> bool:
    """True if there is such a process that has not ended (a zombie has)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0] not in ("Z", "X")
    return True


def main() -> None:
    """Own a network, silently but for what goes wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--address", default="127.0.0.1")
    options = parser.parse_args()
    try:
        asyncio.run(own(NetworkState(options.folder), options.address, lambda _: None))
    except (asyncio.CancelledError, KeyboardInterrupt):
        sys.exit(0)
    except AnonmlError as error:
        sys.stderr.write(f"{error.code}: {error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
