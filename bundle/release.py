"""A release, made and checked on this machine. Nothing is pushed or published.

    python -m bundle.release 0.1.0 --date 2027-01-31    # make release VERSION=0.1.0 DATE=2027-01-31
    python -m bundle.release 0.1.0 --verify             # make verify-release VERSION=0.1.0

1. The tree is clean, every file that names the version names this one, and no tag has it.
2. The changelog's section gets its date, in one commit, which no branch has yet.
3. That commit is built twice, in two folders, and the bytes are the same.
4. twine finds no fault with the wheel and its sources.
5. The files and the notes are in dist/VERSION. The branch takes the commit, and a tag whose message is the notes.

`--verify` builds the tag anew by the tag's own sources. It compares each file's digest with the one in the notes, and
its bytes with those of dist/VERSION, where they are.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from anon.machine.environment import Child, for_child
from bundle.wheel import ROOT

TWINE = ROOT / ".venv" / "release" / "bin" / "twine"
CHANGES, NOTES = "CHANGELOG.md", "NOTES.md"
_CITED = re.compile(r"^version: (\S+)$", re.MULTILINE)
_SECTION = r"^## {version} \((?P<when>[^)]+)\)\n(?P<changes>.*?)(?=^## |\Z)"
_DIGEST = re.compile(r"^([0-9a-f]{64})  (\S+)$", re.MULTILINE)
_HOW = """
## Check it

```text
{sums}```

`sha256sum --check SHA256SUMS` compares your files with these digests. `make verify-release VERSION={version}`
in a clone builds them anew from the tag `v{version}`, and compares. See docs/reference/check-a-wheel.md.
"""


def git(root: Path, *words: str, told: str | None = None) -> str:
    """The output of `git WORDS`. Raises `subprocess.CalledProcessError`."""
    command = ["git", "-C", str(root), *words]
    done = subprocess.run(
        command, env=for_child(Child.PROGRAM), input=told, check=True, capture_output=True, text=True
    )
    return done.stdout


def demand_ready(root: Path, version: str) -> None:
    """Step 1. Raises `SystemExit`, which says what to do."""
    if git(root, "status", "--porcelain"):
        raise SystemExit("the tree has changes; commit them first")
    if git(root, "tag", "--list", f"v{version}"):
        raise SystemExit(f"the tag v{version} is there already: `--verify` checks it")
    described = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    named = {
        "pyproject.toml, project": described["project"]["version"],
        "pyproject.toml, briefcase": described["tool"]["briefcase"]["version"],
        "CITATION.cff": "".join(_CITED.findall((root / "CITATION.cff").read_text("utf-8"))),
    }
    for place, said in named.items():
        if said != version:
            raise SystemExit(f"{place}: expected version {version}, got {said}")


def dated(changelog: str, version: str, day: date) -> tuple[str, str]:
    """The changelog with the day in its section of the version, and what this section says. Raises `SystemExit`."""
    found = re.search(_SECTION.format(version=re.escape(version)), changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found["changes"].strip():
        raise SystemExit(f"{CHANGES}: expected a section `## {version} (unreleased)` that says something")
    if found["when"] != "unreleased":
        raise SystemExit(f"{CHANGES}: {version} is of {found['when']} already")
    return changelog[: found.start("when")] + str(day) + changelog[found.end("when") :], found["changes"].strip()


def committed(root: Path, version: str, changelog: str) -> str:
    """Step 2: a commit on the present one, in which the changelog is this; no file here changes."""
    blob = git(root, "hash-object", "-w", "--stdin", told=changelog).strip()
    entries = git(root, "ls-tree", "HEAD").splitlines()
    changed = [f"100644 blob {blob}\t{CHANGES}" if entry.endswith(f"\t{CHANGES}") else entry for entry in entries]
    tree = git(root, "mktree", told="\n".join(changed) + "\n").strip()
    return git(root, "commit-tree", tree, "-p", "HEAD", "-m", f"Version {version} is released").strip()


def built(root: Path, commit: str, out: Path) -> Mapping[str, bytes]:
    """The files of a commit by their names, built by its own sources in a folder of its own."""
    with _tree(root, commit) as tree:
        command = [sys.executable, "-m", "bundle.wheel", "--out", str(out)]
        subprocess.run(command, cwd=tree, env=for_child(Child.OWN), check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


@contextmanager
def _tree(root: Path, commit: str) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "sources"
        git(root, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            git(root, "worktree", "remove", "--force", str(tree))


def notes_of(version: str, day: date, changes: str, files: Mapping[str, bytes]) -> str:
    """The notes: what changed, and the digest of each file."""
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    return f"# AnonML {version}, {day}\n\n{changes}\n{_HOW.format(sums=sums, version=version)}"


def release(root: Path, version: str, day: date, twine: Path = TWINE) -> Path:
    """All five steps; the folder of the files. Where it fails, neither a branch nor a tag has changed. Raises
    `SystemExit` and `subprocess.CalledProcessError`."""
    demand_ready(root, version)
    changelog, changes = dated((root / CHANGES).read_text("utf-8"), version, day)
    commit = committed(root, version, changelog)
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        files = built(root, commit, Path(first))
        if other := differences(built(root, commit, Path(second)), digests_of(files)):
            raise SystemExit(f"two builds of one commit differ: {', '.join(other)}")
        uploads = [str(Path(first) / name) for name in files if name.endswith((".whl", ".tar.gz"))]
        subprocess.run([str(twine), "check", "--strict", *uploads], env=for_child(Child.PROGRAM), check=True)
    (out := root / "dist" / version).mkdir(parents=True, exist_ok=True)
    notes = notes_of(version, day, changes, files)
    for name, content in (files | {NOTES: notes.encode()}).items():
        (out / name).write_bytes(content)
    git(root, "merge", "--quiet", "--ff-only", commit)
    git(root, "tag", "--annotate", f"v{version}", "--cleanup=verbatim", "--file=-", told=notes)
    return out


def digests_of(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """By name, in hexadecimal."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def differences(files: Mapping[str, bytes], told: Mapping[str, str]) -> list[str]:
    """The files that are on one side alone, or have another digest than was told."""
    found = digests_of(files)
    return sorted(name for name in {*found, *told} if found.get(name) != told.get(name))


def verify(root: Path, version: str) -> list[str]:
    """The differences between the tag, built anew, and its own digests or the files in dist/VERSION."""
    message = git(root, "tag", "--list", "--format=%(contents)", f"v{version}")
    told = {name: digest for digest, name in _DIGEST.findall(message)}
    if not told:
        raise SystemExit(f"v{version}: expected a tag whose message has digests")
    with TemporaryDirectory() as folder:
        files = built(root, f"v{version}", Path(folder))
    wrong = [f"{name}: not as the tag says" for name in differences(files, told)]
    kept = {name: root / "dist" / version / name for name in told}
    other = [name for name, file in kept.items() if file.exists() and file.read_bytes() != files.get(name)]
    return wrong + [f"dist/{version}/{name}: other bytes than its sources give" for name in other]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--date", type=date.fromisoformat, help="the day that the changelog gets")
    which.add_argument("--verify", action="store_true")
    asked = parser.parse_args()
    if not asked.verify:
        sys.stdout.write(f"{release(ROOT, asked.version, asked.date)}: nothing was pushed\n")
        return
    wrong = verify(ROOT, asked.version)
    sys.stdout.write("".join(f"{line}\n" for line in wrong) or "the tag's sources give these bytes\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
