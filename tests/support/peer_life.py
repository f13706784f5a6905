"""Run by an interpreter of its own: `anonml peer ...` commands, one after the other, in a process that is watched.

Its one argument is JSON: `commands`; `trap`, a file that gets a line for every connection, datagram and name look-up of
the process and for every process that it starts; `clock`, a file with the time (`shared_clock`), and `skew`, seconds to
add to it; `leak`, which way past the proxy one request takes, to see that the trap would notice.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

_HARMLESS = {"socket.__new__", "socket.gethostname"}
_STARTING = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty")


def set_trap(path: str) -> None:
    """Write down whatever could leave this process other than through an open connection."""
    written = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.sendmsg" and _is_pair(arguments[0]):
            return
        if (event.startswith("socket.") and event not in _HARMLESS) or event.startswith(_STARTING):
            told = [one for one in arguments if not isinstance(one, socket.socket)]
            os.write(written, (json.dumps([event, told], default=repr) + "\n").encode())

    sys.addaudithook(hook)


def _is_pair(sender: object) -> bool:
    """True if this is an end of an unnamed pair within the machine, such as the one to the evaluator."""
    return isinstance(sender, socket.socket) and sender.family is socket.AF_UNIX and sender.getpeername() == ""


def set_clock(path: str, skew: float) -> None:
    """Let the time be what the file says, plus `skew`. The clock that nobody sets moves with it: time passes, and the
    wall clock does not jump."""
    with Path(path).open("rb") as file:
        shared = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    time.time = lambda: float(struct.unpack("<d", shared[:8])[0]) + skew
    time.clock_gettime = lambda _clock: float(struct.unpack("<d", shared[:8])[0])


def spring_leak(kind: str) -> None:
    """One thing that an honest peer never does."""
    from anon.route import direct_and_socks as http
    from anon.route.exchange import Dial, straight

    proxied = http.SocksRoute._dial

    async def direct_once(self: http.SocksRoute, address: str) -> Dial:
        async def leaked(host: str, port: int, seconds: float) -> socket.socket:
            if kind == "request by name":
                await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
            return await straight(self)("127.0.0.1", port, seconds)

        http.SocksRoute._dial = proxied  # type: ignore[method-assign]
        return leaked

    if kind in ("request", "request by name"):
        http.SocksRoute._dial = direct_once  # type: ignore[method-assign]
    elif kind == "datagram":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
            sending.sendto(b"here", ("127.0.0.1", 9))
    elif kind == "look-up":
        socket.getaddrinfo("localhost", 80)


def main(told: dict[str, Any]) -> int:
    """The commands' worst exit code."""
    set_trap(told["trap"])
    set_clock(told["clock"], told.get("skew", 0.0))
    from anonml import main as anonml

    spring_leak(told.get("leak", ""))
    worst = 0
    for command in told["commands"]:
        sys.argv = ["anonml", *command]
        try:
            anonml()
        except SystemExit as ended:
            worst = max(worst, int(ended.code or 0))
    return worst


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
