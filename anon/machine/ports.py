"""Ports of this machine."""

from __future__ import annotations

import errno
import socket


def is_free(host: str, port: int) -> bool:
    """False where something else listens there now. Port 0 is always free."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as asked:
        asked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            asked.bind((host, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True
