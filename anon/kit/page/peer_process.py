"""Which user's program is at the other end of a connection on this machine, by Linux's own tables of TCP sockets.

A link that opens a browser stands for a moment in the words that the browser is started with. On Linux every user reads
those of every process, and could use the link first. So a page asks the kernel who is there.

Where there is no such table for us to read (other systems, Android) nothing is known and nobody is refused.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_MAPPED = "0000000000000000FFFF0000"
"""How an IPv4 address begins in the second table."""
_LOCAL, _REMOTE, _UID, _INODE = 1, 2, 7, 9
_ROOT = 0
_LOOKS = 3
"""The kernel may leave a row out of one look, when other sockets come and go meanwhile."""
Address = tuple[str, int]


def tables() -> str | None:
    """The text of both tables; None where the first cannot be read."""
    if sys.platform == "win32":  # where anybody may make a file of that name
        return None
    try:
        first = TABLES[0].read_text("ascii")
    except OSError:
        return None
    try:
        return first + TABLES[1].read_text("ascii")
    except OSError:  # a kernel without IPv6
        return first


def is_stranger(peer: Any, here: Any, read: Callable[[], str | None] = tables) -> bool:
    """True if another user's program holds the far end of a TCP connection over IPv4.

    `peer` and `here` are the addresses of its two ends, as sockets say them. Root is no stranger: it can do all that
    the owner can. A far end that is in no table is one (it was let go of, or lies on another machine). False where no
    table can be read, and for a socket file, whose folder decides.
    """
    if isinstance(here, str | bytes):
        return False
    if not (isinstance(peer, tuple) and isinstance(here, tuple)):
        return True
    for _ in range(_LOOKS):
        table = read()
        if table is None:
            return False
        owner = owner_of(table, peer[:2], here[:2])
        if owner is not None:
            return owner not in (_ROOT, os.geteuid())
    return True


def owner_of(table: str, peer: Address, here: Address) -> int | None:
    """The user id of the socket at `peer` that is connected to `here`; None when no process holds one."""
    far, near = _spelt(*peer), _spelt(*here)
    for line in table.splitlines():
        if far not in line:
            continue
        fields = line.split()
        ends = (fields[_LOCAL].removeprefix(_MAPPED), fields[_REMOTE].removeprefix(_MAPPED))
        if ends == (far, near) and fields[_INODE] != "0":
            return int(fields[_UID])
    return None


def _spelt(host: str, port: int) -> str:
    """As the table spells an IPv4 address: its four bytes as one number of this machine's byte order."""
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    return f"{number:08X}:{port:04X}"
