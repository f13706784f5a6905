"""A passphrase in the environment once reached tor, the browser, the notifier and the workers."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from aggregator.intake.workers import Workers
from anon.kit.diagnosis import checks as diagnosis
from anon.kit.page import browser
from anon.kit.testnet import keys
from anon.machine import environment
from anon.machine.environment import Child, for_child
from anon.route.tor.process import TorProcess
from peer.desktop import notifications as notices
from peer.desktop.login import places
from tests.support.peer_command import Command

ROOT = Path(__file__).resolve().parents[2]
CANARY = "correct-horse-canary"
UNKNOWN = "A_TOKEN_OF_SOMETHING_ELSE"


@pytest.fixture
def spy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program under many names that writes down its environment; both secrets and a stranger's are set."""
    told = tmp_path / "told"
    for name in ("tor", "tor-gencert", "notify-send", "systemctl", "chromium", "a-browser"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\nenv > {told}.new\nmv {told}.new {told}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("BROWSER", str(tmp_path / "bin" / "a-browser"))
    monkeypatch.setenv("ANONML_TOR", str(tmp_path / "bin" / "tor"))
    for name in (*environment.SECRETS, UNKNOWN):
        monkeypatch.setenv(name, CANARY)
    return told


async def _tor(folder: Path) -> None:
    with pytest.raises(Exception, match="tor"):
        await TorProcess.start("SocksPort 0\n", folder / "tor", 2, program=folder / "bin" / "tor")


async def _notifier(folder: Path) -> None:
    await notices._by_notify_send("there is something")


async def _login_service(folder: Path) -> None:
    assert places._answers(("systemctl", "--user", "show-environment"))


async def _browser(folder: Path) -> None:
    assert browser.open_link("http://127.0.0.1:1/once")


async def _doctor(folder: Path) -> None:
    diagnosis._tor()


async def _gencert(folder: Path) -> None:
    await keys._run([str(folder / "bin" / "tor-gencert")])


async def _pdf(folder: Path) -> None:
    from aggregator.report import pdf

    pdf._by_browser("<p>a report</p>")


STARTS = [_tor, _notifier, _login_service, _browser, _doctor, _gencert, _pdf]


@pytest.mark.parametrize("start", STARTS)
async def test_a_program_that_we_start_gets_no_secret(start: object, spy: Path, tmp_path: Path) -> None:
    await start(tmp_path)  # type: ignore[operator]
    said = spy.read_text()
    assert "PATH=" in said and CANARY not in said
    assert not [name for name in (*environment.SECRETS, "ANONML_LINK") if name in said]


async def test_a_worker_gets_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*environment.SECRETS, UNKNOWN):
        monkeypatch.setenv(name, CANARY)
    workers = Workers(1)
    try:
        assert await workers.run(os.getenv, UNKNOWN) is None
        assert await workers.run(os.getenv, environment.PASSPHRASE) is None
        assert await workers.run(os.getenv, "PATH") == os.environ["PATH"]
    finally:
        workers.close()


@pytest.mark.slow
def test_the_command_takes_the_secrets_out_before_anything_else() -> None:
    program = textwrap.dedent(
        """
        import os, sys, anonml
        anonml._run = lambda words: print(sorted(name for name in os.environ if "PASSPHRASE" in name)) or 0
        anonml.main()
        """
    )
    given = os.environ | dict.fromkeys(environment.SECRETS, CANARY)
    done = subprocess.run(
        [sys.executable, "-c", program, "doctor"], cwd=ROOT, env=given, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_passphrase_is_read_once_and_then_gone(command: Command) -> None:
    command.monkeypatch.setenv("ANONML_PASSPHRASE", "first")
    assert command("passphrase").code == 0
    assert "ANONML_PASSPHRASE" not in os.environ
    assert command("status").code == 0


def test_settings_reach_only_programs_of_ours() -> None:
    ours = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "ANONML_TORRC": "/x",
        "DISPLAY": ":0",
        "ANONML_PASSPHRASE": CANARY,
        "AWS_SECRET": CANARY,
    }
    assert for_child(Child.PROGRAM, ours) == {"PATH": "/bin", "LC_ALL": "C"}
    assert for_child(Child.DESKTOP, ours) == {"PATH": "/bin", "LC_ALL": "C", "DISPLAY": ":0"}
    assert for_child(Child.OWN, ours) == {"PATH": "/bin", "LC_ALL": "C", "ANONML_TORRC": "/x"}
    bundled = {"LD_LIBRARY_PATH": "/bundle", "LD_LIBRARY_PATH_ORIG": "/lib"}
    assert for_child(Child.PROGRAM, bundled) == {"LD_LIBRARY_PATH": "/lib"}
    assert for_child(Child.OWN, bundled) == {"LD_LIBRARY_PATH": "/bundle"}


SPAWNING = {"run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"}
UNCONTROLLED = {"system", "popen", "startfile", "posix_spawn", "posix_spawnp", "fork", "forkpty"}
POOLS = {
    "aggregator/intake/workers.py": "each worker sheds its environment first (`shed`)",
    "aggregator/cli/fellows.py": "each process sheds its environment first (`begin_child`)",
    "aggregator/auditor/adapters.py": "it runs in the mechanism's process, whose environment `boxes` made",
    "anon/kit/page/browser.py": "the library runs in a child that has the desktop's variables alone",
}
"""Where a start takes no `env`, and why it may."""
FORKS = {
    "anon/queries/child.py": "a program that was started with an empty environment forks itself",
    "peer/data/foreign_child.py": "the same, for a file of a stranger",
}


MENTIONED = re.compile(
    r"\b(subprocess\w*|create_subprocess\w+|os|webbrowser|pty|multiprocessing|ProcessPoolExecutor)\b"
)
"""The names of which one stands in each file that starts a program; all other files need no parsing."""


def _starts(tree: ast.AST) -> list[tuple[ast.Call, str]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            found.append((node, f"{owner}.{node.func.attr}"))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.append((node, f".{node.func.id}"))
    return found


def _is_controlled(call: ast.Call, tree: ast.AST) -> bool:
    """True if `env` is nothing, or made by `for_child`: there, or under a name bound to it in the module."""
    given = next((word.value for word in call.keywords if word.arg == "env"), None)
    if isinstance(given, ast.Name):
        bound = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == given.id
        ]
        given = bound[0] if len(bound) == 1 else None
    if isinstance(given, ast.Dict):
        spread = [value for key, value in zip(given.keys, given.values, strict=True) if key is None]
        return all(ast.unparse(value) in ("surroundings", "for_child(Child.DESKTOP)") for value in spread)
    return isinstance(given, ast.Call) and ast.unparse(given.func) in ("for_child", "environment.for_child")


def _faults(path: Path) -> list[str]:
    text = path.read_text("utf-8")
    if not MENTIONED.search(text):
        return []
    tree = ast.parse(text)
    name, faults = path.relative_to(ROOT).as_posix(), []
    for node in ast.walk(tree):
        modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            modules = [str(node.module), *(f"{node.module}.{one.name}" for one in node.names)]
        wrong = {"webbrowser", "pty", "multiprocessing", "concurrent.futures.ProcessPoolExecutor"} & set(modules)
        named = {"subprocess.run", "subprocess.Popen", "subprocess.check_output", "os.system", "os.fork"} & set(modules)
        if (wrong or named) and name not in POOLS:
            faults.append(f"{name}:{node.lineno}: imports {', '.join(sorted(wrong | named))}")  # type: ignore[attr-defined]
    for call, said in _starts(tree):
        owner, _, verb = said.rpartition(".")
        starts = (owner == "subprocess" and verb in SPAWNING) or verb in (
            "create_subprocess_exec",
            "create_subprocess_shell",
        )
        starts = starts or verb in ("subprocess_exec", "subprocess_shell")
        if starts and name not in POOLS and not _is_controlled(call, tree):
            faults.append(f"{name}:{call.lineno}: {said} without env=for_child(...)")
        if (
            owner == "os"
            and (verb in UNCONTROLLED or verb.startswith(("exec", "spawn")))
            and not (verb == "fork" and name in FORKS)
        ):
            faults.append(f"{name}:{call.lineno}: {said}")
    return faults


@pytest.mark.slow
def test_no_program_is_started_in_another_way() -> None:
    sources = [
        path for side in ("anon", "peer", "aggregator", "bundle") for path in sorted((ROOT / side).rglob("*.py"))
    ]
    assert [fault for path in [*sources, ROOT / "anonml.py"] for fault in _faults(path)] == []


@pytest.mark.parametrize("line", [
    "import webbrowser", "from multiprocessing import Process", "import subprocess\nsubprocess.run(['x'])",
    "import subprocess\nsubprocess.Popen(['x'], env=os.environ)", "import os\nos.system('x')",
    "import os\nos.execv('x', [])", "import asyncio\nasync def f():\n    await asyncio.create_subprocess_exec('x')",
    "from subprocess import run", "import subprocess\nsubprocess.run(['x'], env={**os.environ})",
])
def test_the_search_finds_each_way(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "one.py").write_text(line + "\n")
    assert len(_faults(tmp_path / "one.py")) == 1
