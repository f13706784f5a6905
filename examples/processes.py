"""The demo's processes: commands, one serving aggregator, several hosts of peers. None outlives the demo."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import frozen

from anon.errors import AnonmlError
from examples.clock import Keeper

ROOT = Path(__file__).resolve().parents[1]
STOPPING = 20.0
COMMAND_SECONDS = 1800
"""Real seconds after which a command is given up, however busy the machine is."""


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
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(STOPPING)
            last_words = self.log.read_text("utf-8", "replace")[-800:].strip() or "without a word"
            raise DemoFailed(f"{self.name} ended ({self.process.returncode}): {last_words}")
        return dict(json.loads(text))

    def tell(self, value: Mapping[str, Any]) -> None:
        """Send it one line."""
        if self.process.stdin:
            self.process.stdin.write(json.dumps(value) + "\n")
            self.process.stdin.flush()


def command(home: Path | None, *words: str) -> Any:
    """Run a command of `anonml` with `--json` to its end, with this home if it has one; what it printed.

    Raises `DemoFailed`.
    """
    place = [] if home is None else ["--home", str(home)]
    call = [sys.executable, "-m", "anonml", *words, *place, "--json"]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS, cwd=ROOT)
    if done.returncode:
        raise DemoFailed(f"anonml {' '.join(words[:2])}: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout)


@contextmanager
def serving(
    folder: Path, order: Mapping[str, Any], keeper: Keeper, onion: bool = False, watched: bool = False
) -> Iterator[tuple[Child, str, list[str]]]:
    """An aggregator on a free loopback port, or as an onion service, that publishes a study; the study's words, and its
    invite links.

    `order`: see `examples.serving`. `watched`: somebody sees what it shows of the study meanwhile.
    """
    words = ["-m", "examples.serving", "--home", str(folder / "aggregator"), *_clock(keeper)]
    words += [*(["--onion"] if onion else []), *(["--sight", str(folder / "sight.json")] if watched else [])]
    with _child("aggregator", words, folder) as child:
        child.tell(order)
        begun = child.line()
        yield child, str(begun["words"]), list(begun["links"])


@contextmanager
def tellers(names: Sequence[str], folder: Path, onion: bool = False) -> Iterator[list[str]]:
    """Tellers of these names as processes of their own, and their addresses in the same order."""
    with ExitStack() as stack:
        serve = []
        for number, name in enumerate(names):
            home = folder / f"teller-{number}"
            command(home, "teller", "init", "--name", name, *([] if onion else ["--loopback", "--port", str(_free())]))
            words = ["-m", "anonml", "teller", "serve", "--home", str(home), "--json"]
            serve.append(stack.enter_context(_child(f"teller-{number}", words, folder)))
        yield [str(child.line()["address"]) for child in serve]


@contextmanager
def hosts(
    people: Sequence[Path], folder: Path, minimum_cohort: int, keeper: Keeper, tor: bool = False
) -> Iterator[list[Child]]:
    """One process per file of people, each after it has made its peers' homes and imported their data.

    With `tor` each has a tor client of its own.
    """
    with ExitStack() as stack:
        children = []
        for number, file in enumerate(people):
            words = ["-m", "examples.hosting", "--people", str(file), "--homes", str(folder / f"homes-{number}")]
            words += ["--minimum-cohort", str(minimum_cohort), *_clock(keeper)]
            words += ["--tor", str(folder / f"tor-{number}")] if tor else []
            children.append(stack.enter_context(_child(f"peers-{number}", words, folder)))
        for child in children:
            child.line()
        yield children


def _clock(keeper: Keeper) -> list[str]:
    return ["--clock", str(keeper.clock.path), "--keeper", str(keeper.place)]


def _free() -> int:
    """A port of loopback that nothing listens at."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


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
