"""Decide the mutants: python -m tests.mutants [--changed COMMITS] [--minutes N] [WORD...]

Libraries are imported once. Each mutant gets a fork, which imports its file with the fault and runs its tests until one
fails. The time limit counts processor time. Then the tests that noticed something run once more without any fault.

The exit code is 0 if every mutant that was not noticed has its reason on the list, and of the whole list 95 % were.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from tempfile import mkdtemp
from types import CodeType

import pytest
from attrs import frozen

from tests.mutants import ROOT, Mutant, mutants

LIBRARIES = (
    "numpy", "scipy.stats", "scipy.special", "scipy.optimize", "sklearn.linear_model", "sklearn.ensemble",
    "sqlalchemy.ext.asyncio", "aiosqlite", "aiohttp.web", "h11", "python_socks.async_.asyncio",
    "cryptography.hazmat.primitives.ciphers.aead", "cattrs", "cbor2", "jinja2", "typer", "rich.console", "babel",
    "nacl.bindings", "py_arkworks_bls12381", "segno", "joblib", "hypothesis.strategies", "pytest_asyncio.plugin",
    "pytest_timeout", "_hypothesis_pytestplugin", "asyncpg", "sqlite3", "attrs", "multiprocessing",
    "concurrent.futures.process",
)
LEFT_OUT = "not (soak or slow or process or tor or browser or postgres or timed)"
PLUGINS = ("pytest_asyncio.plugin", "pytest_timeout", "_hypothesis_pytestplugin")
PROCESSOR_SECONDS = 120
"""Of one mutant. One whose tests take longer, or wait for longer than `WAITING`, is not noticed: it is named as
hanging."""
WAITING = 600.0
BAR = 0.95
NOTICED, SURVIVED, HANGING, BROKEN = "noticed", "survived", "hanging", "broken"
_VERDICTS = {pytest.ExitCode.TESTS_FAILED: NOTICED, pytest.ExitCode.OK: SURVIVED}


class _Loader(SourceFileLoader):
    """A module with a fault, of which no byte code is kept."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._faulty = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._faulty, self.path, "exec", dont_inherit=True)


class _Finder:
    def __init__(self, mutant: Mutant) -> None:
        self._mutant, self._source = mutant, mutant.source()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self._mutant.module:
            return None
        file = str(ROOT / self._mutant.file)
        return spec_from_file_location(name, file, loader=_Loader(name, file, self._source))


class _Notes:
    """The first test that fails, as a line on the given file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._file.exists():
            self._file.write_text(report.nodeid, "utf-8")


@frozen
class Running:
    """A fork at work."""

    mutant: Mutant | None
    process: int
    folder: Path
    began: float


@frozen
class Verdict:
    """A mutant's fate. `by`: the test that noticed it, or the end of what pytest said."""

    mutant: Mutant
    fate: str
    by: str
    seconds: float


def _child(mutant: Mutant | None, tests: Sequence[str], folder: Path) -> int:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS + 5))
    out = os.open(folder / "out", os.O_WRONLY | os.O_CREAT)
    os.dup2(out, 1)
    os.dup2(out, 2)
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))  # type: ignore[arg-type]
    plugins = [word for name in PLUGINS for word in ("-p", name)]
    marks = "not soak" if all("::" in test for test in tests) else LEFT_OUT
    words = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "--basetemp",
        str(folder / "files"),
        "-m",
        marks,
        "--tb=short",
        *plugins,
    ]
    first = [] if mutant is None else ["-x"]
    return int(pytest.main([*words, *first, *tests], plugins=[_Notes(folder / "noticed")]))


def _start(mutant: Mutant | None, tests: Sequence[str]) -> Running:
    folder = Path(mkdtemp(prefix="mutant"))
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        code = 99
        with suppress(BaseException):
            code = _child(mutant, tests, folder)
        sys.stdout.flush()
        os._exit(code)
    return Running(mutant, process, folder, time.monotonic())


def _ended(running: Running, status: int) -> tuple[str, str]:
    """The fate, and what tells of it; nothing of the fork stays."""
    with suppress(ProcessLookupError):
        os.killpg(running.process, signal.SIGKILL)
    noted = running.folder / "noticed"
    by = noted.read_text("utf-8") if noted.exists() else ""
    out = (running.folder / "out").read_text("utf-8", "replace")[-2000:] if (running.folder / "out").exists() else ""
    shutil.rmtree(running.folder, ignore_errors=True)
    if os.WIFSIGNALED(status):
        return HANGING, f"ended by signal {os.WTERMSIG(status)}"
    fate = _VERDICTS.get(os.WEXITSTATUS(status), BROKEN)  # type: ignore[call-overload]
    if fate == NOTICED and "Failed: Timeout" in out:
        fate = HANGING
    return fate, by if fate == NOTICED else out


def decide(asked: Sequence[Mutant], jobs: int, until: float) -> list[Verdict]:
    """The fate of each, in the order in which they were decided. None begins after `until`, a monotonic instant."""
    waiting, running, decided = list(asked), dict[int, Running](), list[Verdict]()
    while waiting or running:
        while waiting and len(running) < jobs and time.monotonic() < until:
            mutant = waiting.pop(0)
            begun = _start(mutant, mutant.tests)
            running[begun.process] = begun
        if not running:
            break
        process, status, used = os.wait4(-1, os.WNOHANG)
        if process == 0:
            for one in running.values():
                if time.monotonic() - one.began > WAITING:
                    os.kill(one.process, signal.SIGKILL)
            time.sleep(0.02)
            continue
        one = running.pop(process)
        assert one.mutant is not None
        verdict = Verdict(one.mutant, *_ended(one, status), used.ru_utime + used.ru_stime)
        decided.append(verdict)
        _tell(verdict, len(decided), len(asked))
    return decided


def _tell(verdict: Verdict, number: int, count: int) -> None:
    print(f"{number}/{count} {verdict.fate} {verdict.seconds:.1f} s {verdict.mutant}", flush=True)
    if verdict.fate == NOTICED:
        print(f"    by {verdict.by}", flush=True)
    elif verdict.fate == BROKEN:
        print(verdict.by, flush=True)


def _changed(commits: int) -> set[str]:
    """The files that so many last commits changed, or fewer where the history is shorter, and those not committed
    yet."""
    log = ["git", "log", f"-{commits}", "--name-only", "--format="]
    said = [
        subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
        for words in (log, ["git", "diff", "--name-only", "HEAD"])
    ]
    return {name for one in said for name in one.stdout.split()}


def _sound(tests: Sequence[str]) -> list[str]:
    """Those of the tests that fail without any fault: they notice nothing."""
    if not tests:
        return []
    begun = _start(None, sorted(set(tests)))
    _process, status, _used = os.wait4(begun.process, 0)
    fate, said = _ended(begun, status)
    return [] if fate == SURVIVED else [said]


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--changed", type=int, default=0, help="only files that changed in so many last commits")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no mutant later")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("words", nargs="*", help="only mutants that one of these words stands in")
    said = parser.parse_args()
    asked = [one for one in mutants() if not said.words or any(word in str(one) for word in said.words)]
    whole = not said.words and not said.changed
    if said.changed:
        files = _changed(said.changed)
        asked = [
            one
            for one in asked
            if one.file in files or files.intersection(test.partition("::")[0] for test in one.tests)
        ]
    os.environ.update(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    os.chdir(ROOT)
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    began = time.monotonic()
    decided = decide(asked, said.jobs, began + said.minutes * 60)
    unsound = _sound([one.by for one in decided if one.fate == NOTICED])
    return summary(asked, decided, unsound, time.monotonic() - began, BAR if whole else 0.0)


def summary(
    asked: Sequence[Mutant], decided: Sequence[Verdict], unsound: Sequence[str], seconds: float, bar: float
) -> int:
    """Print the figures and every mutant that was not noticed; the exit code. `bar`: the least share that is
    noticed."""
    noticed = [one for one in decided if one.fate == NOTICED]
    rest = [one for one in decided if one.fate != NOTICED]
    unnamed = [one for one in rest if not one.mutant.left]
    for one in sorted(rest, key=lambda one: str(one.mutant)):
        print(f"{one.fate}: {one.mutant}" + (f" (left: {one.mutant.left})" if one.mutant.left else ""))
    for one in noticed:
        if one.mutant.left:
            print(f"noticed, and on the list of those left: {one.mutant}")
    for words in unsound:
        print(f"tests that noticed something fail without any fault:\n{words}")
    share = len(noticed) / len(decided) if decided else 1.0
    print(
        f"{len(decided)} of {len(asked)} mutants decided in {seconds:.0f} s: {len(noticed)} noticed ({share:.1%}), "
        f"{len(rest) - len(unnamed)} not, with their reasons, {len(unnamed)} not, without"
    )
    return int(bool(unnamed or unsound or share < bar))


if __name__ == "__main__":
    sys.exit(main())
