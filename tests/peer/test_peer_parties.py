"""Bad input of a party with many records: its packet has one size and one charge, whatever its data and classifier do.

The vector that leaves is opened here, which takes all tellers together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from anon.protocols.registry import charge_of
from anon.protocols.sum import classifiers
from anon.protocols.sum.design import summed_of
from anon.protocols.sum.vector import vector_of
from anon.protocols.vectors.averaging import AveragedWeights
from anon.queries.process import Work
from anon.study.given import NONE_GIVEN
from peer.app import PeerApp
from peer.data.evaluate import at_once, evaluated
from peer.data.importing import import_rows
from peer.rules.distrust import Distrust
from peer.rules.lifecycle import State
from peer.rules.limits import BudgetLimit
from tests.peer.test_peer_least_records import COLUMNS, contributed
from tests.support.fake_aggregator import FakeAggregator, advance, peer, until_closed
from tests.support.sums import countersigned, many, sum_study
from tests.support.tries import every

AVERAGING = 'kind = "averaging"\nepsilon = 1.0\nstrength = 0.1'
TRANSFER = 'kind = "transfer"\nepsilon = 1.0\npublic_rows = 3\nstrength = 0.1\nclassifier = "tree"'
GIVEN = '[[given]]\nname = "rows"\ndescription = "Rows."\nfile = "rows.csv"\n'
PUBLIC = b"age,sleep\n20,8\n50,5\n80,4\n"
OTHER = PUBLIC.replace(b"20,8", b"20,9")
AGES, SLEEPS = (20, 35, 50, 65, 80), (8, 7, 6, 5, 4)
Rows = Sequence[tuple[object, ...]]


def averaging(unit: str = "person", clip: str = "0") -> FakeAggregator:
    return published(sum_study(f"{AVERAGING}\nclip = {clip}", keys=many(20, unit) + "least_records = 5\n"))


def transfer(given: bytes = PUBLIC) -> FakeAggregator:
    aggregator = published(sum_study(TRANSFER, keys=many(20, "person")) + GIVEN, {"rows": PUBLIC})
    aggregator.publish("given", given)
    return aggregator


def published(text: str, given: Mapping[str, bytes] = NONE_GIVEN) -> FakeAggregator:
    aggregator = FakeAggregator.with_study(text, given=given)
    aggregator.publish("tellers", countersigned(aggregator.manifest))
    return aggregator


def rows(ages: Sequence[object], sleeps: Sequence[object], tired: Sequence[int]) -> Rows:
    columns = zip(ages, sleeps, tired, strict=True)
    return [(day, age, sleep, "some", label) for day, (age, sleep, label) in enumerate(columns)]


DATA: dict[str, Rows] = {
    "ordinary": rows(AGES, SLEEPS, (0, 0, 0, 1, 1)),
    "beyond both ends": rows((-1e9, 1e300, 50, 101, 80), (1e300, 0, 6, -5, 13), (0, 0, 0, 1, 1)),
    "no numbers": rows((None, "x", float("inf"), b"1", ""), ("",) * 5, (0, 1, 0, 1, 0)),
    "one class": rows(AGES, SLEEPS, (1,) * 5),
    "one class, all alike": rows((80,) * 5, (4,) * 5, (1,) * 5),
    "fewer than declared": rows(AGES[:2], SLEEPS[:2], (0, 1)),
    "more than declared": rows(AGES * 8, SLEEPS * 8, (0, 0, 0, 1, 1) * 8),
    "none": [],
}


async def joined(folder: Path, aggregator: FakeAggregator, data: Rows) -> PeerApp:
    folder.mkdir()
    app, budget = peer(folder, aggregator), charge_of(aggregator.manifest).budget
    app.set_policy(evolve(app.policy(), limits=(BudgetLimit(budget.measure, budget.unit, 10**9, 10**9),)))
    import_rows(folder / "data.sqlite", "person", COLUMNS, data)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    return app


async def left(app: PeerApp, aggregator: FakeAggregator) -> tuple[int, int, tuple[int, ...]]:
    """How many packets left, the charge, and the sizes of bodies."""
    await advance(app, aggregator, aggregator.manifest.surveys[0].window.closes)
    (entry,) = app.budget().entries
    app.close()
    return len(aggregator.accepted), entry.spent, tuple(map(len, aggregator.sent("packets")))


DESIGNS = {
    "averaging": averaging,
    "averaging of records": lambda: averaging("record"),
    "averaging of weights beyond the longest": lambda: averaging(clip="0.001"),
    "transfer": transfer,
}


@pytest.mark.parametrize("design", every(3, DESIGNS))
@pytest.mark.slow
async def test_no_data_change_what_a_party_sends_or_spends(tmp_path: Path, design: str) -> None:
    """Each vector is that of the values that are there, clipped, and no longer than its proof states."""
    seen = set()
    for name, data in DATA.items():
        aggregator = DESIGNS[design]()
        study = aggregator.manifest
        app = await joined(tmp_path / name, aggregator, data)
        seen.add(await left(app, aggregator))
        found, longest = contributed(aggregator), summed_of(study, study.surveys[0]).contribution_norm_squared
        assert sum(entry**2 for entry in found) <= longest, name
        if len(data) <= 20:  # more are cut by a draw of the peer's own
            record = evaluated(study, tmp_path / name / "data.sqlite", 20.0).record
            assert found == tuple(vector_of(study, study.surveys[0], record, given=PUBLIC)), name
        assert any(found) == bool(data), name
    ((packets, spent, sizes),) = seen
    assert (packets, spent, len(sizes)) == (1, study.epsilon, 1)


def test_a_value_beyond_the_range_counts_as_its_end() -> None:
    study = averaging().manifest
    design = summed_of(study, study.surveys[0])
    assert isinstance(design, AveragedWeights)
    ends = [design.row({"age": age, "sleep": sleep, "1": 1}) for age, sleep in ((100, 0), (1e300, -7))]
    assert ends[0] == ends[1] and 0.999 < sum(real**2 for real in ends[0]) <= 1


def raises(*_: object) -> list[int]:
    raise ArithmeticError("a classifier of somebody's own")


CLASSIFIERS = {
    "raises": raises,
    "says no number": lambda _rows, _labels, public: [float("nan")] * len(public),
    "says no end": lambda _rows, _labels, public: [float("inf"), float("-inf"), 0.0][: len(public)],
    "says too little": lambda _rows, _labels, _public: [1],
    "says nothing": lambda _rows, _labels, _public: None,
}


@pytest.mark.parametrize("name", every(2, CLASSIFIERS))
@pytest.mark.slow
async def test_a_classifier_that_fails_says_the_missing_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Zeros, as of a party without a record: the packet and its charge are those of every party."""
    aggregator = transfer()
    expected = await left(await joined(tmp_path / "good", aggregator, DATA["ordinary"]), aggregator)
    assert any(contributed(aggregator))
    monkeypatch.setitem(classifiers.CLASSIFY, "tree", CLASSIFIERS[name])
    monkeypatch.setattr("tests.support.fake_aggregator.at_once", as_a_child)
    aggregator = transfer()
    app = await joined(tmp_path / "bad", aggregator, DATA["ordinary"])
    assert await left(app, aggregator) == expected
    assert set(contributed(aggregator)) == {0}


async def as_a_child(work: Work, seconds: float) -> bytes:
    """A child that raises ends without its message. The classifier of a test is known in this process alone."""
    try:
        return await at_once(work, seconds)
    except Exception:
        return b""


@pytest.mark.parametrize("name", classifiers.CLASSIFY)
def test_every_classifier_votes_on_every_row_whatever_it_learned_from(name: str) -> None:
    public = [[0.5, -0.5], [0.0, 0.0], [-0.7, 0.7]]
    ordinary = [[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6], [0.7, 0.7]]
    held = (
        [([row], [label]) for row in ordinary for label in (0, 1)]
        + [(ordinary, [label] * 4) for label in (0, 1)]
        + [([ordinary[0]] * 7, [0, 1, 0, 1, 0, 1, 0]), ([[0.0, 0.0]] * 3, [1, 1, 0])]
    )
    for learned, labels in held:
        votes = classifiers.CLASSIFY[name](learned, labels, public)
        assert len(votes) == len(public) and set(votes) <= {0, 1}
    for row in ordinary:
        assert [classifiers.CLASSIFY[name]([row], [label], [row]) for label in (0, 1)] == [[0], [1]]


@pytest.mark.slow
async def test_other_public_rows_than_the_study_names_are_declined(tmp_path: Path) -> None:
    with pytest.raises(Distrust, match="another public document than the study names"):
        await joined(tmp_path / "peer", transfer(OTHER), DATA["ordinary"])


async def test_public_rows_that_are_not_their_signed_heads_are_voted_on_by_nobody(tmp_path: Path) -> None:
    """They are asked for until the window is over. No packet leaves, and nothing is charged."""
    aggregator = transfer()
    app = await joined(tmp_path / "peer", aggregator, DATA["ordinary"])
    aggregator.bodies[aggregator.bodies.index(PUBLIC)] = OTHER
    await advance(app, aggregator, aggregator.manifest.surveys[0].window.closes)
    (status,) = app.status()
    assert aggregator.sent("packets") == [] and (status.state, status.spent) == (State.SENT, 0), status
