"""Files that a desk leaves in the home for the home's owner: the link to its page, and the token for its metrics."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from anon.storage.private_files import write_private

HOST, PORT = "127.0.0.1", 8751
LINK, _METRICS = "desk.link", "metrics.token"


def kept_link(home: Path) -> str | None:
    """The link of the desk that is running for this home, as it was last written; None when there is none."""
    with suppress(OSError, UnicodeDecodeError):
        return (home / LINK).read_text("ascii").strip() or None
    return None


def metrics_token(home: Path, random_bytes: Callable[[int], bytes] = os.urandom) -> str:
    """The token that a Prometheus server must send; drawn once for a home (`authorization: credentials_file` names the
    file)."""
    path = home / _METRICS
    if not path.exists():
        write_private(path, random_bytes(32).hex().encode())
    return path.read_text("ascii").strip()
