"""Whole lives of the real peer, from joining to the last exchange, in hostile studies over hostile data.

Lives in one study differ in nothing but the data: the same random bytes, the same others, the same aggregator in
memory. Every exchange must be the same in kind, size and instant, and so must every receipt and charge.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import field, frozen
from nacl.signing import SigningKey

from anon.credential import generate_secret_key, public_key
from anon.crypto.sealing.opening import Opener
from anon.errors import AnonmlError
from anon.protocols.histogram import thresholds as cuts
from anon.protocols.histogram.asked import asks_label
from anon.study.manifest import Manifest
from anon.wire.messages import Enrolment, encode_seed, seed_commitment
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.rules.checks import vetted_manifest
from peer.rules.consent import Policy, objections
from peer.rules.ledger import Ledger
from peer.rules.lifecycle import State
from peer.store.home import PeerHome
from tests.attacks.hostile_studies import PLAIN_VALUES, drawn_value, hostile_manifest
from tests.attacks.soak_pieces import piece
from tests.attacks.test_total_answers import documents
from tests.support.clock import START, Clock
from tests.support.documents import credentials_body
from tests.support.fake_aggregator import FakeAggregator
from tests.support.observed import Observed, stream
from tests.support.protocols import PROTOCOLS

pytestmark = pytest.mark.slow

STUDIES, LIVES = 20, 5
OTHERS = 2
WILLING = Policy(lifetime=10**13, max_epsilon=10**13, minimum_cohort=2, minimum_window=0)
Data = Callable[[Path], None]


@frozen
class HostileStudy:
    """A study, its aggregator's keys, the others in it, and what is published when. Shared by all lives in it."""

    manifest: Manifest
    key: SigningKey
    sealing: bytes
    issuer: bytes
    value: bytes
    others: dict[bytes, Enrolment]
    published: tuple[tuple[float, str, int, bytes], ...]
    closing_bodies: dict[bytes, bytes] = field(factory=dict)

    async def live(self, folder: Path, data: Data) -> Observed:
        """One life."""
        aggregator = FakeAggregator(self.manifest, self.key, self.sealing, self.issuer, self.value, Clock())
        aggregator.publish("manifest", self.manifest.to_bytes())
        home, asked = PeerHome(folder), list[int]()
        app = PeerApp(
            home, lambda: aggregator, aggregator.clock, stream(b"life", asked), sleep=aggregator.clock.sleep,
            policy=WILLING,
            evaluate=at_once,
        )  # fmt: skip
        with closing(app):
            data(home.data_path)
            await app.join(aggregator.invite, self.manifest.epsilon)
            await self._to_the_end(app, aggregator)
            exchanges = [(what, len(body), at) for what, body, at in aggregator.posts]
            return Observed.of(app, exchanges + [(what, 0, at) for what, at in aggregator.gets], asked)

    async def _to_the_end(self, app: PeerApp, aggregator: FakeAggregator) -> None:
        coming = list(self.published)
        for _ in range(2000):
            due = await app.step(aggregator.study)
            if due is None:
                return
            while coming and coming[0][0] <= due:
                at, kind, part, body = coming.pop(0)
                aggregator.clock.seconds = max(aggregator.clock.seconds, at)
                self._publish(aggregator, kind, part, body)
            aggregator.clock.seconds = max(aggregator.clock.seconds, due)
        raise AssertionError("a life without end")

    def _publish(self, aggregator: FakeAggregator, kind: str, part: int, body: bytes) -> None:
        if kind == "closing":
            aggregator.enrolments |= self.others
            roster = aggregator.roster()
            if roster not in self.closing_bodies:
                self.closing_bodies[roster] = credentials_body(aggregator.study, aggregator.signatures(roster))
            aggregator.publish("roster", roster)
            aggregator.publish("seed", encode_seed(aggregator.study, self.value))
            aggregator.publish("credentials", self.closing_bodies[roster])
        elif kind == "transcripts":
            aggregator.transcribe()
        else:
            aggregator.publish(kind, body, part)


def hostile_study(draw: Random, late: bool = False) -> HostileStudy:
    """The next study that a peer would join. `late`: each document comes some time after it could."""
    key, sealing, value = SigningKey.generate(), os.urandom(32), os.urandom(32)
    issuer = generate_secret_key(os.urandom)
    keys = {
        "aggregator_key": bytes(key.verify_key), "sealing_key": Opener(sealing).public_key,
        "credential_key": bytes(public_key(issuer)), "seed_commitment": seed_commitment(value),
    }  # fmt: skip
    while True:
        manifest = hostile_manifest(draw, START, keys, attack=0.7)
        if manifest is not None and joinable(manifest):
            break
    crowd = FakeAggregator(manifest, key, sealing, issuer, value, Clock())
    crowd.crowd(OTHERS)
    return HostileStudy(manifest, key, sealing, issuer, value, crowd.enrolments, schedule(manifest, draw, late))


def joinable(manifest: Manifest) -> bool:
    try:
        vetted_manifest(manifest.to_bytes(), PROTOCOLS)
    except AnonmlError:
        return False
    if objections(manifest, WILLING, Ledger(WILLING.lifetime), START):
        return False
    table = manifest.timetable
    return (table.published, manifest.cohort.admission) == (START, "invite") and manifest.cohort.minimum <= OTHERS + 1


def schedule(manifest: Manifest, draw: Random, late: bool) -> tuple[tuple[float, str, int, bytes], ...]:
    """The closing, each round's document when its windows are over, and the transcripts after the last."""
    table = manifest.timetable
    found: list[tuple[float, str, int, bytes]] = [(table.enrol_closes, "closing", 0, b"")]
    rounds = sorted({one.round for one in manifest.surveys if not asks_label(one)})
    for turn, document in zip(rounds, documents(manifest, draw, OTHERS + 1), strict=True):
        over = max(one.window.closes for one in cuts.surveys_of_round(manifest, turn))
        found.append((over, document.kind, document.part, document.body))
    last = max(one.window.closes for one in manifest.surveys)
    if late:
        found = [(at + draw.random() ** 2 * (last - at), *what) for at, *what in found]  # type: ignore[misc]
        found = [(max(one[0] for one in found[: place + 1]), *one[1:]) for place, one in enumerate(found)]
    return tuple(sorted([*found, (last, "transcripts", 0, b"")], key=lambda one: one[0]))


# Data


def hostile_data(draw: Random, manifest: Manifest) -> Data:
    """Nothing, damage, another shape, or rows of odd values, often of those that the study asks about."""
    if draw.random() < 0.3:
        return draw.choice(SHAPES)
    columns = manifest.tables[0].columns if manifest.tables else ()
    wanted = {one.name: (*one.categories, *one.cuts, *one.range) for one in manifest.features}
    wanted[manifest.label.name] = (*manifest.label.positive, *manifest.label.negative)
    rows = [
        [stored(drawn_value(draw, wanted.get(name, ()))) for name in columns]
        for _ in range(draw.choice([1, 1, 1, 0, 2]))
    ]

    def write(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            database.execute(f"CREATE TABLE person ({', '.join(columns) or 'nothing'})")
            for row in rows:
                database.execute(f"INSERT INTO person VALUES ({', '.join('?' * len(row)) or 'NULL'})", row)
            database.commit()

    return write


def stored(value: Any) -> Any:
    """The value in a form that SQLite takes; any other value becomes bytes, which no study asks about."""
    if value is None or type(value) in (float, bytes):
        return value
    if type(value) is str:
        return value.encode("utf-8", "replace").decode()
    return value if type(value) is int and abs(value) < 2**63 else b"\xff\x00"


def damaged(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + bytes(range(256)) * 16)


def without_columns(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE person (other)")
        database.commit()


def a_view(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE VIEW person AS SELECT 1 AS a, 'x' AS b, 1 AS label")
        database.commit()


SHAPES: tuple[Data, ...] = (lambda path: None, damaged, without_columns, a_view)


# The lives


async def lives(folder: Path, seed: int, studies: int) -> None:
    draw = Random(seed)
    for number in range(studies):
        study = hostile_study(draw)
        here = folder / str(number)
        first, *others = [
            await study.live(here / str(life), hostile_data(draw, study.manifest)) for life in range(LIVES)
        ]
        assert all(other == first for other in others)
        assert first.state is State.FINISHED
        assert len(first.receipts) == study.manifest.packets
        assert len(first.packets) == study.manifest.packets
        assert first.charge == (0, sum(receipt[2] for receipt in first.receipts))


@pytest.mark.parametrize("seed", range(4))
async def test_a_hundred_lives_show_nothing_of_the_data(seed: int, tmp_path: Path) -> None:
    """Five studies for each seed, five lives each."""
    await lives(tmp_path, seed, STUDIES // 4)


@pytest.mark.parametrize("seed", range(2))
async def test_lives_in_which_documents_come_late_show_nothing_either(seed: int, tmp_path: Path) -> None:
    """Also where a window is missed: five studies for each seed, three lives each."""
    draw = Random(50 + seed)
    for number in range(5):
        study = hostile_study(draw, late=True)
        here = tmp_path / str(number)
        first, *others = [await study.live(here / str(life), hostile_data(draw, study.manifest)) for life in range(3)]
        assert all(other == first for other in others)


PIECES = 20


@pytest.mark.soak
@pytest.mark.parametrize("number", range(PIECES))
async def test_two_thousand_lives(number: int, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    with piece(pytestconfig, "lives", number, PIECES):
        await lives(tmp_path, 1000 + number, STUDIES)


async def test_a_life_whose_answer_raises_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lives can fail: without the total map a number in the place of a text is a life without its packet."""
    study = hostile_study(Random(1))
    fine = await study.live(tmp_path / "fine", lambda path: None)
    assert len(fine.packets) == study.manifest.packets
    monkeypatch.setattr("peer.protocols.histogram.answer_map", raising)
    with pytest.raises(OverflowError):
        await study.live(tmp_path / "raising", lambda path: None)


def raising(*_: object) -> Callable[[object], None]:
    def answer(record: object) -> None:
        raise OverflowError

    return answer


def test_values_that_sqlite_takes_are_most_of_those_drawn() -> None:
    assert sum(stored(value) is not None for value in PLAIN_VALUES) > len(PLAIN_VALUES) - 2
