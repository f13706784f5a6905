"""Whole studies by the command line alone, as two terminals would do them: separate processes, loopback, wall clock.

Four studies at once on one aggregator: the one-packet design by invite, the paper's with an allow-list, an open one
that looks for its cuts first, and one for which too few enrol. Four people take part in the first three; one leaves
before closing, one is away until everything is over.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field, frozen

from aggregator.protocols.additive.noise_test import LEVEL
from tests.support.command_line import Serving, anonml, attempt, finish, plain, start
from tests.support.studies import ONE_PACKET, income_study

pytestmark = pytest.mark.process

STUDIES: dict[str, dict[str, Any]] = {
    "invite": {"age": "cuts = [30, 50]", "design": ONE_PACKET, "binning": 0, "minimum": 3},
    "allow-list": {
        "age": "bins = 2",
        "design": 'kind = "paper"\nepsilon_histogram = 0.5\nepsilon_binning = 0.5\npartitions = 2\nbinning_rounds = 2',
        "binning": 14,
        "minimum": 3,
    },
    "open": {
        "age": "bins = 3",
        "design": ONE_PACKET + "\nbinning_share = 0.5",
        "binning": 6,
        "minimum": 3,
    },
    "too few": {"age": "cuts = [30, 50]", "design": ONE_PACKET, "binning": 0, "minimum": 3, "admission": "invite"},
}
EPSILON = {"invite": 2.0, "allow-list": 1.5, "open": 2.0, "too few": 2.0}
PACKETS = {"invite": 1, "allow-list": 3, "open": 1}
PEOPLE = 4


@frozen
class Schedule:
    """Lengths for a machine of this speed, in seconds. `slowness` is 1 where a command takes well below a second."""

    enrol: int
    slowness: float

    @classmethod
    def after(cls, seconds: float) -> Schedule:
        """Judged by what six commands took that began with an interpreter. About thirty quicker ones fall into the
        enrolment, and four runs begin in it."""
        return cls(ceil(6 + 5 * seconds), max(1.0, seconds / 4))

    def text(self, name: str) -> str:
        """The study file."""
        study = {"admission": name} | STUDIES[name]
        lengths = {"settle": 4, "collect": 7, "binning": study.pop("binning")}
        scaled = {part: ceil(self.slowness * length) for part, length in lengths.items()}
        return income_study(study.pop("design"), title=name, enrol=self.enrol, **study, **scaled)


@define
class Seen:
    """All that the commands printed."""

    published: dict[str, dict[str, Any]] = field(factory=dict)
    links: dict[str, list[str]] = field(factory=dict)
    phases: dict[str, list[str]] = field(factory=dict)
    receipts: list[list[dict[str, Any]]] = field(factory=list)
    statuses: list[dict[str, dict[str, Any]]] = field(factory=list)
    budgets: list[dict[str, Any]] = field(factory=list)
    audits: dict[str, dict[str, Any]] = field(factory=dict)
    exported: dict[str, Path] = field(factory=dict)
    predictions: dict[str, Any] = field(factory=dict)
    refusals: dict[str, Any] = field(factory=dict)
    served: int = -1

    def link(self, name: str, number: int) -> str:
        """The link of one person; where no code is needed everyone has the same."""
        links = self.links[name]
        return links[number % len(links)]

    def name_of(self, study: str) -> str:
        """The name of a study id."""
        return next(name for name, one in self.published.items() if one["study"] == study)


class Play:
    """The scenes, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.staff = folder / "staff"
        self.homes = [folder / f"peer-{number}" for number in range(PEOPLE)]
        self.leaver, self.absent = folder / "leaver", folder / "absent"
        self.everyone = [*self.homes, self.leaver, self.absent]
        self.serving = Serving(self.staff)
        self.seen = Seen()

    async def run(self) -> Seen:
        """From empty folders to predictions and audits."""
        await self.serving.start()
        try:
            began = time.monotonic()
            await _all(self._settle_in(number, home) for number, home in enumerate(self.everyone))
            schedule = Schedule.after(time.monotonic() - began)
            await _all(self._publish(name, schedule) for name in STUDIES)
            await _all([self._take_part_all(), self._leave(), self._enrol_and_go_away()])
            await self.serving.ended(*(one["study"] for one in self.seen.published.values()))
            await self._come_back()
            await self._look_around()
        finally:
            self.seen.served = await self.serving.stop()
        self.seen.phases = {self.seen.name_of(study): phases for study, phases in self.serving.phases.items()}
        return self.seen

    async def _take_part_all(self) -> None:
        await _all(self._take_part(number, home) for number, home in enumerate(self.homes))
        await self._list_keys()
        await _all(map(self._stay, self.homes))

    async def _settle_in(self, number: int, home: Path) -> None:
        file = self.folder / f"{home.name}.csv"
        file.write_text(
            f"age,sex,income\n{20 + 9 * number},{('Female', 'Male')[number % 2]},{('low', 'high')[number % 2]}\n"
        )
        done = await finish(await start("peer", "import", file, "--table", "person", "--home", home, "--json"))
        assert (done.json["table"], done.json["rows"]) == ("person", 1)
        budget = await anonml("peer", "budget", "--lifetime", "8", "--minimum-cohort", "3", "--home", home)
        assert (budget["lifetime"], budget["available"], budget["minimum_cohort"]) == (8.0, 8.0, 3)

    async def _publish(self, name: str, schedule: Schedule) -> None:
        file = self.folder / f"{name}.toml"
        file.write_text(schedule.text(name))
        published = await anonml("study", "publish", file, "--home", self.staff)
        assert published["epsilon_record"] == EPSILON[name]
        self.seen.published[name] = published
        words = ("--address", self.serving.address, "--study", published["study"], "--home", self.staff)
        self.seen.links[name] = await anonml("aggregator", "invite", "--count", "6", *words)

    async def _take_part(self, number: int, home: Path) -> None:
        names = ["invite", "allow-list", "open"] + (["too few"] if number < 2 else [])
        for name in names:
            joined = await anonml("peer", "join", self.seen.link(name, number), "--yes", "--home", home)
            assert joined["epsilon_reserved"] == EPSILON[name]

    async def _list_keys(self) -> None:
        link = self.seen.links["allow-list"][0]
        keys = [shown["key"] for shown in await _all(anonml("peer", "key", link, "--home", one) for one in self.homes)]
        study = self.seen.published["allow-list"]["study"]
        assert "4 listed" in await plain("aggregator", "allow", *keys, "--study", study, "--home", self.staff)

    async def _stay(self, home: Path) -> None:
        done = await finish(await start("peer", "run", "--once", "--max-seconds", "400", "--home", home))
        assert done.code == 0, done.err

    async def _leave(self) -> None:
        await anonml("peer", "join", self.seen.link("invite", 4), "--yes", "--home", self.leaver)
        await plain("peer", "run", "--once", "--max-seconds", "1", "--home", self.leaver)
        assert (await self._status(self.leaver))["invite"]["state"] == "enrolled"
        await plain("peer", "leave", "--home", self.leaver)

    async def _enrol_and_go_away(self) -> None:
        await anonml("peer", "join", self.seen.link("invite", 5), "--yes", "--home", self.absent)
        await plain("peer", "run", "--once", "--max-seconds", "1", "--home", self.absent)
        status = (await self._status(self.absent))["invite"]
        assert (status["state"], status["reserved"]) == ("enrolled", 2.0)

    async def _come_back(self) -> None:
        await plain("peer", "run", "--once", "--max-seconds", "5", "--home", self.absent)

    async def _status(self, home: Path) -> dict[str, dict[str, Any]]:
        return {one["title"]: one for one in await anonml("peer", "status", "--home", home)}

    async def _look_around(self) -> None:
        seen = self.seen
        seen.receipts = await _all(anonml("peer", "receipts", "--home", home) for home in self.everyone)
        seen.statuses = await _all(self._status(home) for home in self.everyone)
        seen.budgets = await _all(anonml("peer", "budget", "--home", home) for home in self.everyone)
        await _all(self._export(name) for name in STUDIES)
        model = seen.exported["invite"] / "model.json"
        people = self.folder / "next-term.csv"
        people.write_text("who,age,sex,income\na,33,Female,\nb,61,Male,\n")
        link = seen.links["invite"][0]
        seen.predictions = {
            "own": await anonml("peer", "predict", link, "--home", self.homes[0]),
            "others": await anonml("peer", "predict", model, "--people", people, "--person", "who"),
        }
        again = ("peer", "join", link, "--yes", "--home", self.homes[0])
        late = ("peer", "join", seen.link("open", 4), "--yes", "--home", self.leaver)
        seen.refusals = {"again": await attempt(*again), "late": await attempt(*late)}

    async def _export(self, name: str) -> None:
        directory = self.folder / f"{name} published"
        study = self.seen.published[name]["study"]
        await anonml("aggregator", "export", directory, "--study", study, "--home", self.staff)
        self.seen.exported[name] = directory
        key = self.seen.links[name][0].split("key=")[1].split("&")[0]
        self.seen.audits[name] = await anonml("aggregator", "audit", directory, "--key", key)


async def _all(works: Any) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
    return [task.result() for task in tasks]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return asyncio.run(Play(tmp_path_factory.mktemp("whole")).run())


def of(receipts: Sequence[dict[str, Any]], seen: Seen, name: str) -> list[dict[str, Any]]:
    """The receipts of one study."""
    return [one for one in receipts if one["study"] == seen.published[name]["study"]]


@pytest.mark.parametrize("name", PACKETS)
def test_every_packet_is_accepted_once_and_found_again(seen: Seen, name: str) -> None:
    for receipts in seen.receipts[:PEOPLE]:
        mine = of(receipts, seen, name)
        assert [(one["slot"], one["status"], one["word"]) for one in mine] == [
            (slot, "included", "accepted") for slot in range(PACKETS[name])
        ]
        assert sum(one["epsilon"] for one in mine) == EPSILON[name]
    audit = seen.audits[name]
    assert audit["packets"] == PEOPLE * PACKETS[name]
    assert audit["verdict"] == "all-checked" and audit["model_checked"], audit["findings"]
    assert audit["enrolled"] == PEOPLE + (name == "invite")  # the absent one enrolled
    assert seen.phases[name][-1] == "published"
    assert all(status[name]["state"] == "finished" for status in seen.statuses[:PEOPLE])


def test_when_too_few_enrol_nothing_is_sent_and_nobody_is_charged(seen: Seen) -> None:
    for receipts, status in zip(seen.receipts[:2], seen.statuses[:2], strict=True):
        assert of(receipts, seen, "too few") == []
        assert (status["too few"]["state"], status["too few"]["spent"], status["too few"]["reserved"]) == (
            "abandoned", 0, 0,
        )
    assert seen.phases["too few"] == ["enrolling", "abandoned"]
    assert seen.audits["too few"]["verdict"] == "all-checked" and seen.audits["too few"]["packets"] == 0
    assert sorted(one.name for one in (seen.exported["too few"] / "documents").iterdir()) == ["0", "1"]


def test_budgets_are_what_was_sent(seen: Seen) -> None:
    used = EPSILON["invite"] + EPSILON["allow-list"] + EPSILON["open"]
    for budget in seen.budgets[:PEOPLE]:
        assert budget["available"] == 8.0 - used
        assert sum(entry["spent"] for entry in budget["entries"]) == used
        assert all(entry["reserved"] == 0 for entry in budget["entries"])


def test_leaving_before_closing_takes_the_enrolment_back(seen: Seen) -> None:
    status, budget = seen.statuses[PEOPLE], seen.budgets[PEOPLE]
    assert status["invite"]["state"] == "withdrawn"
    assert (seen.receipts[PEOPLE], budget["available"]) == ([], 8.0)


def test_who_comes_back_when_all_windows_have_passed_sends_nothing_and_pays_nothing(seen: Seen) -> None:
    status, budget = seen.statuses[PEOPLE + 1], seen.budgets[PEOPLE + 1]
    assert status["invite"]["state"] == "abandoned"
    assert "windows passed" in status["invite"]["reason"]
    assert (seen.receipts[PEOPLE + 1], budget["available"]) == ([], 8.0)


def test_the_model_predicts_here(seen: Seen) -> None:
    (own,) = seen.predictions["own"]
    assert own["who"] == "you" and 0 <= own["probability"] <= 1
    assert [one["who"] for one in seen.predictions["others"]] == ["a", "b"]
    assert all(0 <= one["probability"] <= 1 for one in seen.predictions["others"])


def test_the_published_model_says_how_far_it_is_from_noise(seen: Seen) -> None:
    model = json.loads((seen.exported["invite"] / "model.json").read_text())
    assert 0 < model["chance"] <= 1 and model["shown"] is (model["chance"] <= LEVEL)


def test_joining_twice_or_too_late_is_refused_with_what_to_do(seen: Seen) -> None:
    again, late = seen.refusals["again"], seen.refusals["late"]
    assert (again.code, late.code) == (6, 4)
    assert "you have joined this study already" in again.err
    assert "this study is closed: enrolment ended" in late.err and "Ask staff for another study" in late.err


def test_the_server_stops_cleanly_and_phases_are_told_in_order(seen: Seen) -> None:
    assert seen.served == 0
    assert seen.phases["invite"] == ["enrolling", "settling", "collecting", "learning", "published"]
    told = Counter(seen.phases["allow-list"])
    assert told["binning"] == told["collecting"] == told["published"] == 1
