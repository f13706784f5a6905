"""A teller in a process of its own, driven through a pipe, that a test may kill; and its caller, which starts it again.

    python -m tests.support.teller_process FOLDER
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

from anon.storage.crash_points import VARIABLE
from tests.support.command_line import ROOT

PROGRAM = "tests.support.teller_process"


class KilledTeller:
    """Calls go to the process. When it dies another one begins with what is on the disk, and the call is made again."""

    def __init__(self, folder: Path, crash_at: str) -> None:
        self._folder, self.deaths = folder, 0
        self._begin(crash_at)

    def _begin(self, crash_at: str) -> None:
        environment = {**os.environ, VARIABLE: crash_at}
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, str(self._folder)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self._call(name, given)

    def _call(self, name: str, given: tuple[Any, ...]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        pickle.dump((name, given), self._process.stdin)
        self._process.stdin.flush()
        try:
            answer, fault = pickle.load(self._process.stdout)
        except EOFError:
            assert self._process.wait(30) == -9
            self.deaths += 1
            self._begin("")
            return self._call(name, given)
        if fault is not None:
            raise fault
        return answer

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(30) == 0


def main(folder: Path) -> None:
    from anon.errors import AnonmlError
    from anon.teller.session import Teller
    from tests.support.reopened_teller import reopened

    key, journal = reopened(folder)
    teller = Teller(key, journal, os.urandom)
    while True:
        try:
            name, given = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: Any = (getattr(teller, name)(*given), None)
        except AnonmlError as error:
            answer = (None, error)
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
