"""`aggregator restore` once crashed on Debian 12's Python, whose `tarfile` has no guard; so the guard is our own."""

from __future__ import annotations

import ast
import io
import os
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from aggregator.store.home import backup, draw_study_secrets, open_home, restore
from anon.errors import Malformed

ROOT = Path(__file__).resolve().parents[2]
NEWER = {
    "extractall": "filter", "extract": "filter", "unpack_archive": "filter",  # 3.11.4
    "rmtree": "onexc", "relative_to": "walk_up", "NamedTemporaryFile": "delete_on_close",  # 3.12
    "getaddresses": "strict", "parseaddr": "strict",  # 3.11.10
}
"""The arguments that Python 3.11.0 does not know, by call.

Additions of Python 3.12 and later are refused by mypy, because its `python_version` is 3.11. It takes these arguments
for known, since some later 3.11 has them."""
NEWER_NAMES = {
    "data_filter",
    "tar_filter",
    "fully_trusted_filter",
    "FilterError",
    "AbsoluteLinkError",
    "OutsideDestinationError",
}


def _kept(tmp_path: Path) -> Path:
    home = open_home(tmp_path / "home", os.urandom)
    home.store_secrets(bytes(32), draw_study_secrets(os.urandom))
    backup(tmp_path / "home", tmp_path / "backup.tar")
    return tmp_path / "backup.tar"


def test_a_backup_is_restored_by_a_tarfile_without_filters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = tarfile.TarFile.extractall

    def of_debian(self: tarfile.TarFile, path: Any = ".", members: Any = None, *, numeric_owner: bool = False) -> None:
        known(self, path, members, numeric_owner=numeric_owner)

    monkeypatch.setattr(tarfile.TarFile, "extractall", of_debian)
    kept = _kept(tmp_path)
    before = os.umask(0)
    try:
        restore(kept, tmp_path / "second")
    finally:
        os.umask(before)
    one, other = open_home(tmp_path / "home", os.urandom), open_home(tmp_path / "second", os.urandom)
    assert one.public_key == other.public_key and one.load_secrets(bytes(32)) == other.load_secrets(bytes(32))
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "second").rglob("*")}
    assert modes == {True: 0o700, False: 0o600}


def _entry(name: str, **fields: Any) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = 32 if fields.get("type", tarfile.REGTYPE) == tarfile.REGTYPE else 0
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry


HOSTILE = {
    "a path out of the home": _entry("../outside"),
    "a path out of the folder of keys": _entry("studies/../../outside"),
    "an absolute path": _entry("/tmp/anonml-outside"),
    "a link to a file": _entry("studies/a.keys", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "a hard link": _entry("signing.key", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
    "a link in place of the folder": _entry("studies", type=tarfile.SYMTYPE, linkname="/tmp"),
    "a device": _entry("signing.key", type=tarfile.CHRTYPE),
    "a pipe": _entry("lock", type=tarfile.FIFOTYPE),
    "a file of no aggregator": _entry("authorized_keys"),
    "a folder too many": _entry("studies/deep", type=tarfile.DIRTYPE),
    "one name twice": _entry("signing.key"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_backup_writes_nothing_and_can_be_followed_by_a_good_one(name: str, tmp_path: Path) -> None:
    kept = _kept(tmp_path)
    hostile = tmp_path / "hostile.tar"
    hostile.write_bytes(kept.read_bytes())
    with tarfile.open(hostile, "a") as archive:
        entry = HOSTILE[name]
        archive.addfile(entry, io.BytesIO(b"x" * entry.size))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Malformed, match=r"hostile\.tar"):
        restore(hostile, tmp_path / "second")
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before and path != tmp_path / "second"] == []
    restore(kept, tmp_path / "second")
    assert (tmp_path / "second" / "signing.key").is_file()


def _newer(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            found += [
                f"{name}({word.arg}=)" for word in node.keywords if word.arg is not None and NEWER.get(name) == word.arg
            ]
        if isinstance(node, ast.Attribute) and node.attr in NEWER_NAMES:
            found.append(node.attr)
    return found


def test_nothing_is_used_that_came_within_python_3_11() -> None:
    sources = [path for side in ("anon", "peer", "aggregator") for path in sorted((ROOT / side).rglob("*.py"))]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in [*sources, ROOT / "anonml.py"]}
    calling = {name: text for name, text in texts.items() if any(word in text for word in {*NEWER, *NEWER_NAMES})}
    wrong = {name: _newer(ast.parse(text)) for name, text in calling.items()}
    assert {path: found for path, found in wrong.items() if found} == {}
    assert _newer(ast.parse("archive.extractall(home, filter='data'); tarfile.data_filter")) == [
        "extractall(filter=)",
        "data_filter",
    ]
