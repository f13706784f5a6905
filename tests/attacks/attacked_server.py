"""A server to be attacked, in a process of its own: an aggregator's, or a teller's, behind a socket file as tor's
streams reach it.

    python -m tests.attacks.attacked_server aggregator|teller FOLDER SOFT HARD

It prints a line of JSON, then serves until its standard input ends. SOFT and HARD limit its open files.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aggregator.network import http
from anon.crypto.nacl import SigningKey
from anon.serving import quiet_http
from anon.sharing import exchange
from anon.teller import service
from anon.teller.home import Place, open_home
from tests.support.clock import Clock
from tests.support.world import FakePeer, begin, make_app, study_text

ENROLMENTS = 400
NAME, ADDRESS = "teller 0", "127.0.0.1:8760"


@asynccontextmanager
async def aggregator(folder: Path, socket: Path) -> AsyncIterator[list[tuple[str, str]]]:
    """A study that enrols. The requests that honest peers make: path and body, in hexadecimal."""
    clock = Clock()
    async with make_app(folder / "home", clock) as app:
        running = await begin(app, clock, study_text(minimum=2, admission="open"))
        live, base = running.live, f"/v1/{running.live.study.hex()}"
        packet = os.urandom(live.packet_intake.rules.layout.sealed_size)
        enrolments = [FakePeer(live.manifest).sealed_enrolment() for _ in range(ENROLMENTS)]
        runner = await http.start_unix({live.study: live}, socket)
        yield [(f"{base}/packets", packet.hex())] + [(f"{base}/enrol", body.hex()) for body in enrolments]
        await runner.cleanup()


@asynccontextmanager
async def teller(folder: Path, socket: Path) -> AsyncIterator[list[tuple[str, str]]]:
    """A teller whose person named one aggregator, and that aggregator's call."""
    home, named = open_home(folder / "teller", os.urandom), SigningKey.generate()
    home.keep_place(Place(NAME, ADDRESS))
    home.allow([bytes(named.verify_key)])
    asked = exchange.ask_entry(NAME, ADDRESS)
    async with service.opened(home, os.urandom) as made:
        runner = await quiet_http.listen_unix(made.answer, socket, made.call)
        yield [(asked.path, asked.body(named, b"").hex())]
        await runner.cleanup()


async def _serve(kind: str, folder: Path) -> None:
    socket = folder / "socket"
    serving: Any = {"aggregator": aggregator, "teller": teller}[kind]
    async with serving(folder, socket) as asked:
        print(json.dumps({"socket": str(socket), "asked": asked}), flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    which, where, soft, hard = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(soft), int(hard)))
    asyncio.run(_serve(which, Path(where)))
