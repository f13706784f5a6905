"""A course with a student on Windows: staff and two other members are on this system, by the wall clock."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.docs.newcomer_walk import COLUMNS
from tests.docs.staff_walk import shortened
from tests.docs.walking import ended, until
from tests.windows.desktop import LONGEST, environment_of

ROOT = Path(__file__).resolve().parents[2]
MEMBERS = 3


@define
class Course:
    """The study of `study init`, shortened. `route`: of the other members."""

    folder: Path
    serve: tuple[str, ...] = ("--port", "0")
    route: str = "auto"
    study: str = ""
    key: str = ""
    serving: subprocess.Popen[bytes] | None = None
    living: list[Any] = field(factory=list)
    _threads: ThreadPoolExecutor = field(factory=ThreadPoolExecutor)

    def run(self, *words: str, home: str = "staff") -> str:
        """`anonml WORDS`, which must succeed."""
        (place := self.folder / home).mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-P", "-m", "anonml", *words], env=self._environment(place), cwd=place, check=False,
            capture_output=True, text=True, timeout=LONGEST,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stderr or done.stdout}"
        return done.stdout

    def _environment(self, place: Path) -> dict[str, str]:
        return {**environment_of(place), "PYTHONPATH": str(ROOT)}

    @property
    def said(self) -> str:
        return (self.folder / "serve.log").read_text("utf-8")

    def open(self, slowness: float) -> str:
        """The link of the student on Windows; the others take part at once."""
        self.run("study", "init", "study.toml")
        file = self.folder / "staff" / "study.toml"
        file.write_text(shortened(file.read_text("utf-8"), MEMBERS, slowness), "utf-8")
        for number in range(1, MEMBERS):
            self._settle_in(f"member-{number}", number)
        self.study = json.loads(self.run("study", "publish", "study.toml", "--json"))["study"]
        words = [sys.executable, "-P", "-m", "anonml", "aggregator", "serve", "--json", *self.serve]
        staff = self.folder / "staff"
        with (self.folder / "serve.log").open("wb") as log:
            self.serving = subprocess.Popen(words, env=self._environment(staff), cwd=staff, stdout=log, stderr=log)
        until(lambda: '"address"' in self.said, "the aggregator serves", LONGEST)
        address = json.loads(self.said.splitlines()[0])["address"]
        asked = ("--count", str(MEMBERS), "--address", address, "--study", self.study, "--json")
        first, *others = json.loads(self.run("aggregator", "invite", *asked))
        self.key = first.split("key=")[1].split("&")[0]
        for number, link in enumerate(others, 1):
            self.living.append(self._threads.submit(self._live, f"member-{number}", link))
        return str(first)

    def _settle_in(self, home: str, number: int) -> None:
        (self.folder / home).mkdir()
        (self.folder / home / "person.csv").write_text(f"{COLUMNS}\n{20 * number},never,{number % 2}\n")
        self.run("peer", "import", "person.csv", "--table", "person", home=home)
        self.run("peer", "budget", "--minimum-cohort", str(MEMBERS), "--minimum-window", "0", home=home)

    def _live(self, home: str, link: str) -> None:
        self.run("peer", "join", link, "--yes", "--route", self.route, home=home)
        self.run("peer", "run", "--once", "--max-seconds", str(LONGEST), "--route", self.route, home=home)

    def audit(self) -> dict[str, Any]:
        """Of the published study, once it is over."""
        until(lambda: '"published"' in self.said or '"abandoned"' in self.said, "the study ends", LONGEST)
        for life in self.living:
            life.result()
        self.run("aggregator", "export", "published", "--study", self.study)
        found: dict[str, Any] = json.loads(self.run("aggregator", "audit", "published", "--key", self.key, "--json"))
        return found

    def close(self) -> None:
        """End what runs."""
        ended(self.serving)
        self._threads.shutdown(cancel_futures=True)
