"""The desk's server: one loopback port, one link at a time, kept in the home for its owner alone."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable

from aiohttp import web

from aggregator.app import AggregatorApp
from aggregator.desk.link import HOST, LINK, PORT, metrics_token
from aggregator.desk.views.studies import LARGEST_FORM, Pages
from anon.errors import Refused
from anon.kit.page.gate import Gate, hosts_of
from anon.kit.page.guard import protect
from anon.serving.door import DoorSite, for_owner
from anon.storage.private_files import write_private

OPEN = frozenset({"/desk.css", "/desk.js"})
"""Files that are no secret: the look of the page that asks for a link."""
_QUIET = logging.getLogger(f"{__name__}.requests")
_QUIET.disabled = True  # the server would quote malformed requests; pages that fail are logged by their guard


async def serve_desk(
    aggregator: AggregatorApp,
    port: int = PORT,
    ready: Callable[[str], None] = lambda link: None,
    random_bytes: Callable[[int], bytes] = os.urandom,
    processes: int = 1,
) -> None:
    """Serve until cancelled; `ready` hears the first link. The home's serving process runs it, and no other.

    Raises `Refused` when the port is taken.
    """
    home = aggregator.home.path
    hosts: set[str] = set()
    app = web.Application(client_max_size=LARGEST_FORM)
    runner = web.AppRunner(app, access_log=None, logger=_QUIET, handle_signals=False, shutdown_timeout=2)
    listening = _bound(port)
    bound = int(listening.getsockname()[1])
    origin = f"http://{HOST}:{bound}"
    gate = Gate(f"desk-{bound}", random_bytes, lambda: write_private(home / LINK, gate.link(origin).encode()))
    pages = Pages(aggregator, gate, origin, processes)
    protect(app, gate, hosts, pages.refusal, {"/metrics": metrics_token(home, random_bytes)}, OPEN)
    pages.add_to(app)
    hosts |= hosts_of(bound)
    try:
        await runner.setup()
        await DoorSite(runner, [listening], for_owner()).start()
        write_private(home / LINK, gate.link(origin).encode())
        ready(gate.link(origin))
        await asyncio.Event().wait()
    finally:
        (home / LINK).unlink(missing_ok=True)
        await pages.close()
        await runner.cleanup()


def _bound(port: int) -> socket.socket:
    bound_socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound_socket.bind((HOST, port))
    except OSError:
        bound_socket.close()
        raise Refused(f"port {port} is taken; name another with --desk-port, or 0 for a free one") from None
    return bound_socket
