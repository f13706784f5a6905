"""Black boxes: a Python function in this process, and a mechanism in a process of its own, in any environment."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aggregator.auditor.readings import plain
from aggregator.auditor.runner import unpacked
from aggregator.auditor.search import Pair
from anon.errors import Malformed
from anon.machine.environment import Child, for_child

_RUNNER = Path(__file__).with_name("runner.py")
_MOST_AT_ONCE = 2_000


class FunctionBox:
    """A function of this process; for notebooks and tests."""

    def __init__(self, mechanism: Callable[[Any], object]) -> None:
        self._mechanism = mechanism

    def run(self, pair: Pair, first: Sequence[bool]) -> list[object]:
        """See `BlackBox.run`."""
        return [plain(self._mechanism(pair[0] if coin else pair[1])) for coin in first]

    def seconds(self) -> float:
        """Nothing: its time is this process's own."""
        return 0.0


class ProcessBox:
    """A mechanism in a child: of a file or a module, and a function of it; or a command as a list in JSON.

    A context manager: the child ends with it. Raises `Malformed` where the target cannot be loaded, ends, or raises at
    every run.
    """

    def __init__(self, target: str, name: str, python: str = sys.executable) -> None:
        ours = Child.OWN if python == sys.executable else Child.PROGRAM
        environment = for_child(ours)
        environment.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        self._child = subprocess.Popen(  # noqa: S603 - a mechanism that the user named
            [python, str(_RUNNER), target, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            encoding="utf-8",
        )
        self._seconds, self._at_once, self._good = 0.0, 1, False
        self.faults: dict[str, Any] = {}
        """The exceptions that the mechanism raised, by name, each with the first input that did it."""
        try:
            self.python = str(self._answer()["python"])
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._child.kill()
        self._child.communicate()

    def run(self, pair: Pair, first: Sequence[bool]) -> list[object]:
        """See `BlackBox.run`."""
        outputs: list[object] = []
        while len(outputs) < len(first):
            coins = first[len(outputs) : len(outputs) + self._at_once]
            outputs += self._asked(pair, coins)
            self._at_once = min(2 * self._at_once, _MOST_AT_ONCE)
        self._note_faults(pair, first, outputs)
        return outputs

    def seconds(self) -> float:
        """See `BlackBox.seconds`."""
        return self._seconds

    def _asked(self, pair: Pair, coins: Sequence[bool]) -> list[object]:
        if self._child.stdin is None:
            raise Malformed("the mechanism's process takes no input")
        try:
            self._child.stdin.write(json.dumps({"pair": pair, "coins": "".join("01"[coin] for coin in coins)}) + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            raise Malformed(_ENDED) from None
        answer = self._answer()
        self._seconds = float(answer["seconds"])
        return list(answer["outputs"])

    def _answer(self) -> dict[str, Any]:
        line = self._child.stdout.readline() if self._child.stdout else ""
        if not line:
            raise Malformed(_ENDED)
        answer: dict[str, Any] = json.loads(line, object_hook=unpacked)
        if "failed" in answer:
            raise Malformed(f"the mechanism cannot be loaded: {answer['failed'].strip()}")
        return answer

    def _note_faults(self, pair: Pair, first: Sequence[bool], outputs: Sequence[object]) -> None:
        """Keep each kind of exception. Raises `Malformed` where no run gave an output so far."""
        said = ""
        for coin, output in zip(first, outputs, strict=True):
            if isinstance(output, dict) and "raised" in output:
                self.faults.setdefault(output["raised"], pair[0] if coin else pair[1])
                said = said or output.get("said", "")
            else:
                self._good = True
        if not self._good:
            name, given = next(iter(self.faults.items()))
            told = f"first on the input {given!r:.300}; it says: {said}"
            raise Malformed(f"the mechanism raised {name} at each run, {told}")


_ENDED = "the mechanism's process ended; its own lines above say why"
