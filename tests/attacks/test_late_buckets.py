"""An aggregator that only delays or is silent cannot choose by whose buckets it is asked who goes on.

A peer fetched its bucket and two decoys at one instant, and began to send when its checks ended. So an aggregator knew
which three belong together. It held back everybody whose three lack one bucket: 768 of 4,096 members were left, and
among them its owner for certain. Now each bucket comes at its own time, and so does the instant at which a peer goes
on.

The measure: let a given member go on with chance v. Then at least sqrt(v) N members are candidates for it. Real peers
live in memory. The simulated ones are the pure plan (`peer.run.plan`) with real draws, asleep most of the day.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from heapq import heapify, heappop, heappush
from math import exp, inf, log, sqrt
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, evolve, field

from anon.errors import Unreachable
from anon.route import Response
from anon.transparency import buckets
from anon.transparency.buckets import bits_of, bucket_of
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.rules.schedule import draw_fetch_time, evaluation_allowance
from peer.rules.study_secrets import StudySecrets, decoys
from peer.run.jobs import Begin, BucketOpening, FetchMembers, RunnerMemory
from peer.run.plan import PlanInputs, next_job, retry_at
from peer.run.verify import fetch_again, last_chance
from peer.store.home import PeerHome, Settings
from peer.store.records import EnrolledStudy
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer, until_closed

Decide = Callable[[int, int, float], bool]
"""True if a request is answered: who asks (which a liar does not read), the bucket, and when."""


def seldom_awake() -> str:
    """Half a day to settle, three days to send."""
    return DECLARED.replace('settle = "10m"', 'settle = "12h"').replace('collect = "1h"', 'collect = "72h"')


# Aggregators that delay


def answers_all(_who: int, _bucket: int, _at: float) -> bool:
    return True


@define
class Only:
    """Answers so many buckets alone, that of the member it is after among them."""

    bucket: int
    count: int
    of: int

    def __call__(self, _who: int, bucket: int, _at: float) -> bool:
        return (bucket - self.bucket) % self.of < self.count


@define
class Linking:
    """Answers the bucket that it is after, and of the others those that are asked for within `apart` seconds of it."""

    bucket: int
    apart: float
    at: float = -inf

    def __call__(self, _who: int, bucket: int, at: float) -> bool:
        if bucket == self.bucket:
            self.at = at
        return at - self.at <= self.apart


@define
class ByChance:
    """Answers the bucket it is after, and of the others each request with this chance."""

    bucket: int
    chance: float
    rng: Random

    def __call__(self, _who: int, bucket: int, _at: float) -> bool:
        return bucket == self.bucket or self.rng.random() < self.chance


# Real peers


@define
class Held:
    """One peer's route to an aggregator that does not answer some of its requests for buckets."""

    who: int
    aggregator: FakeAggregator
    decide: Decide

    async def get(self, address: str, path: str, limit: int) -> Response:
        *_, kind, number, bucket = ["", "", *path.split("/")]
        roster = next((at for at, made in self.aggregator.made.items() if made.document.kind == "roster"), None)
        asked = kind == "buckets" and number == str(roster)
        if asked and not self.decide(self.who, int(bucket), self.aggregator.clock()):
            raise Unreachable("silence")
        return await self.aggregator.get(address, path, limit)

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        return await self.aggregator.post(address, path, body, limit)


async def sent(
    folder: Path, members: int, decide: Callable[[int, int], Decide], text: str = DECLARED
) -> tuple[int, float]:
    """So many real peers live side by side in a study whose aggregator is after the owners of the lowest bucket. How
    many sent a packet, and the share that did of those owners."""
    aggregator, apps = FakeAggregator.with_study(text), list[PeerApp]()
    lines = [Held(number, aggregator, answers_all) for number in range(members)]
    with ExitStack() as stack:
        for line in lines:
            home = PeerHome(folder / str(line.who))
            app = PeerApp(
                home,
                lambda line=line: line,
                aggregator.clock,
                os.urandom,
                sleep=aggregator.clock.sleep,
                evaluate=at_once,
            )  # type: ignore[misc]
            stack.callback(app.close)
            app.set_policy(evolve(app.policy(), minimum_cohort=3))
            await app.join(aggregator.invite, aggregator.manifest.epsilon)
            apps.append(app)
        await live(aggregator, apps, aggregator.manifest.timetable.enrol_closes - 1)
        aggregator.close()
        assert len(aggregator.enrolments) == members
        bits = bits_of(members)
        owned = [bucket_of(own_key(app, aggregator.study), bits) for app in apps]
        held = decide(min(owned), 1 << bits)
        for line in lines:
            line.decide = held
        await live(aggregator, apps, max(one.window.closes for one in aggregator.manifest.surveys))
        went_on = [bool(app.store.outbox(aggregator.study)) for app in apps]
        same = [on for on, bucket in zip(went_on, owned, strict=True) if bucket == min(owned)]
        return len(aggregator.sent("packets")), sum(same) / len(same)


def own_key(app: PeerApp, study: bytes) -> bytes:
    found = app.store.study(study)
    assert isinstance(found, EnrolledStudy)
    return bytes(StudySecrets.from_bytes(found.secrets[1:]).signing_key.verify_key)


async def live(aggregator: FakeAggregator, apps: list[PeerApp], until: float) -> None:
    """Everybody does what is due, in the order of time."""
    due: list[tuple[float, int]] = [(aggregator.clock(), number) for number in range(len(apps))]
    heapify(due)
    while due and due[0][0] <= until:
        at, number = heappop(due)
        aggregator.clock.seconds = max(aggregator.clock(), at)
        coming = await apps[number].step(aggregator.study)
        if coming is not None:
            heappush(due, (coming, number))
    aggregator.clock.seconds = max(aggregator.clock(), until)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets of two."""
    monkeypatch.setattr(buckets, "THRESHOLD", 8)
    monkeypatch.setattr(buckets, "MEAN", 2)
    monkeypatch.setattr(buckets, "LEAST", 0)


@pytest.mark.slow
async def test_buckets_that_are_asked_for_at_one_instant_are_those_of_many(few: None, tmp_path: Path) -> None:
    """In eight buckets. On the program before all owners sent, and with them only those whose decoy it is."""
    packets, chance = await sent(tmp_path, 20, lambda bucket, _of: Linking(bucket, 1e-3))
    assert packets >= sqrt(chance) * 20


@pytest.mark.slow
async def test_whoever_is_answered_sends(few: None, tmp_path: Path) -> None:
    packets, chance = await sent(tmp_path, 20, lambda _bucket, _of: answers_all)
    assert packets == 20 and chance == 1


# Many simulated peers

AWAKE, ASLEEP = 5400.0, (6 * 3600.0, 30 * 3600.0)
"""Seconds that a machine is on at a time, and off between two of these times."""


@define
class Simulated:
    """The life of one member between enrolment's end and the last window's, of which nothing but the plan is real."""

    number: int
    own: int
    numbers: tuple[int, ...]
    study: EnrolledStudy
    rng: Random
    decide: Decide
    now: float = 0.0
    memory: RunnerMemory = field(factory=RunnerMemory)
    went_on: float = 0.0
    session: tuple[float, float] = (0.0, 0.0)

    def __attrs_post_init__(self) -> None:
        closes = float(self.study.manifest.timetable.enrol_closes)
        begins = closes - self.rng.uniform(0.0, ASLEEP[1])
        self.session, self.now = (begins, begins + AWAKE), closes
        self.wake(draw_fetch_time(closes, self.study.manifest.timetable.settled, closes, self.rng.randbytes))
        self.begin()

    def wake(self, due: float) -> None:
        """Move on to this time, or to the next at which the machine is on; off, it may have ended the program."""
        self.now = max(self.now, due)
        while self.now > self.session[1]:
            begins = self.session[1] + self.rng.uniform(*ASLEEP)
            self.session = (begins, begins + AWAKE)
        self.now = max(self.now, self.session[0])

    def begin(self) -> None:
        """The documents are here."""
        self.memory = RunnerMemory(opening=BucketOpening((), *[None] * 2, self.numbers, 0.0))  # type: ignore[arg-type]
        self.again()

    def again(self) -> None:
        run: Any = SimpleNamespace(
            memory=self.memory, now=lambda: self.now, tools=SimpleNamespace(random_bytes=self.rng.randbytes)
        )
        fetch_again(run, self.study)
        self.memory = run.memory

    def step(self) -> float | None:
        """Do what is due; when the next is, or None at the end of it."""
        manifest = self.study.manifest
        if self.now + evaluation_allowance(manifest.timetable) >= last_chance(manifest):
            return None
        while isinstance(found := next_job(self.study, PlanInputs([], self.memory, self.now, SETTINGS)), tuple):
            for wish in found:
                self.memory = self.memory.with_time(wish.job, wish.draw(self.rng.randbytes))
        if found.due > self.now:
            ends = self.session[1]
            self.wake(found.due)
            if self.session[1] != ends and self.rng.random() < 0.5:
                self.begin()
            return self.now
        opening = self.memory.opening
        assert opening is not None and not found.held_up
        if isinstance(found.job, FetchMembers):
            if self.decide(self.number, found.job.number, self.now):
                opening = evolve(opening, opened={**opening.opened, found.job.number: None})  # type: ignore[dict-item]
                self.memory = evolve(self.memory, opening=opening)
            else:
                failures = self.memory.failures(found.job)
                again = retry_at(self.study.manifest, found.job, failures, self.now, self.rng.randbytes)
                self.memory = self.memory.with_failure(found.job, again)
        elif isinstance(found.job, Begin) and not opening.lacking:
            self.went_on = self.now
            return None
        elif isinstance(found.job, Begin):
            self.again()
        return self.now


SETTINGS = Settings()


async def an_enrolled(folder: Path, text: str) -> EnrolledStudy:
    aggregator = FakeAggregator.with_study(text)
    app = peer(folder, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    found = app.store.study(aggregator.study)
    app.close()
    assert isinstance(found, EnrolledStudy)
    return found


async def simulated(folder: Path, members: int, decide: Decide, seed: int) -> list[Simulated]:
    """The lives of so many, side by side."""
    rng, study, bits = Random(seed), await an_enrolled(folder, seldom_awake()), bits_of(members)
    lives = []
    for number in range(members):
        own = bucket_of(rng.randbytes(32), bits)
        numbers = tuple(sorted((own, *decoys(rng.randbytes(32), b"members", own, bits))))
        lives.append(Simulated(number, own, numbers, study, Random(rng.random()), decide))
    due = [(one.now, one.number) for one in lives]
    heapify(due)
    while due:
        _at, number = heappop(due)
        coming = lives[number].step()
        if coming is not None:
            heappush(due, (coming, number))
    return lives


def candidates(lives: list[Simulated], own: set[int]) -> tuple[float, float]:
    """The chance with which an owner of one of these buckets goes on. And among how many members one who did is hidden:
    as many as are equally likely at the same entropy, where an aggregator knows everybody's bucket and these
    chances."""
    sides = [[bool(one.went_on) for one in lives if (one.own in own) is inside] for inside in (True, False)]
    every = sum(map(sum, sides))
    if not every:
        return 0.0, inf
    entropy = sum(-sum(side) / every * log(sum(side) / len(side) / every) for side in sides if any(side))
    return sum(sides[0]) / len(sides[0]), exp(entropy)


@pytest.mark.slow
async def test_those_who_are_seldom_awake_take_part(tmp_path: Path) -> None:
    """Who is late takes part at the next instant of their own. Half of them would miss the settling time."""
    lives = await simulated(tmp_path, 1000, answers_all, 1)
    settled = lives[0].study.manifest.timetable.settled
    in_time = sum(0 < one.went_on <= settled for one in lives)
    assert sum(one.went_on > 0 for one in lives) >= 950 and in_time < 700


DELAYS: dict[str, tuple[set[int], Callable[[int], Decide]]] = {
    "three buckets alone": ({0, 1, 2}, lambda of: Only(0, 3, of)),
    "what is asked for within a minute": ({0}, lambda _of: Linking(0, 60)),
    "what is asked for within a second": ({0}, lambda _of: Linking(0, 1)),
    "one in ten": ({0}, lambda _of: ByChance(0, 0.1, Random(7))),
    "one in two": ({0}, lambda _of: ByChance(0, 0.5, Random(7))),
    "one in a hundred": ({0}, lambda _of: ByChance(0, 0.01, Random(7))),
}


async def isolated(folder: Path, delay: str, members: int) -> None:
    own, decide = DELAYS[delay]
    lives = await simulated(folder, members, decide(1 << bits_of(members)), 2)
    chance, found = candidates(lives, own)
    print(
        f"{delay}: {members} members, chance {chance:.4f}, {found:.0f} candidates, {sqrt(chance) * members:.0f} "
        "demanded"
    )
    assert found >= sqrt(chance) * members - 1


@pytest.mark.slow
@pytest.mark.parametrize("delay", ["three buckets alone", "what is asked for within a minute", "one in ten"])
async def test_whom_it_lets_go_on_has_many_candidates(
    tmp_path: Path, delay: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In sixteen buckets, as 4,096 members have."""
    monkeypatch.setattr(buckets, "MEAN", 64)
    await isolated(tmp_path, delay, 1024)


@pytest.mark.soak
@pytest.mark.parametrize("members", [4096, 100_000])
@pytest.mark.parametrize("delay", DELAYS)
async def test_in_full_size(tmp_path: Path, delay: str, members: int) -> None:
    await isolated(tmp_path, delay, members)
