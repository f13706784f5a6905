"""The command `anonml` itself: its help, its words for what somebody types, what it loads, and what it offers to
programs."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import anonml
from anon.kit.terminal.placeholders import MEANING, placed
from benchmarks.commands import home_with_study
from tests.docs.repository import ROOT, modules
from tests.support.peer_command import Command

GROUPS = {
    "peer": ["Start", "Watch", "Privacy", "Devices"],
    "aggregator": ["Run", "Watch", "Publish", "Keep"],
    "teller": ["Run", "Watch"],
}


def below(command: Any) -> list[Any]:
    return [command, *(one for inner in getattr(command, "commands", {}).values() for one in below(inner))]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "200")
    return Command(tmp_path / "home", capsys, monkeypatch)


# Its help


def test_help_is_a_word_too(command: Command) -> None:
    assert command.anonml("help").out == command.anonml("--help").out
    assert command.anonml("help").code == 0 and command.anonml().code == 2
    assert command.anonml("help", "peer", "join").out == command.anonml("peer", "join", "--help").out
    assert "bash|zsh|fish" in command.anonml("help", "completion").out
    unknown = command.anonml("help", "no-such")
    assert unknown.code == 2 and "no command 'no-such'" in unknown.err


def test_the_version_has_a_short_option(command: Command) -> None:
    told = command.anonml("-V").out
    assert re.fullmatch(r"anonml \d+\.\d+\.\d+\n", told) and told == command.anonml("--version").out


@pytest.mark.parametrize("name", GROUPS)
def test_help_shows_the_commands_in_groups(command: Command, name: str) -> None:
    shown = command.anonml(name, "--help").out
    assert re.findall(r"^(\w+)$", shown, re.MULTILINE) == ["Options", *GROUPS[name]]


@pytest.mark.parametrize("name", anonml.COMMANDS)
def test_every_further_command_is_told_to_the_wiring(name: str) -> None:
    """A name that is missing there is found by help and by nobody who types it."""
    from importlib import import_module

    import typer

    for command, part, names in anonml.JOINED:
        if command == name:
            empty = typer.Typer()
            module, _, join = part.partition(":")
            empty.command("first")(lambda: None)
            getattr(import_module(module), join)(empty)
            added = set(typer.main.get_command(empty).commands) - {"first"}  # type: ignore[attr-defined]
            assert added == set(names), part


# The words for what somebody types


@pytest.mark.parametrize("name", anonml.COMMANDS)
def test_every_value_has_a_placeholder_of_the_one_list(name: str) -> None:
    wrong = [
        (command.name, param.name, param.metavar)
        for command in below(placed(anonml.application(name)))
        for param in command.params
        if not getattr(param, "is_flag", False)
        and not {word.partition(".")[0] for word in str(param.metavar).split("=")} <= set(MEANING)
    ]
    assert wrong == []


QUOTED = re.compile(r"`([^`]*)`")
PLACEHOLDER = re.compile(
    r"(?<![\w`/=.-])([A-Z]{1,}[A-Z_]*)(?:\.[a-z]+)?(?![\w(])|<[a-z][a-z -]*>|(?<= )(?:file|study|data)\.(?:toml|csv)"
)


def strange(text: str) -> list[str]:
    """The placeholders of commands in backticks that are not on the list."""
    quoted = [one for one in QUOTED.findall(text) if one.startswith(("anonml ", "--"))]
    found = [(match[1] or "", match[0]) for one in quoted for match in PLACEHOLDER.finditer(one)]
    return [whole for word, whole in found if word not in MEANING]


def test_a_strange_placeholder_is_seen() -> None:
    seen = strange(
        "`anonml peer join LINK`, `anonml x DIR`, `anonml y <file>`, `--home PATH`, `anonml z study.toml`, `A`, "
        "`anonml v S.toml`"
    )
    assert seen == ["DIR", "<file>", "PATH", "study.toml", "S.toml"]


def test_messages_use_the_same_words() -> None:
    wrong = {}
    for path in [ROOT / "anonml.py", *modules("anon", "peer", "aggregator", "examples")]:
        text = path.read_text("utf-8")
        nodes = ast.walk(ast.parse(text)) if re.search("`(anonml|--)", text) else ()
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        if words := [word for text in texts for word in strange(text)]:
            wrong[path.relative_to(ROOT).as_posix()] = words
    assert wrong == {}


# Modules that are loaded


NETWORK = {"aiohttp", "h11", "python_socks", "ssl", "asyncio", "peer.app", "peer.network", "peer.run"}
OTHERS = {
    "peer.desktop", "peer.pairing", "peer.web", "peer.predict", "peer.data.formats", "aggregator", "numpy",
    "sqlalchemy",
}
CHECKS = {"peer.release", "peer.rules.checks", "peer.protocols"}
LIBRARIES = {"typer", "rich", "attrs", "cattrs", "logging", "importlib.metadata"}


@pytest.mark.process
@pytest.mark.parametrize(("words", "unneeded"), [
    (("--help",), NETWORK | OTHERS | LIBRARIES | {"peer"}),
    (("help", "peer"), NETWORK | OTHERS | LIBRARIES | {"peer"}),
    (("help", "study", "plan"), NETWORK | OTHERS | LIBRARIES | {"peer"}),
    (("peer", "status"), NETWORK | OTHERS | CHECKS),
    (("peer", "budget"), OTHERS),
    (("peer", "run", "--once"), NETWORK | OTHERS | CHECKS),
])
def test_a_command_loads_only_what_it_needs(words: tuple[str, ...], unneeded: set[str], tmp_path: Path) -> None:
    """Each of these costs tens of milliseconds (docs/performance.md)."""
    assert loaded(words, tmp_path / "home") & unneeded == set()


SUMS = {
    "anon.protocols.sum.shared", "anon.protocols.sum.design", "anon.protocols.models.linear", "anon.sharing",
    "anon.protocols.vectors", "anon.vdaf", "peer.protocols.sum.part",
}
SELDOM = {"anon.route.tor", "anon.accounting.central", "anon.accounting.shuffle", "anon.protocols.sum.sections"}
WORDS_OF, MOST_COMPILED = "<attrs", 5
"""Classes of ours whose words attrs compiled, 0.2 ms each: `anon.values` has the others."""
IMPORTING = {"peer.data.importing", "peer.data.formats", "peer.data.fitting", "anon.tables.streams"}


@pytest.mark.process
def test_a_command_about_a_study_loads_only_what_that_needs(tmp_path: Path) -> None:
    """In a home with a study that perturbs, and nothing of which is due."""
    with home_with_study(tmp_path / "home") as link:
        status = loaded(("peer", "status"), tmp_path / "home")
        assert "peer.rules.checks" in status and status & (NETWORK | OTHERS | SUMS | IMPORTING | SELDOM) == set()
        run = loaded(("peer", "run", "--once"), tmp_path / "home")
        assert "peer.run" in run and run & ({"aiohttp", "h11"} | OTHERS | SUMS | IMPORTING | SELDOM) == set()
        look = loaded(("peer", "look", link), tmp_path / "home")
        assert "h11" in look and look & ({"aiohttp", "python_socks"} | OTHERS | SUMS | IMPORTING | SELDOM) == set()
        for found in (status, run, look):
            assert len([name for name in found if name.startswith(WORDS_OF)]) <= MOST_COMPILED


def loaded(words: tuple[str, ...], home: Path) -> set[str]:
    """The modules of a process that ran this command, and the classes of ours for which attrs compiled words."""
    program = (
        "import sys, anonml\n"
        "sys.argv = ['anonml', *sys.argv[1:]]\n"
        "try:\n    anonml.main()\n"
        "except SystemExit as ended:\n    assert not ended.code, ended.code\n"
        "import linecache\n"
        "made = [name.replace(' ', '_') for name, text in linecache.cache.items() if '__repr__' in str(text[2:3])]\n"
        "own = [name for name in made if '_anon.' in name or '_peer.' in name]\n"
        "sys.stderr.write(' '.join([*sys.modules, *own]))"
    )
    named = ["--home", str(home)] if words[0] == "peer" else []
    done = subprocess.run(
        [sys.executable, "-c", program, *words, *named], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_garbage_is_collected_again_once_a_command_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while it loads: there is hardly any, and looking for it took a tenth of a short command."""
    seen: list[bool] = []
    monkeypatch.setattr(anonml, "application", _noting_collection(seen, anonml.application))
    with pytest.raises(SystemExit):
        anonml._run(["peer", "no-such"])
    assert seen == [False] and gc.isenabled()


def _noting_collection(seen: list[bool], application: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*given: str) -> Any:
        seen.append(gc.isenabled())
        return application(*given)

    return noted


@pytest.mark.parametrize("fails", [False, True])
def test_a_home_in_a_cycle_is_closed_when_its_command_ends(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """Else its database's log stays beside it, where garbage happens not to be looked for."""
    closed: list[str] = []

    class Home:
        def __init__(self) -> None:
            self.own = self

        def __del__(self) -> None:
            closed.append("closed")

    def command(**_: object) -> None:
        Home()
        if fails:
            raise SystemExit(1)

    monkeypatch.setattr(anonml, "_command", lambda name, rest: command)
    gc.disable()
    try:
        with nullcontext() if not fails else pytest.raises(SystemExit):
            anonml._run(["peer", "status"])
        assert closed == ["closed"]
    finally:
        gc.enable()


# Names for programs


def test_programs_get_what_they_use_most_by_one_import() -> None:
    from aggregator.audit import audit
    from aggregator.estimator import LocallyPrivateClassifier, PublishedClassifier
    from aggregator.notebook import Study

    assert (anonml.LocallyPrivateClassifier, anonml.Study) == (LocallyPrivateClassifier, Study)
    assert (anonml.PublishedClassifier, anonml.audit) == (PublishedClassifier, audit)
    assert all(getattr(anonml, name).__name__.rpartition(".")[2] == name for name in anonml.OFFERED)
    assert set(anonml.__all__) == set(anonml.OFFERED) <= set(dir(anonml))
    with pytest.raises(AttributeError, match="no attribute 'Stduy'"):
        _ = anonml.Stduy  # type: ignore[attr-defined]


def test_without_the_extra_an_import_says_which_to_install() -> None:
    program = "import sys; sys.modules['numpy'] = None; from anonml import Study"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: Study needs an extra: numpy is missing" in done.stderr and "[aggregator" in done.stderr


LISTING = """
import sys, anonml, typer
for wanted in sys.argv[1:]:
    anonml.application("peer", wanted)
print(*typer.main.get_command(anonml.application("peer")).commands)
"""


@pytest.mark.process
def test_commands_stand_in_one_order_whichever_shell_was_asked_for_first() -> None:
    """Each list is made by a process of its own."""
    lists = [
        subprocess.run(
            [sys.executable, "-c", LISTING, *first], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        for first in ([], ["tray"], ["open", "pair"])
    ]
    assert len(set(lists)) == 1 and "tray" in lists[0]
