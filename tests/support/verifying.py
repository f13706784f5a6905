"""The work of verify.html in node, asked from a test, and how its verdict compares with the audit's."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define

from aggregator.audit import AuditResult
from anon.transparency.documents import encode_chain
from tests.support.forged_studies import Forge

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "verifier" / "verify.html"
DRIVER = Path(__file__).parent / "verifier_driver.mjs"


def missing() -> str:
    """A sentence about what is not installed here, or an empty text."""
    return "" if shutil.which("node") else "node is missing: install it (Debian: apt-get install nodejs)"


@define
class Verifier:
    """The page's work, in a program of its own."""

    _program: subprocess.Popen[str]

    def do(self, task: str, **given: Any) -> dict[str, Any]:
        """The outcome of one task."""
        assert self._program.stdin is not None and self._program.stdout is not None
        self._program.stdin.write(json.dumps({"task": task, **given}) + "\n")
        self._program.stdin.flush()
        answer: dict[str, Any] = json.loads(self._program.stdout.readline())
        return answer

    def audit(self, files: Mapping[str, bytes]) -> dict[str, Any]:
        """The verdict on a folder."""
        return self.do("audit", files={name: content.hex() for name, content in files.items()})


@contextmanager
def verifier() -> Iterator[Verifier]:
    """The page's work until the block ends."""
    words = ["node", str(DRIVER), str(PAGE)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        yield Verifier(program)


def files_of(forge: Forge) -> dict[str, bytes]:
    """The folder that a forged study is published as."""
    files = {"heads": encode_chain(forge.chain())}
    for number, (place, body) in enumerate(forge.bodies.items()):
        files[f"documents/{number}"] = body
        files |= {f"contents/{number}/{at}": content for at, content in enumerate(forge.contents.get(place, ()))}
    return files


def disagreement(audited: AuditResult | None, shown: Mapping[str, Any]) -> str:
    """The difference of two verdicts, or an empty text. `audited` is None where nothing could be checked.

    The page may check less than the audit. Then it names the document of each finding that it does not share. It has no
    fault where the audit has no finding.
    """
    faults = [f"{one['document']}: {one['why']}" for one in shown["faults"]]
    if audited is None:
        return "" if faults else "nothing can be checked, and the page has no fault"
    if audited.ok:
        return f"the audit has no finding, and the page {faults}" if faults else ""
    unchecked = {one["document"].split()[0].removesuffix(".html") for one in shown["unchecked"]}
    missed = [f"{one.document}: {one.fault}" for one in audited.findings if one.document.split()[0] not in unchecked]
    return "" if faults or not missed else f"the page has no fault, and the audit {missed}"
