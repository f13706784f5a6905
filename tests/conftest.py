"""Fixtures and marks for tests that need something of the machine, and the message when it is missing."""

from __future__ import annotations

import gc
import os
import random
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from anon.errors import AnonmlError
from anon.machine import environment
from tests.support import draws
from tests.support.tries import QUARTER, WHOLE

if TYPE_CHECKING:
    from anon.kit.testnet import PrivateNetwork
    from tests.support.peer_command import Command, Served
    from tests.support.postgres import Server
    from tests.support.world import World

draws.install()  # before another conftest imports code that draws
for word in ("CI", "BUILD_NUMBER"):  # where one is set, pytest writes out all differences: of 40,000 entries, for hours
    os.environ.pop(word, None)
Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
NO_SKIPS = "ANONML_NO_SKIPS"
WAITING = ("process", "slow", "tor", "browser", "postgres")
POSTGRES_HINT = "PostgreSQL's server is missing: install it (Debian: apt-get install postgresql)"
FRAMEWORKS = {"flower": "flwr", "nvflare": "nvflare"}
collect_ignore = [f"peer/ledger/test_in_{name}.py" for name, root in FRAMEWORKS.items() if find_spec(root) is None]
"""Each needs an environment of its own (docs/ledger.md)."""
HINT = "tor is missing: install it (Debian: apt-get install tor; macOS: brew install tor)"
IN_MEMORY, ROOM = Path("/dev/shm"), 6 << 30


def _has_tor() -> bool:
    try:
        from anon.route.tor import find_tor

        find_tor()
    except AnonmlError:
        return False
    return True


def _has_postgres() -> bool:
    from tests.support.postgres import programs

    return programs() is not None


def _has_memory() -> bool:
    """Files of tests lie in memory, where there is enough of it in which programs may run: each commit waits for a
    disk."""
    if sys.platform != "linux" or not os.access(IN_MEMORY, os.W_OK) or os.statvfs(IN_MEMORY).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(IN_MEMORY).free >= ROOM


def pytest_configure(config: pytest.Config) -> None:
    """Draws and Hypothesis repeat themselves, but in the soak, which is to find what is new. No test fails for being
    slow. A run that leaves out what is slow tries a quarter of the examples.

    Programs that tests interrupt inherit this process's answer to Ctrl-C, and in the background of a shell that is to
    ignore it.
    """
    unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    asked = config.getoption("markexpr").strip()
    tries = QUARTER if re.search(r"\bnot \(?[^)]*\bslow\b", asked) else WHOLE
    settings.register_profile("repeated", unhurried, derandomize=True, max_examples=tries)
    settings.register_profile("free", unhurried, print_blob=True)
    if asked == "soak":
        settings.load_profile("free")
        draws.be_free()
    else:
        settings.load_profile("repeated")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if _has_memory():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def pytest_collection() -> None:
    """Hardly anything that is loaded becomes garbage: its collector would only look at all of it again and again."""
    gc.disable()


def pytest_collection_finish() -> None:
    """All that is loaded by now stays: the collector of garbage looks at it no more."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _demanded((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    draws.begin(collector.nodeid)
    return _demanded((yield))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture draws."""
    draws.begin(item.nodeid)


def _demanded(report: Report) -> Report:
    """With ANONML_NO_SKIPS=1, as CI has it, what is skipped has failed: a part that it needs is missing."""
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get(NO_SKIPS) == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped, which {NO_SKIPS}=1 does not allow: {report.longrepr}"
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a failure when it happens: a run of twenty minutes may be read, or end, before its summary."""
    if report.failed and os.environ.get(NO_SKIPS) == "1" and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nfailed: {report.nodeid} ({report.when})", flush=True)


def shuffle(items: list[pytest.Item], drawn: random.Random) -> None:
    """Another order of the files, and of the tests in each. Every worker draws the same one."""
    files = sorted({item.path for item in items})
    places = dict(zip(drawn.sample(files, len(files)), range(len(files)), strict=True))
    drawn.shuffle(items)
    items.sort(key=lambda item: places[item.path])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, each by its name, the tests that need tor or PostgreSQL where there is none. The soak may take as long as
    it takes.

    Files that wait for whole programs and windows begin first, so that no worker ends with one of them alone.
    """
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.timeout(0))
    if order := os.environ.get("ANONML_ORDER"):
        shuffle(items, random.Random(order))
    items.sort(key=lambda item: not any(item.get_closest_marker(mark) for mark in WAITING))
    for mark, there, hint in (("tor", _has_tor, HINT), ("postgres", _has_postgres, POSTGRES_HINT)):
        marked = [item for item in items if item.get_closest_marker(mark)]
        if marked and not there():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=hint))


@pytest.fixture(autouse=True)
def no_secret_taken() -> Iterator[None]:
    """Each test is a process of its own to the secrets that commands take out of the environment."""
    yield
    environment.forget()


@pytest.fixture(scope="session", autouse=True)
def passphrase_cost() -> Iterator[tuple[int, int]]:
    """The cost of a key from a passphrase, in operations and bytes. In this process a key costs hardly anything;
    programs that tests start pay for it."""
    from anon.crypto.nacl import libsodium

    cost = libsodium.OPERATIONS, libsodium.MEMORY
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(libsodium, "OPERATIONS", libsodium.pwhash.argon2id.OPSLIMIT_MIN)
        patch.setattr(libsodium, "MEMORY", libsodium.pwhash.argon2id.MEMLIMIT_MIN)
        yield cost


@pytest.fixture(scope="session")
def private_tor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateNetwork]:
    """One private Tor network for all tests of the session that need no more than that. `torrc_file` lets others in."""
    from examples.private_tor import private_tor as standing

    with standing(tmp_path_factory.mktemp("tor") / "net") as network:
        yield network


@pytest.fixture(autouse=True)
def vetting_anew() -> None:
    """A process keeps the manifest that it vetted last; each test begins as a process of its own."""
    if checks := sys.modules.get("peer.rules.checks"):
        checks.vetted_manifest.cache_clear()


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The folder of a user, in which `command` keeps its home."""
    return tmp_path


@pytest.fixture
def command(user: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """`anonml peer ...` as typed, over a home of its own."""
    from tests.support.peer_command import Command

    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("ANONML_PASSPHRASE", raising=False)
    return Command(user / "home", capsys, monkeypatch)


@pytest.fixture
def served() -> Iterator[Served]:
    """An aggregator in memory that typed commands reach over loopback HTTP."""
    from tests.support.peer_command import serving

    with serving() as found:
        yield found


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[World]:
    """An aggregator with a one-packet study with declared cuts."""
    from tests.support.world import in_memory, study_text

    async with in_memory(tmp_path / "home", study_text()) as world:
        yield world


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One PostgreSQL server for all tests of the session."""
    from tests.support.postgres import server

    with server() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str:
    """The test runs over each dialect: the address of a new database on the server, or empty for a file."""
    return request.getfixturevalue("postgres").made() if request.param == "postgres" else ""


@pytest.fixture
async def on_each_dialect(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    """Like `running`, over each dialect."""
    from tests.support.world import in_memory, study_text

    async with in_memory(tmp_path / "home", study_text(), database_url=database_url) as world:
        yield world


MOST_OPEN = 256
"""Descriptors of this process. Peers that a test leaves behind hold the files of their stores until they are
collected."""


@pytest.fixture(autouse=True, scope="module")
def few_open_files() -> Iterator[None]:
    """No file of tests leaves so many open that a later one gets numbers beyond 1,023, or none."""
    yield
    open_now = Path("/proc/self/fd")
    if open_now.exists() and sum(1 for _ in open_now.iterdir()) > MOST_OPEN:
        gc.collect()


@pytest.fixture
def answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The aggregator holds no answer back."""
    monkeypatch.setattr("aggregator.intake.packets.REPLY_SECONDS", 0.0)
