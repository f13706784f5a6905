"""Run by `python -I -S`: `anonml` commands, one after the other, in a process that has what a phone would have.

The standard library, this project without the aggregator and the folder that `resolve.py --site` fills, and nothing
else. Its one argument is JSON: `commands`; `absent`, names that must not be there; `walk`, whether to import every
module first; `first`, Python to run before the commands. While the cryptography is imported the platform calls itself
Android, so that the choice is made as there. It prints what came of each command, and last what was underneath.
"""

from __future__ import annotations

import importlib.abc
import io
import json
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / ".venv" / "mobile"
ONLY_NATIVE = (
    *("anon.crypto.curve.arkworks", "anon.crypto.nacl.libsodium", "anon.crypto.sealing.openssl"),
    *(f"anon.teller.{name}" for name in ("rules", "journal", "session", "calls", "service", "overview", "diagnosis")),
)
"""Of the last row: a phone is no teller."""


class Blocker(importlib.abc.MetaPathFinder):
    """Refuses the aggregator, which lies in this project's folder, and notes who was asked for of those not
    installed."""

    def __init__(self, absent: list[str]) -> None:
        self.absent, self.asked = set(absent), set[str]()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        root = name.partition(".")[0]
        if root in self.absent:
            self.asked.add(root)
        if root == "aggregator":
            raise ModuleNotFoundError("No module named 'aggregator'", name=root)


def underneath(blocker: Blocker) -> dict[str, Any]:
    """Which libraries do the work, which compiled modules came from outside the standard library."""
    from anon.crypto import curve, sealing, turboshake
    from anon.crypto import nacl as sodium
    from anon.crypto.sealing import opening

    files = {name: getattr(module, "__file__", None) or "" for name, module in list(sys.modules.items())}
    return {
        "curve": [curve.IMPLEMENTATION, curve.G1.__module__],
        "sodium": [sodium.IMPLEMENTATION, sodium.SigningKey.__module__],
        "sponge": [turboshake.IMPLEMENTATION, turboshake.turboshake128.__module__],
        "sealing": [sealing.IMPLEMENTATION, sealing.seal.__module__, opening.Opener.__module__],
        "compiled": sorted(name for name, file in files.items() if file.startswith(str(SITE)) and ".so" in file),
        "elsewhere": sorted(name for name, file in files.items() if "site-packages" in file),
        "asked": sorted(blocker.asked),
        "present": sorted(name for name in blocker.absent if name in sys.modules),
    }


def attempt(words: list[str]) -> dict[str, Any]:
    """`anonml WORDS`: its exit code and what it printed."""
    from anonml import main as anonml

    sys.argv = ["anonml", *words]
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            anonml()
        except SystemExit as ended:
            code = int(ended.code or 0)
        except Exception:
            traceback.print_exc()
            code = 70
    return {"words": words, "code": code, "out": out.getvalue(), "err": err.getvalue()}


def main(told: dict[str, Any]) -> None:
    sys.path[:0] = [str(ROOT), str(SITE)]
    blocker = Blocker(told["absent"])
    sys.meta_path.insert(0, blocker)
    here, sys.platform = sys.platform, "android"
    import anon.credential
    import anon.crypto.nacl
    import anon.crypto.sealing
    import anon.crypto.turboshake

    sys.platform = here
    if told.get("walk"):
        import pkgutil

        import anon
        import peer

        for package in (anon, peer):
            for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
                if found.name not in ONLY_NATIVE:
                    importlib.import_module(found.name)
    exec(told.get("first", ""), {})
    done = [attempt(words) for words in told["commands"]]
    print(json.dumps({"done": done, "underneath": underneath(blocker)}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
