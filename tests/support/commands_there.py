"""`anonml` commands, one after the other in one process: by Wine or an emulator an interpreter takes seconds to start.

Its one argument is JSON, a list of `[code page, words]`. Each command prints on the real standard output and error, in
its code page, and these go to files meanwhile. In the end it prints what came of each. The time is of a virtual clock
where the environment names one, as in `tests.support.noted_program`; `peer run` is a party of it. The keeper is behind
a port: Windows' Python has no sockets of files.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from examples.clock import ClockFile, Party
from tests.support.noted_program import CLOCK, KEEPER, live_by

if sys.platform == "win32":
    from tests.support import wakeful as _wakeful  # noqa: F401, which mends what wakes a loop

WAIT = "wait"
"""In place of `anonml`'s words: until this file is there."""


@contextmanager
def living() -> Iterator[None]:
    """`peer run` is a party of the study's clock."""
    from anon.machine import clock
    from peer.app import PeerApp

    kept = PeerApp.__init__, clock.elapsed_seconds, asyncio.run
    live_by(Party(Path(os.environ[CLOCK]), int(os.environ[KEEPER])))
    try:
        yield
    finally:
        PeerApp.__init__, clock.elapsed_seconds, asyncio.run = kept  # type: ignore[method-assign]


def attempt(code_page: str, words: list[str], folder: Path) -> dict[str, Any]:
    """`anonml WORDS`: its exit code and what it printed."""
    from anonml import main as anonml

    if words[0] == WAIT:
        while not Path(words[1]).exists():
            time.sleep(0.1)
        return {"code": 0, "out": "", "err": ""}
    sys.argv, code, kept = ["anonml", *words], 0, [os.dup(number) for number in (1, 2)]
    files = [folder / "out", folder / "err"]
    for number, file in zip((1, 2), files, strict=True):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0))
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout, sys.stderr = (
        TextIOWrapper(os.fdopen(number, "wb", closefd=False), encoding=code_page) for number in (1, 2)
    )
    try:
        with living() if words[:2] == ["peer", "run"] and KEEPER in os.environ else nullcontext():
            anonml()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdout.close(), sys.stderr.close()
        for number, before in zip((1, 2), kept, strict=True):
            os.dup2(before, number)
            os.close(before)
        sys.stdout, sys.stderr = (
            TextIOWrapper(os.fdopen(number, "wb", closefd=False), encoding="ascii") for number in (1, 2)
        )
    out, err = (file.read_bytes().decode(code_page) for file in files)
    return {"code": code, "out": out, "err": err}


if __name__ == "__main__":
    if CLOCK in os.environ:
        time.time = ClockFile(Path(os.environ[CLOCK]))  # before anything is imported that keeps it
    with tempfile.TemporaryDirectory() as folder:
        done = [attempt(code_page, words, Path(folder)) for code_page, words in json.loads(sys.argv[1])]
    print(json.dumps(done), flush=True)
