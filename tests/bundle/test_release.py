"""A release in a clone: built twice, tagged here and nowhere else, and verified from its tag. Its refusals."""

from __future__ import annotations

import hashlib
import subprocess
import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from bundle.release import NOTES, TWINE, dated, demand_ready, differences, digests_of, git, release, verify

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
DAY = date(2027, 1, 31)
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
CHANGELOG = "# Changelog\n\n## 1.2.0 (unreleased)\n\n* New.\n\n## 1.1.0 (2026-01-01)\n\n* Old.\n"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a release in it."""
    root = tmp_path_factory.mktemp("release") / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, root], check=True)
    _named(root)
    release(root, VERSION, DAY)
    return root


def _named(root: Path) -> None:
    for key, value in (("name", "Somebody"), ("email", "somebody@example.org")):
        git(root, "config", f"user.{key}", value)


needs_twine = pytest.mark.skipif(not TWINE.exists(), reason="`make .venv/release/made` first: twine is not installed")


@needs_twine
def test_a_release_is_a_commit_and_a_tag_of_this_clone_alone(clone: Path) -> None:
    assert git(clone, "status", "--porcelain") == ""
    assert f"## {VERSION} ({DAY})\n" in (clone / "CHANGELOG.md").read_text("utf-8")
    assert git(clone, "diff", "--name-only", "HEAD~1").split() == ["CHANGELOG.md"]
    assert git(clone, "cat-file", "-t", f"v{VERSION}") == "tag\n"
    assert git(clone, "rev-parse", f"v{VERSION}^{{commit}}") == git(clone, "rev-parse", "HEAD")
    assert f"v{VERSION}" not in git(clone, "ls-remote", "--tags", "origin")
    assert git(clone, "worktree", "list").count("\n") == 1


@needs_twine
def test_the_notes_have_the_changes_and_the_digest_of_each_file(clone: Path) -> None:
    out = clone / "dist" / VERSION
    notes = (out / NOTES).read_text("utf-8")
    files = [path for path in out.iterdir() if path.name != NOTES]
    assert {path.suffix for path in files} == {".whl", ".gz", ".json", ""}
    assert all(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" in notes for path in files)
    _, changes = dated((ROOT / "CHANGELOG.md").read_text("utf-8"), VERSION, DAY)
    assert changes in notes
    assert git(clone, "tag", "--list", "--format=%(contents)", f"v{VERSION}").strip() == notes.strip()


@needs_twine
def test_a_tag_is_built_anew_and_other_bytes_are_named(clone: Path) -> None:
    out = clone / "dist" / VERSION
    wheel = out / f"anonml-{VERSION}-py3-none-any.whl"
    whole = wheel.read_bytes()
    wheel.write_bytes(whole[:-1] + b"\1")
    try:
        assert verify(clone, VERSION) == [f"dist/{VERSION}/{wheel.name}: other bytes than its sources give"]
    finally:
        wheel.write_bytes(whole)


def test_files_that_are_missing_added_or_changed_differ() -> None:
    told = digests_of({"same": b"1", "missing": b"2", "changed": b"3"})
    assert differences({"same": b"1", "changed": b"4", "added": b"5"}, told) == ["added", "changed", "missing"]


def test_the_changelog_gets_its_day_once() -> None:
    changelog, changes = dated(CHANGELOG, "1.2.0", DAY)
    assert (changelog, changes) == (CHANGELOG.replace("unreleased", "2027-01-31"), "* New.")
    with pytest.raises(SystemExit, match="2027-01-31 already"):
        dated(changelog, "1.2.0", DAY)
    for version, text in (("1.3.0", CHANGELOG), ("1.2.0", CHANGELOG.replace("* New.\n\n", "")), ("1x2.0", CHANGELOG)):
        with pytest.raises(SystemExit, match="expected a section"):
            dated(text, version, DAY)


def _dirty(root: Path) -> None:
    (root / "more").touch()


def _tagged(root: Path) -> None:
    git(root, "tag", "v1.2.0")


def _cited(root: Path) -> None:
    (root / "CITATION.cff").write_text("version: 1.1.0\n")
    git(root, "commit", "--quiet", "--all", "-m", "another version")


@pytest.mark.parametrize(("flaw", "said"), [
    (_dirty, "the tree has changes"), (_tagged, "is there already"), (_cited, "CITATION.cff: expected version 1.2.0"),
])
def test_no_release_of_a_tree_that_is_not_ready(tmp_path: Path, flaw: Callable[[Path], None], said: str) -> None:
    git(tmp_path, "init", "--quiet")
    _named(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n[tool.briefcase]\nversion = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "begun")
    demand_ready(tmp_path, "1.2.0")
    flaw(tmp_path)
    with pytest.raises(SystemExit, match=said):
        demand_ready(tmp_path, "1.2.0")
