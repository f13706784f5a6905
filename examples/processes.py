"""The demo's processes: commands, one serving aggregator, several hosts of peers. None outlives the demo."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen

from anon.errors import AnonmlError

ROOT = Path(__file__).resolve().parents[1]
STOPPING = 20.0


class DemoFailed(AnonmlError):
    """A process of the demo ended badly; the message quotes its last words."""

    code = "demo-failed"


@frozen
class Child:
    """A process that speaks one JSON value per line; what it says on standard error goes to `log`."""

    name: str
    process: subprocess.Popen[str]
    log: Path

    def line(self) -> dict[str, Any]:
        """Its next line. Raises `DemoFailed` with its last words when it has ended."""
        text = self.process.stdout.readline() if self.process.stdout else ""
        if not text:
            raise DemoFailed(
                f"{self.name} ended: {self.log.read_text('utf-8', 'replace')[-800:].strip() or 'without a word'}"
            )
        return dict(json.loads(text))

    def tell(self, value: Mapping[str, Any]) -> None:
        """Send it one line."""
        if self.process.stdin:
            self.process.stdin.write(json.dumps(value) + "\n")
            self.process.stdin.flush()


def command(home: Path, *words: str) -> Any:
    """Run a command of `anonml` with this home and `--json` to its end; what it printed. Raises `DemoFailed`."""
    call = [sys.executable, "-m", "anonml", *words, "--home", str(home), "--json"]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)
    if done.returncode:
        raise DemoFailed(f"anonml {' '.join(words[:2])}: {done.stderr.strip()}")
    return json.loads(done.stdout)


@contextmanager
def serving(home: Path, folder: Path, onion: bool = False) -> Iterator[tuple[Child, str]]:
    """An aggregator on a free loopback port, or as an onion service, and its address."""
    place = ["--onion"] if onion else ["--port", "0"]
    words = ["-m", "anonml", "aggregator", "serve", "--home", str(home), *place, "--json"]
    with _child("aggregator", words, folder) as child:
        yield child, str(child.line()["address"])


@contextmanager
def hosts(people: Sequence[Path], folder: Path, minimum_cohort: int, tor: bool = False) -> Iterator[list[Child]]:
    """One process per file of people, each after it has made its peers' homes and imported their data.

    With `tor` each has a tor client of its own.
    """
    with ExitStack() as stack:
        children = []
        for number, file in enumerate(people):
            words = ["-m", "examples.hosting", "--people", str(file), "--homes", str(folder / f"homes-{number}")]
            words += ["--minimum-cohort", str(minimum_cohort)]
            words += ["--tor", str(folder / f"tor-{number}")] if tor else []
            children.append(stack.enter_context(_child(f"peers-{number}", words, folder)))
        for child in children:
            child.line()
        yield children


@contextmanager
def _child(name: str, words: Sequence[str], folder: Path) -> Iterator[Child]:
    log = folder / f"{name}.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT
        )
        try:
            yield Child(name, process, log)
        finally:
            process.terminate()
            try:
                process.wait(STOPPING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
