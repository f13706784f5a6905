"""A design's name and an epsilon are what the owner's policy and eyes go by: neither may say less than the slots do."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from aggregator.report.page import odds_moved as said_in_report
from anon.errors import Malformed
from anon.ldp import build, nano, odds_moved
from anon.protocols.histogram.asked import asks_label
from anon.study.cost import attribute_epsilon, total_epsilon
from anon.study.manifest import Manifest, Survey
from anon.study.slots import Row, Slot
from peer.app import PeerApp
from peer.rules.consent import Policy, explain
from peer.rules.ledger import Ledger
from peer.web.rendering import environment
from tests.support.clock import START
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator, peer
from tests.support.protocols import parse_manifest

ANY = Policy(lifetime=10**13, max_epsilon=10**13, minimum_cohort=3)


def relaid(manifest: Manifest, design: str, surveys: tuple[Survey, ...], slots: tuple[Slot, ...]) -> Manifest:
    """The same study with other surveys and slots, consistent in every figure."""
    return evolve(
        manifest,
        design=design,
        surveys=tuple(evolve(one, survey=number) for number, one in enumerate(surveys)),
        slots=slots,
        epsilon=total_epsilon(surveys, slots),
        epsilon_per_attribute=attribute_epsilon(surveys, slots, asks_label),
        report_size=max(one.build().report_size for one in surveys),
    )


def repeated(manifest: Manifest, slots: int, epsilon: float, design: str = "paper") -> Manifest:
    """One histogram survey over one feature in each of so many slots."""
    asked = next(one for one in manifest.surveys if one.kind == "histogram")
    built = build("krr", asked.m, nano(epsilon))
    dear = evolve(asked, mechanism="krr", p=built.p, q=built.q, epsilon=built.epsilon)
    return relaid(manifest, design, (dear,) * slots, tuple(Slot(at, (Row(at, 1),)) for at in range(slots)))


def spread(manifest: Manifest, number: int) -> Manifest:
    """So many features, each in a histogram slot of its own at epsilon 20."""
    first = next(one for one in manifest.features if one.kind == "categorical")
    asked = next(one for one in manifest.surveys if one.features == (first.name,) and one.kind == "histogram")
    built = build("krr", asked.m, nano(20))
    names = [f"f{at}" for at in range(number)]
    surveys = tuple(
        evolve(asked, survey=at, features=(name,), mechanism="krr", p=built.p, q=built.q, epsilon=built.epsilon)
        for at, name in enumerate(names)
    )
    slots = tuple(Slot(at, (Row(at, 1),)) for at in range(number))
    widened = manifest.features + tuple(evolve(first, name=name) for name in names)
    return relaid(evolve(manifest, features=widened), "paper", surveys, slots)


def read(manifest: Manifest) -> Manifest:
    """As everybody reads it who knows the protocols."""
    return parse_manifest(manifest.to_bytes())


def test_one_packet_means_one_packet() -> None:
    """A policy that allows "one-packet" alone was passed by a study of 45 packets under that name."""
    with pytest.raises(Malformed, match="one-packet has one slot, got 45"):
        read(repeated(FakeAggregator.with_study(DECLARED).manifest, 45, 2.0, "one-packet"))


def test_a_slot_of_thresholds_is_no_single_packet() -> None:
    manifest = FakeAggregator.with_study(PAPER).manifest
    rounds = tuple(one for one in manifest.surveys if one.kind == "threshold")
    with pytest.raises(Malformed, match="one round"):
        read(relaid(manifest, "one-packet", rounds, (Slot(0, tuple(Row(at, 1) for at in range(len(rounds)))),)))


@pytest.mark.parametrize("flaw", ["a feature in two slots", "two binning slots", "a slot of both", "no histogram"])
def test_the_papers_design_is_its_own(flaw: str) -> None:
    manifest = FakeAggregator.with_study(BINNED).manifest
    level = next(one for one in manifest.surveys if one.kind == "quantile")
    table = next(one for one in manifest.surveys if one.features == ("cups",))
    other = next(one for one in manifest.surveys if one.features == ("age",) and one.kind == "histogram")
    laid = {
        "a feature in two slots": (table, table),
        "two binning slots": (table, level, level),
        "a slot of both": (table, other, level),
        "no histogram": (level,),
    }[flaw]
    slots = [Slot(at, (Row(at, 1),)) for at in range(len(laid))]
    if flaw == "a slot of both":
        slots = [Slot(0, (Row(0, 1),)), Slot(1, (Row(1, 1), Row(2, 1)))]
    with pytest.raises(Malformed, match="paper"):
        read(relaid(manifest, "paper", laid, tuple(slots)))


def test_a_design_that_nobody_knows_is_refused_with_what_to_do() -> None:
    with pytest.raises(Malformed, match="update this program"):
        read(evolve(FakeAggregator.with_study().manifest, design="two-packets"))


def test_what_staff_publish_is_what_its_name_says() -> None:
    for text in (DECLARED, BINNED, PAPER):
        manifest = FakeAggregator.with_study(text).manifest
        assert parse_manifest(manifest.to_bytes()) == manifest


def test_the_name_that_a_policy_sees_cannot_be_forged_in_the_bytes() -> None:
    manifest = FakeAggregator.with_study(PAPER).manifest
    with pytest.raises(Malformed, match="one-packet has one slot"):
        parse_manifest(manifest.to_bytes().replace(b"fdesignepaper", b"fdesignjone-packet"))


@pytest.mark.parametrize("number", [40, 54])
def test_the_dearest_study_is_explained(number: int) -> None:
    """Epsilon 800 and 1,080: exp() of it is no float, and the consent screen must still say what it means."""
    manifest = parse_manifest(spread(FakeAggregator.with_study(DECLARED).manifest, number).to_bytes())
    assert manifest.epsilon > 799 * 10**9
    sheet = explain(manifest, ANY, Ledger(ANY.lifetime), START)
    assert any("no protection" in statement for statement in sheet.statements)
    assert "no protection" in said_in_report(manifest.epsilon)
    assert "no protection" in environment().from_string("{{ e | odds_moved }}").render(e=manifest.epsilon)


async def test_its_look_raises_nothing_either(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study(DECLARED)
    dear = spread(aggregator.manifest, 40)
    aggregator = evolve(aggregator, manifest=dear, chain=[], bodies=[])
    aggregator.publish("manifest", dear.to_bytes())
    app: PeerApp = peer(tmp_path, aggregator)
    sheet = await app.look(aggregator.invite)
    assert any("more than the" in objection for objection in sheet.objections)
    app.close()


@pytest.mark.parametrize(("epsilon", "said"), [(0, "1"), (10**9, "2.72"), (2 * 10**9, "7.39"), (10**10, "22,100")])
def test_the_factor_is_never_said_smaller_than_it_is(epsilon: int, said: str) -> None:
    assert odds_moved(epsilon) == f"move by at most a factor of {said}"
