"""A query gives ten thousand records where a secret is so, and none elsewhere: nobody outside sees which.

Making a vector of ten thousand records takes seconds of processor time. It was done after the evaluation's deadline,
and before each round of a gradient. An aggregator that held the credentials or a document back until little of the
window was left then saw who had the secret: 8 of 8 packets without it, 0 of 8 with it.

The clock is an argument here. Processor time of this process after a deadline passes on it, in steps of a quarter of a
second, so that a busy machine decides nothing. The children are real, and are awaited.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import define, evolve, field

from anon.ldp import NANO
from anon.protocols.charge import Measure, Unit
from anon.queries import process
from anon.queries.answers import Request, Value, parse_answers
from anon.queries.process import Work
from peer.app import PeerApp
from peer.data import evaluate as evaluating
from peer.data.evaluate import Evaluate, after_its_end, at_once, by_deadline, missing
from peer.data.importing import import_rows
from peer.data.making.content import Making, SlotRequest, made
from peer.data.making.work import work_of
from peer.protocols.contract import part_of
from peer.rules.consent import Policy
from peer.rules.limits import BudgetLimit
from peer.rules.packet_lifecycle import Status
from peer.store.home import PeerHome
from peer.store.outbox import OutboxStore
from tests.attacks.soak_pieces import piece
from tests.support.clock import START, Clock
from tests.support.fake_aggregator import FakeAggregator
from tests.support.observed import Observed, stream
from tests.support.studies import numeric
from tests.support.sums import GRADIENT, MOMENTS, countersigned, document, many, sum_study
from tests.support.trees_study import trees_study
from tests.support.tries import soaked

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not process.has_children(), reason="no child processes here")]

ALLOWANCE, TICK, STEP = 60.0, 1e-3, 0.25
MARGINS = (-30.0, -1.0, -TICK, TICK, 0.3, 1.0, 3.5, 10.0, 60.0, 600.0)
"""Seconds of the window that are left beyond the allowance when the peer begins; two are a tick beside the cut."""
EARLY = 3600.0 - 600
"""The same of a round whose documents arrive as soon as they can be there."""
COLUMNS = ("day", "age", "sleep", "cups", "tired")
MEMBERS, ROUNDS, FURTHER = 3, 3, 10
TREES = "trees"
LIMITS = tuple(
    BudgetLimit(measure, unit, 1000 * NANO, 1000 * NANO)
    for measure in (Measure.ZCDP, Measure.CENTRAL)
    for unit in (Unit.RECORD, Unit.PERSON)
)


def asked_again(number: int) -> str:
    """One feature more, so that a record takes longer."""
    return numeric(f"age{number}", (0, 100), "cuts = [30, 60]", query="SELECT day, age FROM person")


@define
class Attacked:
    """One study, which any number of peers live in apart from each other, and each peer's data."""

    most: int
    design: str = GRADIENT
    unit: str = "record"
    further: int = FURTHER
    first: FakeAggregator = field(init=False)

    def __attrs_post_init__(self) -> None:
        text = sum_study(self.design, keys=many(self.most, self.unit), minimum=MEMBERS)
        if self.design == TREES:
            text = trees_study(minimum=MEMBERS, most=self.most).replace('"tired"]', '"cups", "tired"]')
        self.first = FakeAggregator.with_study(text + "".join(map(asked_again, range(self.further))))

    def again(self) -> FakeAggregator:
        """The same study from its beginning, with a clock of its own."""
        one = self.first
        found = FakeAggregator(one.manifest, one.key, one.sealing, one.issuer, one.value, Clock(float(START)))
        found.publish("manifest", one.manifest.to_bytes())
        if self.design != TREES:
            found.publish("tellers", countersigned(one.manifest))
        return found

    def table(self, path: Path, records: int) -> None:
        """So many rows beyond fifty years of age, beside one that no query takes."""
        rows: list[tuple[object, ...]] = [(day, 51 + day % 40, 6 + day % 5, "some", day % 2) for day in range(records)]
        import_rows(path, "person", COLUMNS, rows or [(None, None, None, None, None)], durable=False)


Evaluates = Callable[[Clock], Evaluate]


def awaited(clock: Clock) -> Evaluate:
    """Children that get all the real time they need."""
    return after_its_end(clock.sleep)


@define
class Attempt:
    """One peer's life in a study, in which the aggregator holds back what a round waits for."""

    folder: Path
    study: Attacked
    records: int
    left: tuple[float, ...]
    """Seconds beyond the allowance that are left of each round's window when its documents arrive."""
    evaluate: Evaluates = awaited
    aggregator: FakeAggregator = field(init=False)
    began: float = 0.0
    took: list[float] = field(factory=list)
    """Seconds of processor time that the peer's own process took after each deadline."""
    stalls: list[float] = field(factory=list)
    """Those of every single callback of the loop from a deadline on."""
    whole: list[bool] = field(factory=list)
    """For each message, that it came whole."""

    async def observed(self, patch: pytest.MonkeyPatch) -> Observed:
        """All that can be seen of it."""
        self.aggregator, asked = self.study.again(), list[int]()
        clock, home = self.aggregator.clock, PeerHome(self.folder)
        self.watch(patch, clock)
        inner = self.evaluate(clock)

        async def evaluate(work: Work, seconds: float) -> bytes:
            message = await inner(work, seconds)
            self.whole.append(len(message) == work.size)
            self.began = time.process_time()
            return message

        app = PeerApp(
            home, lambda: self.aggregator, clock, stream(b"life", asked), sleep=clock.sleep, evaluate=evaluate,
            policy=Policy(minimum_cohort=2, minimum_window=0, limits=LIMITS),
        )  # fmt: skip
        with closing(app):
            self.study.table(home.data_path, self.records)
            await app.join(self.aggregator.invite, self.aggregator.manifest.epsilon)
            await self.live(app)
            seen = [(what, len(body), at) for what, body, at in self.aggregator.posts]
            return Observed.of(app, seen + [(what, 0, at) for what, at in self.aggregator.gets], asked)

    def watch(self, patch: pytest.MonkeyPatch, clock: Clock) -> None:
        """Processor time of this process from a deadline on passes on the clock."""
        store, run = OutboxStore.record_evaluated, asyncio.Handle._run

        def recorded(peer: OutboxStore, *given: Any, **named: Any) -> None:
            clock.seconds += STEP * ((time.process_time() - self.began) // STEP)
            store(peer, *given, **named)
            self.took.append(time.process_time() - self.began)
            self.began = 0.0

        def called(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            run(handle)
            if self.began:
                self.stalls.append(time.thread_time() - began)

        patch.setattr(OutboxStore, "record_evaluated", recorded)
        patch.setattr(asyncio.Handle, "_run", called)

    async def live(self, app: PeerApp) -> None:
        """Step by step up to the end of the last of these rounds."""
        aggregator, clock = self.aggregator, self.aggregator.clock
        manifest = aggregator.manifest
        windows = [one.window for one in manifest.surveys]
        await self.until(app, manifest.timetable.enrol_closes - 1)
        aggregator.crowd(MEMBERS - 1)
        for turn, left in enumerate(self.left):
            begins = windows[turn].closes - manifest.timetable.margin - ALLOWANCE - left
            clock.seconds = max(clock.seconds, begins)
            if turn:
                sums = [900] * manifest.surveys[0].m
                aggregator.publish("sums", document(manifest, turn - 1, sums, MEMBERS), turn - 1)
            else:
                aggregator.close(early=True)
            await self.until(app, windows[turn].closes)

    async def until(self, app: PeerApp, end: float) -> None:
        clock = self.aggregator.clock
        while (due := await app.step(self.aggregator.study)) is not None and due <= end:
            clock.seconds = max(clock.seconds, due)
        clock.seconds = max(clock.seconds, end)


async def pair(folder: Path, patch: pytest.MonkeyPatch, study: Attacked, turn: int, margin: float) -> None:
    left = (*[EARLY] * turn, margin)
    lives = [Attempt(folder / str(records), study, records, left) for records in (0, study.most)]
    with patch.context() as changed:
        without = await lives[0].observed(changed)
    with patch.context() as changed:
        secret = await lives[1].observed(changed)
    assert secret == without, (turn, margin)
    assert all(lives[1].whole), "the children were awaited, so that what they made is what left"
    in_time = Status.DELIVERED if margin > 0 else Status.MISSED
    if turn or margin > 0:  # else the whole study is over for this peer, and not charged
        assert without.receipts[turn][3] == str(in_time), (turn, margin, without.receipts)
        assert bool(without.receipts[turn][2]) is (margin > 0), "a window that was missed is not charged"


@pytest.mark.parametrize("turn", soaked(2, (0, 1)))
async def test_nobody_sees_who_had_records_however_little_is_left(
    turn: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Attacked(5000)
    for margin in MARGINS:
        await pair(tmp_path / str(margin), monkeypatch, study, turn, margin)


@pytest.mark.parametrize("margin", [-TICK, 1.0])
async def test_nobody_sees_who_had_records_for_a_tree(
    margin: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more records than any sum takes. `test_trees_of_fifty_thousand_records_show_nothing_of_it` has the most."""
    await pair(tmp_path, monkeypatch, Attacked(10_001, TREES, further=0), 0, margin)


@pytest.mark.soak
@pytest.mark.parametrize("margin", MARGINS)
async def test_trees_of_fifty_thousand_records_show_nothing_of_it(
    margin: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pair(tmp_path, monkeypatch, Attacked(50_000, TREES), 0, margin)


PIECES = [(turn, margin) for turn in range(ROUNDS) for margin in MARGINS]


@pytest.mark.soak
@pytest.mark.parametrize(("turn", "margin"), PIECES)
async def test_two_hundred_pairs_at_each_margin_and_in_each_round(
    turn: int, margin: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """The clock is an argument, so that the number of records costs this machine's time alone: one pair in forty has
    ten thousand."""
    with piece(pytestconfig, "pairs", PIECES.index((turn, margin)), len(PIECES)):
        few, many = Attacked(100), Attacked(10_000)
        for number in range(200):
            await pair(tmp_path / str(number), monkeypatch, few if number % 40 else many, turn, margin)


# Any study, any number of records, any delay


def counted(_clock: Clock) -> Evaluate:
    """Vectors and shares are made here, and take no time of the clock's."""
    return at_once


async def any_study(folder: Path, patch: pytest.MonkeyPatch, seed: int) -> None:
    """Four peers that differ in their number of records alone, in a study that is drawn, whose documents come late."""
    chance = Random(seed)
    most, design = chance.choice([1, 2, 7, 40]), chance.choice([MOMENTS, GRADIENT, GRADIENT])
    study = Attacked(most, design, chance.choice(["record", "person"]), chance.choice([0, 2]))
    rounds = len(study.first.manifest.surveys)
    left = tuple(chance.choice([*MARGINS, EARLY, chance.uniform(-300, 3000)]) for _ in range(rounds))
    seen = []
    for place, records in enumerate((0, 1, most, most + chance.randrange(1, 9))):
        with patch.context() as changed:
            seen.append(await Attempt(folder / str(place), study, records, left, counted).observed(changed))
    assert all(one == seen[0] for one in seen), (seed, left)


@pytest.mark.parametrize("seed", range(12))
async def test_any_study_shows_nothing_of_the_number_of_records(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await any_study(tmp_path, monkeypatch, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 1100))
async def test_a_thousand_studies_show_nothing_of_it(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await any_study(tmp_path, monkeypatch, seed)


# The work of this process after a deadline


def overrunning(clock: Clock) -> Evaluate:
    """Vectors and shares are not made by their deadline."""

    async def evaluate(work: Work, seconds: float) -> bytes:
        message = await asyncio.to_thread(process.in_a_child, work, seconds if work.foreign else 0.01)
        await clock.sleep(seconds)
        return message

    return evaluate


def dying(clock: Clock) -> Evaluate:
    """The child that makes it ends in the middle."""

    async def evaluate(work: Work, seconds: float) -> bytes:
        told = work.told if work.foreign else work.told[:-1]
        message = await asyncio.to_thread(process.in_a_child, evolve(work, told=told), seconds)
        await clock.sleep(seconds)
        return message

    return evaluate


def filling(clock: Clock) -> Evaluate:
    """The queries fill the memory that they may have."""

    async def evaluate(work: Work, seconds: float) -> bytes:
        if work.foreign:
            request = Request.from_bytes(work.told)
            hog = request._replace(questions=tuple(one._replace(query=HOG) for one in request.questions), memory=2**20)
            work = evolve(work, told=hog.to_bytes())
        message = await asyncio.to_thread(process.in_a_child, work, seconds)
        await clock.sleep(seconds)
        return message

    return evaluate


HOG = """WITH RECURSIVE doubled(t) AS (SELECT 'a' UNION ALL SELECT t || t FROM doubled WHERE length(t) < 100000),
    kept(i, t) AS (SELECT 1, (SELECT max(t) FROM doubled) UNION SELECT i + 1, t || i FROM kept) SELECT i, t FROM kept"""
ENDS = {"in time": awaited, "overruns": overrunning, "dies": dying, "fills the memory": filling}


async def apart(folder: Path, patch: pytest.MonkeyPatch, most: int, count: int, ends: Evaluates) -> list[float]:
    """For each round the median of what the peer with the secret took more, in seconds. Everything seen is equal."""
    study, more = Attacked(most), list[list[float]]()
    for number in range(count):
        lives = [
            Attempt(folder / f"{number} {records}", study, records, (60.0,) * ROUNDS, does)
            for records, does in ((0, awaited), (most, ends))
        ]
        seen = []
        for one in lives:
            with patch.context() as changed:
                seen.append(await one.observed(changed))
            assert max(one.stalls) < STALL, max(one.stalls)
        assert seen[0] == seen[1] and [one[3] for one in seen[0].receipts] == ["delivered"] * ROUNDS
        assert all(lives[1].whole) is (ends is awaited)
        more.append([secret - without for without, secret in zip(*(one.took for one in lives), strict=True)])
    return [statistics.median(of_round) for of_round in zip(*more, strict=True)]


STALL = 0.02
"""Seconds of processor time that one callback of the loop may take."""


@pytest.mark.parametrize("ends", ENDS)
async def test_what_is_done_after_a_deadline_is_the_same_work(
    ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pairs, and so a wide bound: on the program before, ten thousand records took 1.4 s more in each round."""
    found = await apart(tmp_path, monkeypatch, 10_000, 2, ENDS[ends])
    assert max(map(abs, found)) < 0.1, found


@pytest.mark.soak
@pytest.mark.parametrize("ends", ENDS)
async def test_the_work_differs_by_at_most_five_milliseconds_in_two_hundred_pairs(
    ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await apart(tmp_path, monkeypatch, 10_000, 200, ENDS[ends])
    assert max(map(abs, found)) <= 0.005, found


@pytest.mark.parametrize("platform", ["ios", sys.platform])
async def test_what_is_not_there_at_the_deadline_leaves_as_the_missing_answer_in_each_round(
    platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock leaps to each deadline, before any child or, on a phone, thread can be done."""
    study, seen = Attacked(2500), list[Observed]()
    monkeypatch.setattr(sys, "platform", platform)
    for records, does in ((0, awaited), (2500, lambda clock: by_deadline(clock.sleep))):
        one = Attempt(tmp_path / str(records), study, records, (60.0,) * ROUNDS, does)
        with monkeypatch.context() as changed:
            seen.append(await one.observed(changed))
    assert not any(one.whole) and [one[3] for one in seen[0].receipts] == ["delivered"] * ROUNDS
    assert seen[0] == seen[1]


async def test_no_answer_is_read_in_the_process_that_holds_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the missing answer, which is made beforehand: what is read is read in children."""
    read: list[bytes] = []

    def noted(request: Request, message: bytes) -> tuple[Value, ...]:
        read.append(message)
        return parse_answers(request, message)

    monkeypatch.setattr(evaluating, "parse_answers", noted)
    one = Attempt(tmp_path, Attacked(50), 50, (60.0,) * ROUNDS)
    with monkeypatch.context() as changed:
        await one.observed(changed)
    assert all(one.whole) and len(one.whole) == ROUNDS + 1
    assert len(read) == ROUNDS and not any(map(any, read))


def test_a_program_that_brings_its_python_along_is_its_own_maker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "anonml-peer"
    main = Path(__file__).resolve().parents[2] / "bundle" / "peer_program.py"
    paths = [str(main.parents[1]), *(one for one in sys.path if one.endswith("site-packages"))]
    program.write_text(
        f"#!{sys.executable}\nimport runpy, sys\nsys.path[:0] = {paths!r}\n"
        f"runpy.run_path({str(main)!r}, run_name='__main__')\n"
    )
    program.chmod(0o700)
    manifest = Attacked(5, further=0).first.manifest
    size = part_of(manifest).random_size(manifest, manifest.surveys[0])
    told = Making(manifest.to_bytes(), missing(manifest), (SlotRequest(0, 0, bytes(48), bytes(size)),))
    expected = made(told, manifest)
    work = work_of(told, manifest, len(expected))
    work.server.stop()
    monkeypatch.setattr(sys, "executable", str(program))
    try:
        assert process.in_a_child(work, 60.0) == expected
    finally:
        work.server.stop()
