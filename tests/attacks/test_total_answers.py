"""A peer's answering depends on nothing in its data, whatever study a hostile aggregator writes.

A label of 10**400 was taken by the parser and made every peer fail whose label was a number: one exact bit about
each, uncharged, as often as anybody liked. Two features of one name did the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import evolve

from aggregator.lab.simulation.inference import infer_study
from anon.errors import AnonmlError, InvalidValue, Malformed
from anon.ldp import RawCategory
from anon.protocols.categories import TotalMap, feature_category, label_category, level_category
from anon.protocols.contract import DocumentArrived, Record
from anon.protocols.histogram import thresholds as cuts
from anon.protocols.histogram.answers import AnswerMap, answer_map
from anon.protocols.histogram.asked import asks_label
from anon.protocols.histogram.describe import packet_kinds
from anon.protocols.models.tables import Cuts, Model, ModelTable
from anon.protocols.registry import check_study
from anon.study.features import Label
from anon.study.manifest import Manifest
from anon.wire.cbor import decode, encode
from peer.data.importing import import_rows
from peer.data.snapshot import Snapshot
from peer.protocols.contract import part_of
from peer.rules.consent import Policy, explain
from peer.rules.ledger import Ledger
from peer.web.study_text import own_answers, own_label
from tests.attacks.hostile_studies import OTHER_VALUES, PLAIN_VALUES, TEXTS, accepted_manifests, drawn_value
from tests.attacks.soak_pieces import ROOT, piece
from tests.support.clock import START
from tests.support.fake_aggregator import DECLARED, FakeAggregator
from tests.support.protocols import parse_manifest
from tests.support.visiting import visited

pytestmark = pytest.mark.slow

PEOPLE = 8
MANIFEST = FakeAggregator.with_study(DECLARED).manifest
ANY = Policy(lifetime=10**12, max_epsilon=10**12, minimum_cohort=2)


# The attacks, one by one


def tampered(change: Callable[[Any], object]) -> bytes:
    fields = decode(MANIFEST.to_bytes())
    change(fields)
    return encode(fields)


FORGED: dict[str, Callable[[Any], object]] = {
    "a label beyond every float": lambda f: f["label"].update(positive=[10**400]),
    "a label of 5,000 digits": lambda f: f["label"].update(negative=[10**5000]),
    "a label just beyond": lambda f: f["label"].update(positive=[2**53 + 1]),
    "a label of 1e308": lambda f: f["label"].update(positive=[1e308]),
    "two features of one name": lambda f: f["features"].append(
        dict(f["features"][0], kind="categorical", categories=["z"], cuts=[], range=[])
    ),
    "a feature named as the label": lambda f: f["label"].update(name="age"),
    "two tables of one name": lambda f: f["tables"].append(dict(f["tables"][0], columns=["other"])),
    "a range beyond": lambda f: f["features"][0].update(range=[0.0, 1e300]),
    "a cut beyond": lambda f: f["features"][0].update(range=[0.0, 1e300], cuts=[1e299]),
    "a missing value beyond": lambda f: f["features"][0].update(missing=1e300),
    "a margin beyond every float": lambda f: f["timetable"].update(margin=10**400),
    "a retention without end": lambda f: f["release"].update(retention=10**400),
    "a round beyond every document": lambda f: f["surveys"][0].update(round=10**400),
    "a survey's epsilon without end": lambda f: f["surveys"][0].update(epsilon=10**400),
    "a negative epsilon": lambda f: f.update(epsilon=-1),
    "a weight that makes the draw coarse": lambda f: f["slots"][0]["rows"][0].update(weight=2**130),
    "an end beyond every calendar": lambda f: f["timetable"].update(ends=2**39),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_no_such_study_is_ever_built(name: str) -> None:
    with pytest.raises(Malformed):
        parse_manifest(tampered(FORGED[name]))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400, 2**53 + 1, True])
@pytest.mark.parametrize("place", ["missing", "range", "cuts", "shares", "label", "model"])
def test_no_constructor_takes_such_a_number(place: str, number: Any) -> None:
    """Also without a parser: by hand, or changed from a valid one."""
    age, label = MANIFEST.feature("age"), MANIFEST.label
    with pytest.raises(InvalidValue):
        match place:
            case "label":
                evolve(label, positive=(number,))
            case "model":
                Cuts("age", (number,))
            case "missing":
                evolve(age, missing=number)
            case "shares":
                evolve(age, shares=(number, 0.5, 0.25, 0.25))
            case _:
                evolve(age, **{place: (0.0, number)})


def test_a_model_that_no_float_holds_is_no_model() -> None:
    """Its tables add up for some people and not for others: a page that fails tells whoever hears of it."""
    with pytest.raises(InvalidValue):
        ModelTable(("cups",), (4,), 1, 0.5, 0.5, 1.0, (1.7e308, 1.7e308, 0.0, 0.0), (0, 0, 0, 0))
    with pytest.raises(InvalidValue, match="no name twice"):
        twice = (MANIFEST.feature("cups"),) * 2
        Model(1, "ab" * 32, "t", MANIFEST.label, twice, (), "soft", "soft", 0.5, 0.5, ())


# The map


def unchecked(label: Label, **changes: Any) -> Label:
    """As a parser with a hole would build it."""
    found = evolve(label)
    for name, value in changes.items():
        object.__setattr__(found, name, value)
    return found


def test_the_map_is_total_even_where_a_check_has_a_hole() -> None:
    lying = unchecked(MANIFEST.label, positive=(10**400, "x", OTHER_VALUES[-1]), negative=(OTHER_VALUES[-2],))
    for value in (*PLAIN_VALUES, *OTHER_VALUES):
        assert label_category(lying, value) in (0, 1)
        for feature in MANIFEST.features:
            assert 0 <= feature_category(feature, value, feature.cuts) < feature.cardinality
        assert 0 <= level_category(MANIFEST.feature("age"), value, (25.0, 50.0)) <= 2


async def test_the_page_is_there_whatever_the_label(tmp_path: Path) -> None:
    """It was 500 for a number and 200 for a text. A hole in the checks is made on purpose here."""
    async with visited(tmp_path) as page:
        manifest = await page.peer.manifest(page.aggregator.invite)
        object.__setattr__(manifest.label, "positive", (10**400, 1))
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        for label in (0, 1, 2**62, -1, 0.5, 1e300, "1", "", None, b"\xff"):
            import_rows(page.home.data_path, "person", ("age", "cups", "tired"), [(30, "some", label)])
            assert (await page.get(page.invite)).status == 200


@pytest.mark.parametrize("error", [OverflowError, ValueError, KeyError, RecursionError, MemoryError, AssertionError])
def test_whatever_is_raised_counts_as_missing(error: type[Exception]) -> None:
    def rule(value: object) -> int:
        raise error

    assert TotalMap(3, 2, rule)(1.0) == 2


@pytest.mark.parametrize("category", [-1, 3, 10**9, None, True, 1.0, "1"])
def test_whatever_leaves_the_categories_counts_as_missing(category: Any) -> None:
    assert TotalMap(3, 2, lambda value: category)(1.0) == 2


def test_what_is_wrong_with_a_map_shows_before_any_value_is_seen() -> None:
    with pytest.raises(Malformed):
        TotalMap(3, 3, lambda value: 0)
    with pytest.raises(Malformed):
        AnswerMap((("a", TotalMap(3, 2, lambda value: 0)),), None, (RawCategory(0, 2), RawCategory(1, 2)))
    for survey in MANIFEST.surveys:
        with pytest.raises(Malformed):
            answer_map(MANIFEST, unchecked(survey, cards=(9,) * len(survey.cards)), {})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["cups", "age"])
def test_a_survey_for_the_cuts_of_categories_or_declared_cuts_has_no_map(name: str) -> None:
    survey = evolve(MANIFEST.surveys[0], kind="quantile", features=(name,), cards=(8,))
    with pytest.raises(Malformed, match="cuts that are known"):
        answer_map(MANIFEST, survey, {})


MAKERS = {
    "anon/protocols/histogram/answers.py": "the total map",
    "anon/protocols/histogram/one_bit.py": "the sign that such an answer is rounded to",
    "peer/data/making/content.py": "a category of the map, read from the message of the child that made it",
}


def test_nothing_else_makes_a_category_out_of_data() -> None:
    """The next way around the map would stand in a file that is not named here."""
    found = set()
    for package in ("anon", "peer"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            tree = ast.walk(ast.parse(text)) if "RawCategory" in text else ()
            calls = (node.func for node in tree if isinstance(node, ast.Call))
            if any(getattr(call, "id", getattr(call, "attr", "")) == "RawCategory" for call in calls):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == set(MAKERS)


# Any study that the parser takes, any data


def documents(manifest: Manifest, draw: Random, members: int = 40) -> tuple[DocumentArrived, ...]:
    """Possible counts of so many members for every binning round; none where the study's cuts cannot be found."""
    try:
        cuts.check(manifest)
    except Malformed:
        return ()
    found = []
    for turn in sorted({one.round for one in manifest.surveys if not asks_label(one)}):
        answers = {
            one.survey: cuts.RoundCounts(
                members, tuple(draw.randrange(members + 1) for _ in range(one.m if one.kind == "quantile" else 1))
            )
            for one in cuts.surveys_of_round(manifest, turn)
        }
        found.append(DocumentArrived(*cuts.place_of(manifest, turn), cuts.body(manifest, turn, answers)))
    return tuple(found)


def hostile_record(manifest: Manifest, draw: Random) -> Record:
    wanted = {one.name: (*one.categories, *one.cuts, *one.range) for one in manifest.features}
    values = {name: drawn_value(draw, near) for name, near in wanted.items() if draw.random() < 0.9}
    return Record(values, drawn_value(draw, (*manifest.label.positive, *manifest.label.negative)))


def outcome(make: Callable[[], Any]) -> Any:
    """The value that is made, or the text of its refusal. Any other error is a fault."""
    try:
        return make()
    except AnonmlError as refusal:
        return str(refusal)


def answered(manifest: Manifest, record: Record, arrived: tuple[DocumentArrived, ...]) -> Any:
    """Slot, survey, m and type of the answer of every row of every slot, but not the category itself."""
    rows = [(slot.slot, row.survey) for slot in manifest.slots for row in slot.rows]
    answers = part_of(manifest).answers(manifest, record, rows, arrived)
    return [(one.slot, one.survey, one.category.m, type(one.category)) for one in answers]


def shown(manifest: Manifest, record: Record) -> Any:
    """The page's lines about the owner's own data: as many, under the same names."""
    snapshot = Snapshot(START, {name: held(value) for name, value in record.values.items()}, held(record.label))
    lines = (
        *own_answers(manifest, snapshot),
        own_label(manifest, snapshot, label_category(manifest.label, snapshot.label)),
    )
    assert all(isinstance(line.counts_as, str) for line in lines)
    return [line.name for line in lines]


def held(value: Any) -> Any:
    """The value as far as a snapshot can hold it."""
    return value if type(value) is str or (type(value) is float and isfinite(value)) else None


def demand_same_for_all(manifest: Manifest, draw: Random) -> None:
    arrived = documents(manifest, draw)
    people = [hostile_record(manifest, draw) for _ in range(PEOPLE)] + [Record({}, None)]
    first, *others = [outcome(lambda record=one: answered(manifest, record, arrived)) for one in people]  # type: ignore[misc]
    assert all(other == first for other in others)
    if outcome(lambda: check_study(manifest)) is not None:
        return
    assert len(first) == len(manifest.surveys)
    first, *others = [shown(manifest, one) for one in people]
    assert all(other == first for other in others)


def demand_explained(manifest: Manifest, draw: Random) -> None:
    """A study that a peer would take is explained, on the page too."""
    if outcome(lambda: check_study(manifest)) is None:
        assert explain(manifest, ANY, Ledger(ANY.lifetime), START).odds
        assert packet_kinds(manifest)


def through_the_map(seed: int, count: int) -> None:
    draw = Random(seed)
    for number, manifest in enumerate(accepted_manifests(seed, count)):
        demand_same_for_all(manifest, draw)
        if number % 10 == 0:
            demand_explained(manifest, draw)


@pytest.mark.parametrize("seed", range(4))
def test_every_answer_to_a_hostile_study_is_there_whatever_the_data(seed: int) -> None:
    """500 manifests for each seed, nine people each."""
    through_the_map(seed, 500)


PIECES = 50


@pytest.mark.soak
@pytest.mark.parametrize("number", range(PIECES))
def test_a_hundred_thousand_hostile_studies(number: int, pytestconfig: pytest.Config) -> None:
    with piece(pytestconfig, "total", number, PIECES):
        through_the_map(1000 + number, 2000)


def test_a_simulation_leaves_out_what_no_study_can_name(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = [f"{age},{left}" for age, left in zip(range(20, 60), [1e300, "1", "0", 2e17] * 10, strict=True)]
    path.write_text("age,left\n" + "\n".join(map(str, rows)))
    assert infer_study(path, "left", ["1"], 1.0).proposal.label.negative == (0.0,)
    with pytest.raises(Malformed, match="label left"):
        infer_study(path, "left", ["1e+300"], 1.0)


def test_texts_are_what_they_are() -> None:
    """Nothing is folded or trimmed: a spelling beside a category is missing, on both sides alike."""
    feature = evolve(MANIFEST.feature("cups"), categories=tuple(text for text in TEXTS if 0 < len(text) <= 400))
    for place, text in enumerate(feature.categories):
        assert feature_category(feature, text, ()) == place
    assert feature_category(feature, None, ()) == len(feature.categories)
