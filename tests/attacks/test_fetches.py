"""An aggregator that reads the draw out of what is fetched: which transcripts, which documents, which looks at the
heads.

Several peers, each with times out of one and the same source and a draw of its own, live one study. Their requests must
be equal, one by one and to the instant. On the code before, each fetched the transcripts of its own surveys, the edges
only if its survey needed them, and the heads only in the windows of its packets.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import define, evolve, field

from anon.errors import Unreachable
from anon.protocols.histogram import thresholds as cuts
from anon.protocols.histogram.asked import asks_label
from anon.route import Response
from anon.transparency import buckets
from peer.app import PeerApp
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.home import PeerHome, Settings
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator, advance, until_closed
from tests.support.routes import Ask, Exchanges, onward

pytestmark = pytest.mark.slow

MANY = PAPER.replace("partitions = 3", "partitions = 3\nsubset_size = 1\nsubsets_per_partition = 1")


@define
class Line(Exchanges):
    """One peer's route to the aggregator, and what it asked for, when."""

    aggregator: FakeAggregator
    gets: list[tuple[str, float]] = field(factory=list)
    posts: list[float] = field(factory=list)
    loses_packets: bool = False

    async def exchange(self, ask: Ask) -> Response:
        if ask.body is None:
            self.gets.append((ask.what, self.aggregator.clock()))
        elif ask.what == "packets":
            self.posts.append(self.aggregator.clock())
            if self.loses_packets:
                raise Unreachable("no answer")
        return await onward(self.aggregator, ask)


@define
class Person:
    """A peer whose times are the seed's, and whose secrets, and so whose draw, are its own."""

    app: PeerApp
    line: Line

    @classmethod
    def of(cls, folder: Path, aggregator: FakeAggregator, seed: int, **settings: object) -> Person:
        line, home = Line(aggregator), PeerHome(folder)
        home.write_settings(evolve(Settings(), **settings))
        app = PeerApp(home, lambda: line, aggregator.clock, times_of(seed), sleep=aggregator.clock.sleep)
        app.set_policy(evolve(app.policy(), minimum_cohort=3))
        return cls(app, line)

    @property
    def draws(self) -> tuple[int, ...]:
        return self.app.store.study(self.line.aggregator.study).draws


def times_of(seed: int) -> Callable[[int], bytes]:
    """Eight bytes are a time, from the seed; everything else is the operating system's."""
    source = random.Random(seed)
    return lambda size: source.randbytes(8) if size == 8 else os.urandom(size)


async def live(folder: Path, text: str, people: int, **settings: object) -> tuple[FakeAggregator, list[Person]]:
    """A whole study, phase by phase; the clock goes back for each, so that all live at one time."""
    aggregator = FakeAggregator.with_study(text)
    crowd = [Person.of(folder / str(number), aggregator, 7, **settings) for number in range(people)]
    for one in crowd:
        await one.app.join(aggregator.invite, aggregator.manifest.epsilon)
    table, start = aggregator.manifest.timetable, aggregator.clock()
    turns = sorted({one.round for one in aggregator.manifest.surveys if not asks_label(one)})
    closings = {turn: cuts.surveys_of_round(aggregator.manifest, turn)[0].window.closes for turn in turns}

    async def until(begun: float, end: float) -> None:
        for one in crowd:
            aggregator.clock.seconds = begun
            await advance(one.app, aggregator, end)
        aggregator.clock.seconds = end

    await until(start, table.enrol_closes)
    aggregator.crowd(3)
    aggregator.close()
    begun = float(table.enrol_closes)
    for turn, closes in closings.items():
        await until(begun, closes + 1.0)
        begun = closes + 1.0
        publish(aggregator, turn)
    last = max(one.window.closes for one in aggregator.manifest.surveys)
    await until(begun, last + 1.0)
    aggregator.transcribe()
    for one in crowd:
        aggregator.clock.seconds = last + 1.0
        assert await advance(one.app, aggregator) is None
    return aggregator, crowd


def transcripts_of(aggregator: FakeAggregator) -> list[int]:
    """The numbers of the transcripts in the chain."""
    return [signed.head.number for signed in aggregator.chain if signed.head.kind == "transcript"]


def fetched_transcripts(line: Line) -> int:
    """How often the transcripts were fetched, all of them together; none comes alone."""
    whats = Counter(what for what, _at in line.gets)
    assert not any(whats[f"documents/{number}"] for number in transcripts_of(line.aggregator))
    return whats["heads/transcripts"]


def publish(aggregator: FakeAggregator, turn: int) -> None:
    surveys = cuts.surveys_of_round(aggregator.manifest, turn)
    answers = {one.survey: cuts.RoundCounts(9, (1,) * one.m if one.kind == "quantile" else (4,)) for one in surveys}
    kind, part = cuts.place_of(aggregator.manifest, turn)
    aggregator.publish(kind, cuts.body(aggregator.manifest, turn, answers), part)


@pytest.mark.parametrize(("text", "people"), [(BINNED, 8), (PAPER, 6), (MANY, 6), (DECLARED, 3)])
async def test_all_fetches_of_peers_with_different_draws_are_equal(tmp_path: Path, text: str, people: int) -> None:
    """All eight draw one kind of survey once in 128 studies, and then nothing is compared but nothing fails either."""
    aggregator, crowd = await live(tmp_path, text, people)
    first, *others = crowd
    for one in others:
        assert one.line.gets == first.line.gets
    assert fetched_transcripts(first.line) == 1
    for one in crowd:
        (status,) = one.app.status()
        assert status.state is State.FINISHED
        assert {slot.status for slot in status.slots} == {Status.INCLUDED}
        assert len(one.line.posts) == aggregator.manifest.packets, "a blank sends nothing"


async def test_all_transcripts_come_in_one_exchange(tmp_path: Path) -> None:
    """A circuit for each would cost a peer of the census study a hundred of them."""
    aggregator, (one,) = await live(tmp_path, PAPER, 1)
    assert len(transcripts_of(aggregator)) == len(aggregator.manifest.slots) > 2
    assert fetched_transcripts(one.line) == 1


async def test_who_sent_nothing_fetches_the_same(tmp_path: Path) -> None:
    """A packet that is refused or never acknowledged must not show in what is fetched after the windows."""
    aggregator = FakeAggregator.with_study()
    lost, fine = (Person.of(tmp_path / str(number), aggregator, 7) for number in range(2))
    lost.line.loses_packets = True
    for one in (lost, fine):
        aggregator.clock.seconds = float(aggregator.manifest.timetable.published)
        await one.app.join(aggregator.invite, aggregator.manifest.epsilon)
        await advance(one.app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)
    aggregator.crowd(3)
    aggregator.close()
    window = aggregator.manifest.surveys[0].window
    for one in (lost, fine):
        aggregator.clock.seconds = aggregator.manifest.timetable.enrol_closes
        await advance(one.app, aggregator, window.closes)
    aggregator.transcribe()
    for one in (lost, fine):
        aggregator.clock.seconds = window.closes
        one.line.gets.clear()
        assert await advance(one.app, aggregator) is None
    assert [what for what, _at in sorted(lost.line.gets)] == [what for what, _at in sorted(fine.line.gets)]
    assert lost.app.status()[0].slots[0].status is not Status.INCLUDED


async def test_a_restart_after_the_transcripts_fetches_all_again(tmp_path: Path) -> None:
    """And never only the own."""
    aggregator = FakeAggregator.with_study(PAPER)
    one = Person.of(tmp_path, aggregator, 7)
    await one.app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(one.app, aggregator, 3)
    for turn in sorted({survey.round for survey in aggregator.manifest.surveys if not asks_label(survey)}):
        await advance(one.app, aggregator, cuts.surveys_of_round(aggregator.manifest, turn)[0].window.closes)
        publish(aggregator, turn)
    await advance(one.app, aggregator, max(survey.window.closes for survey in aggregator.manifest.surveys))
    aggregator.transcribe()
    while not fetched_transcripts(one.line):
        due = await one.app.step(aggregator.study)
        assert due is not None
        aggregator.clock.seconds = max(aggregator.clock.seconds, due)
    one.app.close()
    again = PeerApp(PeerHome(tmp_path), lambda: one.line, aggregator.clock, os.urandom, sleep=aggregator.clock.sleep)
    one.line.gets.clear()
    assert await advance(again, aggregator) is None
    assert fetched_transcripts(one.line) == 1
    assert {slot.status for slot in again.status()[0].slots} == {Status.INCLUDED}


async def test_a_malformed_document_stops_whoever_drew_what(tmp_path: Path) -> None:
    """Edges that cannot be: on the code before, only those stopped whose survey needed them, and that shows."""
    aggregator = FakeAggregator.with_study(BINNED)
    crowd = [Person.of(tmp_path / str(number), aggregator, 7) for number in range(6)]
    for one in crowd:
        aggregator.clock.seconds = float(aggregator.manifest.timetable.published)
        await one.app.join(aggregator.invite, aggregator.manifest.epsilon)
        await advance(one.app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)
    aggregator.close()
    middle = cuts.surveys_of_round(aggregator.manifest, 0)[0].window.closes
    for one in crowd:
        aggregator.clock.seconds = aggregator.manifest.timetable.enrol_closes
        await advance(one.app, aggregator, middle + 1.0)
    aggregator.publish("edges", b"\x80")
    for one in crowd:
        aggregator.clock.seconds = middle + 1.0
        assert await advance(one.app, aggregator) is None
        assert one.app.status()[0].state is State.STOPPED
    for one in crowd:
        assert one.line.gets == crowd[0].line.gets


def masked(line: Line) -> list[tuple[str, float]]:
    """Everything that was asked for and when, without the numbers of buckets."""
    return [(re.sub(r"^(buckets/\d+)/\d+$", r"\1", what), at) for what, at in line.gets]


def bucketed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents of few are in buckets of one."""
    monkeypatch.setattr(buckets, "THRESHOLD", 4)
    monkeypatch.setattr(buckets, "MEAN", 1)
    monkeypatch.setattr(buckets, "LEAST", 0)


@pytest.mark.parametrize(("text", "people"), [(DECLARED, 4), (PAPER, 4)])
async def test_all_fetches_of_buckets_are_equal_but_for_the_numbers_of_the_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, people: int
) -> None:
    """The numbers follow from key, tag and decoys, and none of these from the data or the draw."""
    bucketed(monkeypatch)
    aggregator, crowd = await live(tmp_path, text, people)
    first, *others = crowd
    for one in others:
        assert masked(one.line) == masked(first.line)
    per_document = Counter(what for what, _at in masked(first.line) if what.startswith("buckets/"))
    assert set(per_document.values()) == {3} and len(per_document) == 2 + aggregator.manifest.packets
    for one in crowd:
        assert {slot.status for slot in one.app.status()[0].slots} == {Status.INCLUDED}
        digests = [at for what, at in masked(one.line) if what.startswith("buckets/")][6:]
        assert len(set(digests)) == len(digests), "each bucket of a transcript at a time of its own"


async def test_who_sent_nothing_fetches_as_many_buckets_at_the_same_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucketed(monkeypatch)
    aggregator = FakeAggregator.with_study()
    lost, *fine = (Person.of(tmp_path / str(number), aggregator, 7) for number in range(5))
    lost.line.loses_packets = True
    for one in (lost, *fine):
        aggregator.clock.seconds = float(aggregator.manifest.timetable.published)
        await one.app.join(aggregator.invite, aggregator.manifest.epsilon)
        await advance(one.app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)
    aggregator.close()
    window = aggregator.manifest.surveys[0].window
    for one in (lost, *fine):
        aggregator.clock.seconds = aggregator.manifest.timetable.enrol_closes
        await advance(one.app, aggregator, window.closes)
    aggregator.transcribe()
    for one in (lost, *fine):
        aggregator.clock.seconds = window.closes
        one.line.gets.clear()
        assert await advance(one.app, aggregator) is None
    wanted = sorted(what for what, _at in masked(fine[0].line))
    assert wanted.count(f"buckets/{len(aggregator.chain) - 1}") == 3
    assert sorted(what for what, _at in masked(lost.line)) == wanted
    assert lost.app.status()[0].slots[0].status is not Status.INCLUDED
