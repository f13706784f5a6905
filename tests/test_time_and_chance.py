"""Time and chance decide no test: what a test draws repeats itself, and no test of `make test` counts seconds."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import draws

pytestmark = pytest.mark.source

ROOT = Path(__file__).resolve().parents[1]
MARKS = {"slow", "process", "tor", "browser", "postgres", "soak", "timed"}
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time"}
SHORTEST = 2.0
"""Seconds: a busy machine takes one away from any process."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


_DRAWS = """
import os, random, secrets
import numpy.random
from nacl.signing import SigningKey
from tests.support import draws

def drawn(name):
    draws.begin(name)
    key = bytes(SigningKey.generate())
    asked = os.urandom(8), secrets.token_bytes(8), secrets.randbelow(2**60)
    return *asked, random.random(), numpy.random.default_rng().random(), key

draws.install()
first, again, other = drawn("a test"), drawn("a test"), drawn("another test")
assert first == again and not set(first) & set(other)
receiving, sending = os.pipe()
draws.begin("a test")
if not (child := os.fork()):
    os.write(sending, os.urandom(8))
    os._exit(0)
os.waitpid(child, 0)
assert os.read(receiving, 8) != first[0], "a process that a test starts draws from the operating system"
"""


def test_all_that_a_test_draws_repeats_itself() -> None:
    subprocess.run([sys.executable, "-c", _DRAWS], cwd=ROOT, check=True, timeout=120)


_SEEDS = """
import numpy as np
from tests.support import draws

draws.install()
def asked(by):
    return eval("np.random.default_rng(1).random()", {"np": np, "__name__": by})

assert asked("aggregator.lab") == draws.as_seeded(1).random() != asked("tests.lab")
"""


def test_other_draws_are_other_seeds_of_the_tests_alone() -> None:
    named = {**os.environ, "ANONML_DRAWS": "7"}
    subprocess.run([sys.executable, "-c", _SEEDS], cwd=ROOT, check=True, timeout=120, env=named)


def test_the_draws_of_a_test_are_installed(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("markexpr").strip() == "soak":
        pytest.skip("in the soak draws are free")
    drawn = os.urandom(8)
    draws.begin(request.node.nodeid)
    assert drawn == os.urandom(8)


def test_no_lock_of_a_loop_is_made_before_there_is_one() -> None:
    """Once a task has waited for it, every other loop that has to wait is refused."""
    made = re.compile(r"^\w+(: [^=\n]+)? = asyncio\.(\w*Semaphore|Lock|Event|Condition|Queue)\(", re.MULTILINE)
    folders = (ROOT / name for name in ("anon", "peer", "aggregator", "examples", "tests"))
    assert made.search("AT_ONCE = asyncio.Semaphore(4)")
    assert not [file for folder in folders for file in folder.rglob("*.py") if made.search(file.read_text())]


def _marked(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr in MARKS for part in ast.walk(node))


def _functions(text: str) -> Iterator[Function]:
    """Those of a file that `make test` runs."""
    tree = ast.parse(text)
    named = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node.targets[0])
    ]
    if not any(map(_marked, named)):
        for node in ast.walk(tree):
            if isinstance(node, Function) and not any(map(_marked, node.decorator_list)):
                yield node


def _difference(node: ast.AST, known: set[str]) -> bool:
    """True for seconds that passed: a clock's reading less another, or a name or a list that holds such."""
    return any(
        (
            isinstance(part, ast.BinOp)
            and isinstance(part.op, ast.Sub)
            and any(_reads_a_clock(leaf) for leaf in ast.walk(part))
        )
        or (isinstance(part, ast.Name) and part.id in known)
        for part in ast.walk(node)
    )


def _reads_a_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS and (
        ast.unparse(node.func.value) in {"time", "loop", "asyncio.get_running_loop()", "asyncio.get_event_loop()"}
    )


def _seconds_counted(function: Function) -> list[str]:
    """The assertions about seconds that passed and anything but a number of at least `SHORTEST`."""
    known: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _difference(node.value, set()):
            known |= _names(*node.targets)
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith(".append")
            and _difference(node.args[0], set())
        ):
            known.add(ast.unparse(node.func).removesuffix(".append"))
    asserted = [part for node in ast.walk(function) if isinstance(node, ast.Assert) for part in ast.walk(node.test)]
    compared = [node for node in asserted if isinstance(node, ast.Compare) and _difference(node, known)]
    return [
        f"{function.name}: {ast.unparse(node)}"
        for node in compared
        if not all(_difference(side, known) or _long(side) for side in (node.left, *node.comparators))
    ]


def _names(*nodes: ast.AST) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def _long(node: ast.AST) -> bool:
    """True for a number, or a product of numbers, of seconds enough."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _long(node.left) and _long(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value >= SHORTEST


def _bare_sleeps(function: Function) -> list[str]:
    """Sleeps of a test itself: not in a loop that looks again, nor in a function that it hands over."""
    if not function.name.startswith("test_"):
        return []
    apart = {
        id(part)
        for node in ast.walk(function)
        if node is not function and isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.Lambda | Function)
        for part in ast.walk(node)
    }
    return [
        f"{function.name}: {ast.unparse(node)}"
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"asyncio.sleep", "time.sleep"}
        and id(node) not in apart
        and ast.unparse(node.args[0]) != "0"
    ]


@pytest.mark.slow
def test_no_test_counts_seconds_or_sleeps() -> None:
    """A clock is an argument, `cheap` measures processor time, `until` and `turns` wait: tests/support."""
    found = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for function in _functions(path.read_text("utf-8"))
        for fault in (*_seconds_counted(function), *_bare_sleeps(function))
    ]
    assert found == []


BAD = {
    "wall": "assert time.monotonic() - began < 1.5",
    "least": "assert 0.45 < time.monotonic() - began",
    "named": "took = time.perf_counter() - began\n    assert took < LONGEST",
    "list": "taken.append(time.process_time() - began)\n    assert min(taken) < 0.005",
    "loop": "assert 1.0 <= loop.time() - began < 9.0",
    "sleep": "await asyncio.sleep(0.1)\n    assert done",
}
GOOD = {
    "patience": "assert time.monotonic() - began < 30",
    "minutes": "assert 29 * 60 < until - time.time() <= 30 * 60",
    "deadline": "while time.monotonic() < deadline:\n        await asyncio.sleep(0.1)",
    "turn": "await asyncio.sleep(0)",
    "counted": "assert clock() - began < 1.5",
}


@pytest.mark.parametrize("name", [*BAD, *GOOD])
def test_a_test_that_counts_seconds_would_be_found(name: str) -> None:
    text = f"async def test_it():\n    {(BAD | GOOD)[name]}\n"
    (function,) = _functions(text)
    assert bool(_seconds_counted(function) + _bare_sleeps(function)) is (name in BAD)
    assert not list(_functions(f"@pytest.mark.timed\n{text}")) and not list(
        _functions(f"pytestmark = pytest.mark.timed\n{text}")
    )
