"""A run of pytest in which the failures of up to three files are tried once more, alone: python -m tests.twice
ARGUMENT...

A busy machine can make a test of whole programs late. A test that passes alone is named as unsteady, and the run passes
with it once: a test that needs its second try in two runs of three fails the second of them. One that fails again, or a
failure in a fourth file, fails the run. Nothing else is tried again: no error of collection, no crash.

The file that SECOND_TRIES names, if any, gets a line for each second try. The last runs of the same arguments are kept
in the cache of the user who runs them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

MOST_FILES = 3
RUNS = 3


def history() -> Path:
    """The file of the last runs' second tries."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anonml" / "second-tries.json"


def again(kept: Path, kind: str, unsteady: Sequence[str]) -> list[str]:
    """Keep this run's unsteady tests; those of them that were unsteady in one of the two runs before as well."""
    try:
        runs = json.loads(kept.read_text("utf-8"))
    except (FileNotFoundError, ValueError):  # a run that was killed while it wrote: what came before it counts no more
        runs = {}
    before = runs.get(kind, [])[1 - RUNS :]
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(runs | {kind: [*before, list(unsteady)]}, indent=1), "utf-8")
    return [name for name in unsteady if any(name in run for run in before)]


def ended(arguments: Sequence[str], unsteady: Sequence[str]) -> int:
    """The exit code of a run whose failures all passed alone."""
    if unsteady and (named := os.environ.get("SECOND_TRIES")):
        with Path(named).open("a", encoding="utf-8") as file:
            file.writelines(f"  {name}\n" for name in unsteady)
    kind = " ".join([f"python{sys.version_info.major}.{sys.version_info.minor}", *arguments])
    for name in (found := again(history(), kind, unsteady)):
        print(f"in two runs of three a second try was needed, so this one fails: {name}")
    return 1 if found else 0


def run(arguments: Sequence[str]) -> int:
    """The exit code of pytest with these arguments, and of the second try."""
    with TemporaryDirectory() as cache:
        words = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
        code = subprocess.run(words, check=False).returncode
        file = Path(cache, "v/cache/lastfailed")
        failed = list(json.loads(file.read_text("utf-8"))) if file.exists() else []
        if code == 0:
            return ended(arguments, [])
        if code != 1 or not failed:
            return code
        if not all("::" in name for name in failed):
            print("not all tests could be collected: nothing is tried again")
            return 1
        if len({name.partition("::")[0] for name in failed}) > MOST_FILES:
            print(f"more than {MOST_FILES} files failed: none is tried again")
            return 1
        print("tried again, alone:", *failed, sep="\n  ", flush=True)
        alone = [*words, "-n", "0", "--last-failed", "--last-failed-no-failures=none"]
        if subprocess.run(alone, check=False).returncode:
            return 1
    print("unsteady, to be mended:", *failed, sep="\n  ")
    return ended(arguments, failed)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
