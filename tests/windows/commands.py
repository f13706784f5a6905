"""Run by Windows' Python: `anonml` commands, one after the other, since an interpreter with its imports takes seconds
there.

Its one argument is JSON, a list of `[code page, words]`. Each command prints on the real standard output and error, in
its code page, and these go to files meanwhile. In the end it prints what came of each. The time is of a virtual clock
where the environment names one, as in `tests.support.noted_program`; `peer run` is a party of it. The keeper is behind
a port: Windows' Python has no sockets of files.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from examples.clock import ClockFile, Party
from tests.support.noted_program import CLOCK, KEEPER, live_by


def attempt(code_page: str, words: list[str], folder: Path) -> dict[str, Any]:
    """`anonml WORDS`: its exit code and what it printed."""
    from anonml import main as anonml

    if words[:2] == ["peer", "run"] and KEEPER in os.environ:
        live_by(Party(Path(os.environ[CLOCK]), int(os.environ[KEEPER])))
    sys.argv, code, kept = ["anonml", *words], 0, [os.dup(number) for number in (1, 2)]
    files = [folder / "out", folder / "err"]
    for number, file in zip((1, 2), files, strict=True):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_BINARY)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout, sys.stderr = (
        TextIOWrapper(os.fdopen(number, "wb", closefd=False), encoding=code_page) for number in (1, 2)
    )
    try:
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
