"""Random lives of a home that is backed up, killed, lost and restored, beside wrong clocks and a lying aggregator.

One copy lives at a time. Its owner says that the time is right where it is, and was in every home before. Then no slot
of a study has a second plaintext, and no budget comes back. Each fault that is planted is found within `WITHIN` lives.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from attrs import define, evolve, field
from typer.testing import CliRunner

from anon.errors import Refused
from peer.app import PeerApp
from peer.cli.main import app as commands
from peer.data.evaluate import at_once
from peer.data.importing import import_rows
from peer.rules.ledger import Ledger
from peer.store.backup import archive
from peer.store.backup.archive import UNCONFIRMED, backup, restore
from peer.store.database import store_file
from peer.store.home import PeerHome
from peer.store.store import Store
from tests.attacks.soak_pieces import piece
from tests.support.clock import Clock
from tests.support.fake_aggregator import BINNED, DECLARED, FakeAggregator, peer, reopened
from tests.support.packets import packet_in

HOUR = 3600.0
WITHIN = 500
"""Lives within which a planted fault is found."""
LIVES, PIECES = 10_000, 20


class Killed(BaseException):
    """The process ends here."""


@define
class Skewed:
    """The clock of one machine: the true one, and by how much it is wrong."""

    true: Clock
    wrong: float

    def __call__(self) -> float:
        return self.true() + self.wrong

    async def sleep(self, seconds: float) -> None:
        """Awake, that much later."""
        await self.true.sleep(seconds)


@define
class Life:
    """One home's story, from its consent to the end of its study."""

    folder: Path
    draw: Random
    aggregator: FakeAggregator
    app: PeerApp = field(init=False)
    clock: Skewed = field(init=False)
    homes: int = 0
    clocks_right: bool = True
    refilled: bool = False
    files: list[Path] = field(factory=list)
    told: list[str] = field(factory=list)

    @property
    def home(self) -> PeerHome:
        """The one that lives."""
        return PeerHome(self.folder / f"home{self.homes}")

    def open(self, wrong: float) -> None:
        """On a machine whose clock is wrong by so many seconds."""
        self.clock = Skewed(self.aggregator.clock, wrong)
        self.clocks_right &= wrong == 0
        self.app = PeerApp(
            self.home, lambda: self.aggregator, self.clock, os.urandom, sleep=self.clock.sleep, evaluate=at_once
        )

    async def live(self) -> None:
        """All of it."""
        self.open(self.draw.choice((0, 0, 0, HOUR / 4)))
        self.app.set_policy(evolve(self.app.policy(), minimum_cohort=3))
        import_rows(self.home.data_path, "person", ("age", "cups", "tired"), [(self.draw.randrange(90), "some", 1)])
        await self.app.join(self.aggregator.invite, self.aggregator.manifest.epsilon)
        self.aggregator.crowd(3)
        await self.happens()
        table = self.aggregator.manifest.timetable
        for at in (
            table.enrol_closes - 1,
            table.enrol_closes + 1,
            table.settled - 1,
            table.settled + HOUR / 2,
            table.ends,
        ):
            homes = self.homes
            await self.until(at)
            await self.happens()
            if self.homes != homes:
                await self.until(at)
        self.app.close()

    async def until(self, at: float) -> None:
        """Go on to this time of the home's own clock; the aggregator shows what is due by that clock."""
        for _ in range(100):
            self.shown()
            try:
                due = await self.app.step(self.aggregator.study)
            except Killed:
                self.told.append("killed")
                self.reopened()
                continue
            self.later(min(at if due is None else due, at))
            if due is None or due >= at:
                return self.shown()

    def later(self, at: float) -> None:
        """The home's clock shows this; no clock goes back."""
        true = self.aggregator.clock
        true.seconds = max(true.seconds, at - self.clock.wrong)

    def shown(self) -> None:
        """A lying aggregator follows the victim's clock; an honest one's is right."""
        aggregator, table = self.aggregator, self.aggregator.manifest.timetable
        now = self.clock() if "lies" in self.told else aggregator.clock()
        if now >= table.enrol_closes and len(aggregator.chain) == 1 and len(aggregator.enrolments) >= 3:
            aggregator.close(early=True)
        for closes, number in aggregator.rounds:
            if now >= closes and 4 + number > len(aggregator.chain) >= 4:
                aggregator.publish_counts(number)

    def reopened(self) -> None:
        """As after a restart."""
        self.app.close()
        self.open(self.clock.wrong)

    async def happens(self) -> None:
        """Anything, or nothing."""
        if self.draw.random() < 0.4:
            await self.copied()
        if self.files and self.draw.random() < 0.1:
            self.put_in_place(self.draw.choice(self.files))
        if self.files and self.draw.random() < 0.3:
            self.lost(self.draw.choice(self.files))
        if self.draw.random() < 0.3:
            kill_at(self.draw.randrange(6))

    async def copied(self) -> None:
        self.app.close()
        file = self.folder / f"file{len(self.files)}"
        try:
            await backup(self.home, file, evaluate=at_once)
            self.files.append(file)
            self.told.append("backup")
        except Killed:
            self.told.append("killed")
        self.reopened()

    def put_in_place(self, file: Path) -> None:
        """Over the home that lives, to give its budget back."""
        self.app.close()
        try:
            restore(self.home, file, UNCONFIRMED)
            self.told.append("put in place")
        except Refused:
            self.told.append("not put in place")
        except Killed:
            self.told.append("killed")
        self.reopened()

    def lost(self, file: Path) -> None:
        """The home is gone, and another comes out of a backup, on a machine whose clock may be behind or ahead."""
        kill_at(-1)
        self.app.close()
        self.homes += 1
        wrong = self.draw.choice((0, 0, -HOUR / 2, -2 * HOUR, HOUR / 4))
        sure = self.clocks_right and wrong == 0 and self.draw.random() < 0.5
        restore(self.home, file, self.word(wrong, sure))
        self.told.append(f"restored{' surely' if sure else ''} at {wrong:+.0f}")
        if self.draw.random() < 0.7:
            self.lies()
        self.open(wrong)
        self.refilled |= self.app.budget().available > 0

    def word(self, _wrong: float, sure: bool) -> float:
        """The time by the owner's word, if any."""
        return self.aggregator.clock() if sure else UNCONFIRMED

    def lies(self) -> None:
        """From now on the aggregator shows another roster."""
        aggregator = self.aggregator
        self.told.append("lies")
        del aggregator.chain[1:], aggregator.bodies[1:]
        aggregator.crowd(2)

    def second_plaintexts(self) -> int:
        """Of slots of the one study, beside the first of each."""
        found: defaultdict[int, set[bytes]] = defaultdict(set)
        for body in self.aggregator.sent("packets"):
            plaintext = self.aggregator.opened("packets", body)
            found[packet_in(self.aggregator.manifest, plaintext).occasion.slot].add(plaintext)
        return sum(len(plaintexts) - 1 for plaintexts in found.values())

    def fault(self) -> str:
        """The promise that the life broke, if any."""
        if self.second_plaintexts():
            return "a slot has two plaintexts"
        sent = bool(self.aggregator.sent("packets"))
        entry = self.app.budget().entry(self.aggregator.study)
        if sent and (entry is None or entry.held < self.aggregator.manifest.epsilon):
            return "what was sent is not charged"
        return "a budget came back" if self.refilled else ""


def kill_at(turn: int) -> None:
    """The process is killed at the commit that comes after so many; never where it is below 0."""
    _KILLS[0] = turn


_KILLS = [-1]


def crash_point(name: str) -> None:
    """In place of the store's own."""
    if _KILLS[0] >= 0 and name != "after-commit-of-restore":
        _KILLS[0] -= 1
        if _KILLS[0] < 0:
            raise Killed


async def lives(folder: Path, seeds: range, monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    """The faults of these lives, by seed."""
    monkeypatch.setattr(store_file, "crash_point", crash_point)
    found = {}
    for seed in seeds:
        fault = (await one_life(folder / str(seed), seed)).fault()
        if fault:
            found[seed] = fault
    return found


async def one_life(folder: Path, seed: int) -> Life:
    draw = Random(seed)
    life = Life(folder, draw, FakeAggregator.with_study(draw.choice((DECLARED, DECLARED, BINNED))))
    kill_at(-1)
    await life.live()
    return life


@pytest.mark.slow
async def test_no_life_gives_a_second_packet_or_a_budget_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await lives(tmp_path, range(40), monkeypatch) == {}


@pytest.mark.soak
@pytest.mark.parametrize("number", range(PIECES))
async def test_ten_thousand_lives(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    each = LIVES // PIECES
    with piece(pytestconfig, "restored-lives", number, PIECES):
        assert await lives(tmp_path, range(10_000 + number * each, 10_000 + (number + 1) * each), monkeypatch) == {}


def barring_nothing(path: Path, now: float, final: bool) -> int:
    store = Store(path, os.urandom)
    store.restored((), "" if final else "set aside", b"restored" + os.urandom(8))
    store.close()
    return 0


def trusted_clock(patch: pytest.MonkeyPatch) -> None:
    """A restore believes the machine's clock, as `anonml peer restore` did."""
    patch.setattr(Life, "word", lambda life, wrong, _sure: life.aggregator.clock() + wrong)


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "the machine's clock is believed": trusted_clock,
    "the budget is refilled": lambda patch: patch.setattr(Ledger, "all_spent", lambda *_: ()),
    "no study is barred": lambda patch: patch.setattr(archive, "mark_restored", barring_nothing),
}


async def first_found(folder: Path, monkeypatch: pytest.MonkeyPatch, within: int = WITHIN) -> int:
    for seed in range(within):
        if await lives(folder, range(seed, seed + 1), monkeypatch):
            return seed
    return within


@pytest.mark.slow
@pytest.mark.parametrize("planted", FAULTS)
async def test_a_planted_fault_is_found(planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[planted](monkeypatch)
    assert await first_found(tmp_path, monkeypatch) < WITHIN


async def test_a_restored_study_goes_on_by_its_owners_word_alone(tmp_path: Path) -> None:
    """The clock of the new machine may be behind. The program asked nobody, and let the study go on."""
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path / "old", aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    app.close()
    await backup(PeerHome(tmp_path / "old"), tmp_path / "file", evaluate=at_once)
    for home, word, state in (("first", [], "stopped"), ("second", ["--time-is-right"], "consented")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("time.time", aggregator.clock)
            args = ["restore", str(tmp_path / "file"), *word, "--home", str(tmp_path / home)]
            ran = CliRunner().invoke(commands, args)
        assert ran.exit_code == 0 and ("release nothing more" in ran.output) == (not word)
        again = reopened(PeerHome(tmp_path / home), aggregator)
        assert again.store.state(aggregator.study) == state
        again.close()
