"""Errors of a first day say what to do next: extras, ports, disks, a document that does not verify."""

from __future__ import annotations

import re
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from pipx.package_specifier import parse_specifier_for_install  # type: ignore[import-untyped]
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from typer.testing import CliRunner

from aggregator.cli.main import app as commands
from aggregator.cli.study import app as studies
from anon.errors import InvalidValue, Malformed, RejectedProof
from anon.machine.extras import install
from anonml import _explain

pytestmark = pytest.mark.source

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
SHOWN = [
    line
    for page in PAGES
    for line in re.findall(r"pipx install (?:--force )?'([^']+\[[^']+)'", page.read_text("utf-8"))
]


@pytest.mark.parametrize("spec", sorted({*SHOWN, install("pdf").partition("'")[2].rstrip("'")}))
def test_pipx_keeps_the_extras_of_what_we_tell_people_to_type(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / spec.partition("[")[0]).touch()
    monkeypatch.chdir(tmp_path)
    kept, _ = parse_specifier_for_install(spec, [])
    assert kept.endswith(f"whl[{spec.partition('[')[2]}"), f"pipx would install {kept}"


WHEELS = [
    (page.name, line)
    for page in PAGES
    for line in re.findall(r"pipx? install [^`\n]*?(\S*(?:\.whl|WHEEL))", page.read_text("utf-8"))
]


@pytest.mark.parametrize(("page", "file"), WHEELS)
def test_a_wheel_is_always_named_as_a_file(page: str, file: str) -> None:
    """Debian 12's pipx takes a name without a folder for a package of the registry."""
    assert file.lstrip("'").startswith(("./", "~/")), page


def test_no_page_sends_anyone_to_a_registry_for_this_program() -> None:
    found = [
        (page.name, line) for page in PAGES for line in re.findall(r"pip install 'anonml.*", page.read_text("utf-8"))
    ]
    assert not found


def test_an_extra_is_added_to_those_that_are_there() -> None:
    assert "[aggregator," in install("pdf") and "pdf" in install("pdf") and "whl[aggregator" in install("aggregator")


def _full(file: Path, statement: str) -> OperationalError:
    engine = create_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE kept (of BLOB)"))
        connection.execute(text("PRAGMA max_page_count = 3"))
        with pytest.raises(OperationalError) as caught:
            connection.execute(text(statement))
    return caught.value


def test_a_full_disk_under_the_aggregators_database_is_no_bug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _explain(_full(tmp_path / "a.sqlite", "INSERT INTO kept VALUES (zeroblob(100000))")) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "SQLITE_FULL" in said and "Make room on that disk" in said and "Traceback" not in said


def test_another_fault_of_the_database_stays_a_bug(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(sqlite3.OperationalError) as caught:
        sqlite3.connect(tmp_path / "b.sqlite").execute("SELECT 1 FROM nowhere")
    assert _explain(caught.value) == 1 and "a fault in this program" in capsys.readouterr().err


def test_a_document_that_does_not_verify_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert _explain(RejectedProof("a document's signature does not verify")) == 5
    assert "compare its fingerprint with a public place" in " ".join(capsys.readouterr().err.split())


def _serve(home: Path, port: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "anonml", "aggregator", "serve", "--port", str(port), "--home", str(home)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.process
def test_a_port_that_is_none_or_taken_says_which_to_choose(tmp_path: Path) -> None:
    none = _serve(tmp_path, 80000)
    assert none.returncode == 2 and "65535" in none.stderr
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = _serve(tmp_path, other.getsockname()[1])
    assert taken.returncode == 1 and "--port 0" in " ".join(taken.stderr.split())


def test_links_of_a_loopback_address_say_that_they_lead_nowhere_else(tmp_path: Path) -> None:
    home, run = str(tmp_path / "home"), CliRunner()
    for words in (["init", str(tmp_path / "study.toml")], ["publish", str(tmp_path / "study.toml"), "--home", home]):
        assert run.invoke(studies, words, catch_exceptions=False).exit_code == 0
    named = run.invoke(commands, ["invite", "--home", home], catch_exceptions=False)
    assert ".onion:80/" in named.stdout and named.stderr == ""
    here = run.invoke(commands, ["invite", "--home", home, "--address", "127.0.0.1:8750"], catch_exceptions=False)
    assert here.stdout.count("\n") == 1 and "this machine alone" in here.stderr


def test_a_value_that_fits_no_key_is_malformed_input_and_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    assert _explain(InvalidValue("epsilon: expected at least 0")) == Malformed.exit_code
    assert "epsilon: expected at least 0" in capsys.readouterr().err
