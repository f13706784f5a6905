"""Free ports for a network: looked for by binding, below the range that outgoing connections draw from."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

from anon.errors import Refused
from anon.kit.testnet.layout import HIGHEST, LOWEST

TRIES = 1000


def free_ports(address: str, count: int, random_bytes: Callable[[int], bytes]) -> tuple[int, ...]:
    """`count` different ports of this address that nobody listens on. Raises `Refused` when the address is not ours."""
    found: dict[int, None] = {}
    for _ in range(TRIES):
        port = LOWEST + int.from_bytes(random_bytes(4), "big") % (HIGHEST - LOWEST)
        if _is_free(address, port):
            found[port] = None
        if len(found) == count:
            return tuple(found)
    raise Refused(f"{address} has no {count} free ports between {LOWEST} and {HIGHEST}; free some, or name another")


def _is_free(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        try:
            trial.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise Refused(f"{address} is not an address of this machine; `ip address` lists them") from None
            return False
    return True
