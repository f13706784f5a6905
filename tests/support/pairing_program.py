"""`anonml peer pair --json --minutes 10` over a tor that is none: its onion service is always there.

    python -m tests.support.pairing_program HOME
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from anon.kit.terminal.logs import to_stderr
from anon.wire.onion_address import onion_host


class NoOnion:
    """In place of `PhoneOnion`."""

    alive = True

    @classmethod
    async def start(cls, folder: Path, socket: Path, progress: Callable[[str], None]) -> NoOnion:
        return cls()

    async def opened(self, keys: Sequence[Any]) -> str:
        return onion_host(bytes(range(32)))

    async def narrow(self, keys: Sequence[Any]) -> None:
        """There is no phone."""

    async def close(self) -> None:
        """Nothing to end."""


def main() -> None:
    import anonml
    from peer.pairing import cli, service

    to_stderr()
    service.__dict__["PhoneOnion"] = NoOnion
    try:
        asyncio.run(cli._pair(Path(sys.argv[1]), "auto", [], ["phone", "tablet"], 10, True))
    except BaseException as error:
        sys.exit(anonml._explain(error))


if __name__ == "__main__":
    main()
