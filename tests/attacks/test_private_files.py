"""`peer predict --output` once wrote predictions for every user of the machine to read."""

from __future__ import annotations

import ast
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from anon.storage import private_files
from anon.storage.private_files import (
    held_private,
    keep_first,
    made_private,
    new_private,
    new_private_text,
    write_private,
)
from peer.predict import Prediction, write_predictions
from tests.support.peer_command import Command, Served

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def _open_to_all() -> Iterator[None]:
    """The most careless umask there is."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def _readable(folder: Path) -> list[str]:
    """Files that others than the owner have some right to, also inside folders that only the owner may enter."""
    return [
        path.name for path in folder.rglob("*") if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]


def test_predictions_are_for_their_owner_alone(tmp_path: Path) -> None:
    with _open_to_all():
        write_predictions([Prediction("a student", 0.25, 0.5, False, ())], tmp_path / "predictions.csv")
    assert _readable(tmp_path) == []


@pytest.mark.parametrize("write", [
    lambda path: new_private(path).close(),
    lambda path: new_private_text(path).close(),
    lambda path: write_private(path, b"content"),
    lambda path: keep_first(path, b"content"),
    lambda path: os.close(held_private(path)),
    made_private,
])
def test_each_way_to_make_a_file_closes_it_to_others(write: object, tmp_path: Path) -> None:
    with _open_to_all():
        write(tmp_path / "file")  # type: ignore[operator]
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and _readable(tmp_path) == []


def test_a_file_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    for make in (made_private, lambda path: write_private(path, b"")):
        file = tmp_path / "file"
        file.touch()
        file.chmod(0o644)
        make(file)
        assert _readable(tmp_path) == []


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        new_private(tmp_path / "link")
    write_private(tmp_path / "link", b"x")
    assert not (tmp_path / "elsewhere").exists() and not (tmp_path / "link").is_symlink()


@pytest.mark.slow  # a backup during enrolment keeps the peer away for a minute
def test_a_peers_whole_life_leaves_nothing_for_others_to_read(command: Command, served: Served, tmp_path: Path) -> None:
    people = tmp_path / "person.csv"
    people.write_text("age,cups,dropped\n20,3,0\n")
    people.chmod(0o600)
    with _open_to_all():
        assert command("import", people, "--table", "person").code == 0
        command("budget", "--minimum-cohort", "3")
        assert command("join", served.link, "--yes").code == 0
        command.monkeypatch.setenv("ANONML_PASSPHRASE", "first")
        assert command("passphrase").code == 0
        assert command("notify", "off").code == 0
        exported = command("fingerprint", "--export", tmp_path / "story")
        assert exported.code == 0, exported.err
        assert command("backup", tmp_path / "backup").code == 0
        assert command("restore", tmp_path / "backup", home=tmp_path / "second").code == 0
    assert {path.name for path in tmp_path.iterdir()} >= {"home", "second", "backup", "story"}
    assert _readable(tmp_path) == []


PUBLIC = {
    "aggregator/audit/folder.py": "what is published",
    "aggregator/auditor/cli.py": "a page and a letter about a mechanism, for others to read",
    "aggregator/auditor/environments.py": "the names of packages in an environment that pip made",
    "aggregator/lab/cli.py": "a report without test people is published as it is; made-up people",
    "aggregator/estimator/cli.py": "a published model",
    "aggregator/lab/cli_plan.py": "a study file and a chart of made-up people",
    "aggregator/cli/study.py": "a study file and its schema",
    "aggregator/report/pdf.py": "in a temporary folder, which is the owner's alone",
    "peer/desktop/login/places.py": "what a login service reads: a command line without secrets",
    "anon/queries/child.py": "a setting of the kernel's",
    "anon/kit/terminal/streams.py": "the null device: words of a program without a console",
    "peer/data/foreign_child.py": "a setting of the kernel's",
    "anon/kit/testnet/network.py": "lines of a private network that others may join",
}
"""The modules that make files in another way, and why they may."""
OPENED_BY_A_LIBRARY = {
    "aggregator/store/home.py": "made_private first", "aggregator/store/sqlite.py": "made_private first",
    "aggregator/store/postgres.py": "on a server",
    "anon/kit/diagnosis/checks.py": "an empty probe in a temporary folder",
    "anon/kit/diagnosis/installation.py": "an empty probe in a temporary folder",
    "anon/storage/migration.py": "made by new_private, or there already",
    "peer/store/backup/archive.py": "made by new_private, or there already",
    "peer/data/importing.py": "made_private first",
    "peer/data/deleting.py": "opened by mode=rw, which makes none",
    "peer/predict.py": "read after import_file made it", "peer/store/database/store_file.py": "made_private first",
}
WRITES = {"write_text", "write_bytes", "touch", "copyfile", "copy2", "copytree", "extractall", "mkstemp", "savefig"}
LIBRARY = {"sqlite3.connect", "create_async_engine"}
OPENS = {one.rpartition(".")[2] for one in LIBRARY}


def _is_read(call: str) -> bool:
    return "mode=ro" in call or "connect(':memory:'" in call


def _mode(call: ast.Call) -> str:
    given = [*call.args[:2], *(word.value for word in call.keywords if word.arg == "mode")]
    return "".join(
        one.value
        for one in given
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and len(one.value) <= 3
    )


def _verb(call: ast.Call) -> str:
    return (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else call.func.id
        if isinstance(call.func, ast.Name)
        else ""
    )


def _makes_a_file(call: ast.Call) -> bool:
    verb = _verb(call)
    if verb not in {"open", "copy", *WRITES}:
        return False
    said = ast.unparse(call.func)
    if said == "os.open":
        return "O_CREAT" in ast.unparse(call)
    if verb == "open" and not said.startswith(("tarfile.", "zipfile.", "archive.", "Image.", "webbrowser.")):
        return bool(set(_mode(call)) & set("wxa"))
    return verb in WRITES or said == "shutil.copy"


@cache
def _calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]


def _sources() -> list[Path]:
    return [
        path
        for side in ("anon", "peer", "aggregator")
        for path in sorted((ROOT / side).rglob("*.py"))
        if path != Path(private_files.__file__)
    ]


@pytest.mark.slow
def test_no_file_is_made_in_another_way() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): [ast.unparse(call)[:60] for call in _calls(path) if _makes_a_file(call)]
        for path in _sources()
    }
    assert {path: calls for path, calls in found.items() if calls and path not in PUBLIC} == {}


@pytest.mark.slow
def test_no_library_makes_a_database_in_another_way() -> None:
    found = {}
    for path in _sources():
        opened = [
            said
            for call in _calls(path)
            if _verb(call) in OPENS and ast.unparse(call.func) in LIBRARY and not _is_read(said := ast.unparse(call))
        ]
        found[path.relative_to(ROOT).as_posix()] = opened
    assert {path: calls for path, calls in found.items() if calls and path not in OPENED_BY_A_LIBRARY} == {}


@pytest.mark.parametrize("line", [
    "path.write_text('x')", "path.open('w')", "open(path, 'a')", "path.open(mode='xb')",
    "os.open(p, os.O_CREAT | os.O_RDWR)", "shutil.copyfile(a, b)", "path.touch()",
])
def test_the_search_finds_each_way(line: str) -> None:
    assert _makes_a_file(ast.parse(line).body[0].value)  # type: ignore[attr-defined]
