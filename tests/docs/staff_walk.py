"""Course staff at a terminal, from `study init` to the published report."""

from __future__ import annotations

import re
import socket
from math import ceil
from pathlib import Path
from subprocess import Popen

from attrs import define, field

from tests.docs.walking import Steps, until
from tests.support.installing import Installed


@define
class Staff:
    """`serve` stays in a terminal of its own."""

    at: Installed
    members: int
    steps: Steps = field(factory=Steps)
    serving: Popen[bytes] | None = None

    def open_study(self, slowness: float) -> list[str]:
        """From nothing to the invite links."""
        self.steps.type(self.at, "anonml", "study", "init", "study.toml")
        self.steps.edit(self.at.home / "study.toml", lambda text: shortened(text, self.members, slowness))
        self.steps.type(self.at, "anonml", "study", "publish", "study.toml")
        port = str(_free_port())
        self.serving = self.steps.start(self.at, "anonml", "aggregator", "serve", "--port", port, log=self._log)
        until(lambda: "serving at" in self.said, "the aggregator serves")
        return self.steps.type(self.at, "anonml", "aggregator", "invite", "--count", str(self.members)).split()

    @property
    def _log(self) -> Path:
        return self.at.home / "serve.log"

    @property
    def said(self) -> str:
        """The lines that `serve` has printed."""
        return self._log.read_text("utf-8")

    def report(self) -> str:
        """Once the study has ended."""
        until(lambda: re.search(": (published|abandoned)", self.said), "the study ends")
        self.steps.type(self.at, "anonml", "aggregator", "report", "report.html")
        return (self.at.home / "report.html").read_text("utf-8")


def shortened(text: str, members: int, slowness: float) -> str:
    """The example that `study init` wrote, for so few people, and over in less than a minute."""
    for pattern, words in (
        (r"minimum = \d+", f"minimum = {members}"),
        (r"bins = 3.*", "cuts = [10, 40]"),
        (r'enrol = ".*"', f'enrol = "{ceil(10 + 13 * slowness)}s"'),
        (r'settle = ".*"', f'settle = "{ceil(4 * slowness)}s"'),
        (r'binning = ".*"', 'binning = "0s"'),
        (r'collect = ".*"', f'collect = "{ceil(7 * slowness)}s"'),
    ):
        text, found = re.subn(pattern, words, text, count=1)
        assert found, f"the example has no {pattern}"
    return text


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
