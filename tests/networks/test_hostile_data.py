"""A peer's sending, its times and its number of packets depend on nothing in its data.

The same peer is run over and over from the moment the roster closed, against copies of one aggregator, with the same
random bytes: only its data differ. Everything that can be seen from outside must be the same to the byte count and the
second, and so must the charge.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import peer.data.evaluate
from aggregator.app import AggregatorApp
from anon.ldp import nano
from anon.queries.lint import Bounds
from anon.wire.invite import Invite
from examples.testing import MemoryRoute
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.rules.consent import Policy
from peer.store.home import PeerHome, Settings
from tests.support.clock import Clock
from tests.support.observed import Observed, stream
from tests.support.protocols import parse_proposal
from tests.support.studies import categorical, head_of, label_of, numeric, study

pytestmark = pytest.mark.slow

FEW_STEPS = Bounds(steps=200_000)
def study_asking(design: str, age: str, hours: str, sex: str, income: str) -> str:
    """A study file whose queries are these."""
    head = head_of(
        "Hostile",
        "To send the same whatever the data are.",
        ["age", "hours", "sex", "income"],
        label_of("income", ["high", 1], ["low", 0], "Income", query=income),
        [
            numeric("age", (0, 100), "cuts = [20, 50]", description="Age", query=age),
            numeric("hours", (0, 100), "bins = 3", 40, "Hours", query=hours),
            categorical("sex", ["f", "m"], description="Sex", query=sex),
        ],
        "nobody@example.org",
    )
    lengths = {"enrol": "1h", "settle": "10m", "binning": "30m", "collect": "1h"}
    return study(head, design, lengths, 'minimum = 3\nadmission = "open"')


ONE_PACKET = 'kind = "one-packet"\nepsilon = 2.0\nbinning_share = 0.3'
PAPER = """kind = "paper"
epsilon_histogram = 0.5
epsilon_binning = 0.5
partitions = 2
subsets_per_partition = 3
binning = "quantile"
"""
COLUMNS = ("age", "hours", "sex", "income")
PLAIN = {name: f"SELECT {name} FROM person" for name in COLUMNS}
HOSTILE_QUERIES = (
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
    """select case when exists (select 1 from person where age > 50)
    then (with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n) else 1 end""",
    "select 1 union all select 2",
    "select 1 where 0",
    "select 'a text'",
    "select x'00ff'",
    "select null",
    "select 1e999",
    "select 1e999 - 1e999",
    "select -1e300",
    "select abs(-9223372036854775807 - 1)",
    "select sum(9223372036854775807) from (select 1 union all select 1)",
    "select json_extract(sex, '$.a') from person",
    "select max(age) + min(hours) from person",
    "select count(*) from person a, person b, person c, person d, person e",
)
BENIGN: tuple[tuple[Any, ...], ...] = ((30, 40, "f", "high"),)


@frozen
class ClosedStudy:
    """A study whose roster is closed; peer and aggregator as they were at that moment."""

    folder: Path
    study: bytes
    at: float
    packets: int

    def run(self, data: Callable[[Path], None]) -> Observed:
        """Run copies of both to the peer's end, with these data."""
        with tempfile.TemporaryDirectory() as scratch:
            here = Path(scratch)
            for name in ("aggregator", "peer"):
                shutil.copytree(self.folder / name, here / name)
            data(here / "peer" / "data.sqlite")
            return asyncio.run(self._run(here))

    async def _run(self, here: Path) -> Observed:
        clock, asked = Clock(self.at), list[int]()
        async with AggregatorApp(here / "aggregator", clock, stream(b"aggregator", []), processes=0) as app:
            route = MemoryRoute(app.study(self.study), clock)
            peer = PeerApp(PeerHome(here / "peer"), lambda: route, clock, stream(b"peer", asked), evaluate=at_once)
            with closing(peer):
                while (due := await peer.step(self.study)) is not None:
                    clock.seconds = max(clock.seconds, due)
                    await app.tick()
                with closing(sqlite3.connect(here / "aggregator" / "aggregator.sqlite")) as store:
                    kept = store.execute("SELECT slot, survey, length(plaintext) FROM packets ORDER BY slot").fetchall()
                exchanges = [(request.what, len(request.body or b""), request.at) for request in route.requests]
                return Observed.of(peer, exchanges, asked, kept)


async def _close_roster(folder: Path, text: str) -> ClosedStudy:
    clock = Clock()
    async with AggregatorApp(folder / "aggregator", clock, stream(b"publish", []), processes=0) as app:
        manifest = await app.create_study(parse_proposal(text))
        route = MemoryRoute(app.study(manifest.study_id), clock)
        invite = Invite("127.0.0.1:1", app.home.public_key, manifest.study_id)
        for name in ("peer", "second", "third"):
            home = PeerHome(folder / name)
            home.write_settings(Settings(check_inclusion=False))
            random_bytes = stream(name.encode(), [])
            peer = PeerApp(home, lambda: route, clock, random_bytes, policy=Policy(minimum_cohort=3))
            with closing(peer):
                await peer.join(invite, nano(5.0))
                await peer.step(manifest.study_id)
        clock.seconds = manifest.timetable.enrol_closes
        await app.tick()
    return ClosedStudy(folder, manifest.study_id, clock.seconds, manifest.packets)


_CLOSED: dict[str, tuple[ClosedStudy, Observed]] = {}


def closed_study(folder: Path, design: str, queries: dict[str, str]) -> tuple[ClosedStudy, Observed]:
    """The study with these queries, and what is seen of a peer with benign data. Made once each."""
    text = study_asking(design, **queries)
    if text not in _CLOSED:
        made = asyncio.run(_close_roster(folder / str(len(_CLOSED)), text))
        _CLOSED[text] = made, made.run(table(BENIGN))
    return _CLOSED[text]


def table(
    rows: tuple[tuple[Any, ...], ...], columns: tuple[str, ...] = COLUMNS, name: str = "person"
) -> Callable[[Path], None]:
    """Data in the owner's file, without the importer's manners."""

    def write(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            database.execute(f'CREATE TABLE "{name}" ({", ".join(columns)})')
            marks = ", ".join("?" * len(columns))
            database.executemany(f'INSERT INTO "{name}" VALUES ({marks})', [row[: len(columns)] for row in rows])
            database.commit()

    return write


def damaged(content: bytes) -> Callable[[Path], None]:
    """A file that is no database."""

    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


def view_that_fails(path: Path) -> None:
    """A view where a table should be."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE VIEW person AS SELECT * FROM nowhere")
        database.commit()


CELLS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=20),
    st.sampled_from(["f", "m", "high", "low", "NaN", "9" * 400, "{", '{"a": [1]}', 1e308, 100.5, -0.0]),
    st.just("x" * 300_000),
)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), max_size=4).map(tuple)
DATA = st.one_of(
    ROWS.map(table),
    st.tuples(ROWS, st.sampled_from([COLUMNS[:1], COLUMNS[:3], ("age", "hours", "colour", "income")])).map(
        lambda drawn: table(*drawn)
    ),
    st.sampled_from(["people", "PERSON", "Person"]).map(lambda name: table(BENIGN, COLUMNS, name)),
    st.binary(max_size=200).map(damaged),
    st.just(lambda path: None),
    st.just(view_that_fails),
)


@pytest.fixture(scope="module", autouse=True)
def fewer_steps() -> Iterator[None]:
    """Loops end sooner; which bound ends them is the only difference."""
    with pytest.MonkeyPatch.context() as patch:
        request_of = peer.data.evaluate.request_of
        patch.setattr(peer.data.evaluate, "request_of", lambda *study: request_of(*study)._replace(bounds=FEW_STEPS))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


def demand_schedule(made: ClosedStudy, seen: Observed, epsilon: float) -> None:
    """One packet for every slot, accepted, at the price of the manifest."""
    assert [(slot, status, word) for slot, _, _, status, word in seen.receipts] == [
        (slot, "delivered", "accepted") for slot in range(made.packets)
    ]
    assert len(seen.packets) == made.packets and len(set(seen.packets)) == 1
    assert seen.charge == (0, nano(epsilon))
    assert len(seen.kept) == made.packets and len({size for _, _, size in seen.kept}) <= 3


def quiet(examples: int) -> settings:
    """Always the same examples, as slow as they are."""
    return settings(
        max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )



@quiet(25)
@given(data=DATA)
@pytest.mark.parametrize(("design", "epsilon"), [(ONE_PACKET, 2.0), (PAPER, 2.0)], ids=["one-packet", "paper"])
def test_hostile_data_change_nothing_that_can_be_seen(
    folder: Path, design: str, epsilon: float, data: Callable[[Path], None]
) -> None:
    made, benign = closed_study(folder, design, PLAIN)
    demand_schedule(made, benign, epsilon)
    assert made.run(data) == benign


@quiet(12)
@given(queries=st.tuples(*[st.sampled_from(HOSTILE_QUERIES)] * 4), data=DATA)
def test_hostile_queries_change_nothing_that_can_be_seen(
    folder: Path, queries: tuple[str, ...], data: Callable[[Path], None]
) -> None:
    made, benign = closed_study(folder, PAPER, dict(zip(COLUMNS, queries, strict=True)))
    demand_schedule(made, benign, 2.0)
    assert made.run(data) == benign
    plain = closed_study(folder, PAPER, PLAIN)[1]
    assert benign.packets == plain.packets
    assert benign.charge == plain.charge


@pytest.mark.parametrize("query", HOSTILE_QUERIES)
def test_each_hostile_query_passes_the_lint_and_sends_the_schedule(folder: Path, query: str) -> None:
    made, benign = closed_study(folder, ONE_PACKET, dict.fromkeys(COLUMNS, query))
    demand_schedule(made, benign, 2.0)
    assert made.run(table(((99, "x", None, 1),))) == benign
