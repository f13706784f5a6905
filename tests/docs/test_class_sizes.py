"""The page about class sizes: its rule of thumb holds in its own tables, and the benchmark writes such tables."""

from __future__ import annotations

import re

import pytest

from aggregator.lab.planning.trials import plan_of
from aggregator.lab.simulation.people import people_from_rows
from anon.ldp import nano, odds_moved
from anon.protocols.sum.shared import SumShared
from benchmarks.class_sizes import (
    EPSILONS,
    FEATURES,
    HOPELESS,
    SIZES,
    SUMMED_SIZES,
    WORKS,
    asking,
    measure,
    ruling,
    summing,
    tables,
)
from benchmarks.class_sizes import STUDY as CENSUS
from examples.census.data import COLUMNS
from tests.docs.repository import ROOT
from tests.support.protocols import load_proposal

PAGE = ROOT / "docs" / "staff" / "class-size.md"


Shares = dict[tuple[int, float], float]


def shown(text: str, many: str, sizes: tuple[int, ...] = SIZES, asking: str = "Asking") -> Shares:
    """The shares of studies that were shown to beat a guess, by size and epsilon."""
    table = text.partition(f"**{asking} about {many} features: in how many")[2].partition("**Asking")[0]
    table = table.partition("**Two tellers")[0]
    found = {
        (int(size.replace(",", "")), epsilon): int(share) / 100
        for size, cells in re.findall(r"^\| ([\d,]+) \|(.+)\|$", table, re.MULTILINE)
        for epsilon, share in zip(EPSILONS, re.findall(r"(\d+)%", cells), strict=True)
    }
    assert len(found) == len(sizes) * len(EPSILONS)
    return found


@pytest.mark.parametrize(("many", "asked"), [("three", "three features that matter"), ("eleven", "eleven features")])
def test_the_rule_of_thumb_is_what_was_measured(many: str, asked: str) -> None:
    """Each size that it names is the first that works."""
    text = PAGE.read_text("utf-8")
    found = shown(text, many)
    odds = dict(re.findall(r"epsilon (\d) \(odds × ([\d.]+)\)", text))
    assert odds and all(str(odds_moved(nano(int(epsilon)))).endswith(f" {factor}") for epsilon, factor in odds.items())
    summed = shown(text, many, SUMMED_SIZES, "Two tellers, asking")
    assert shown(text, many, SUMMED_SIZES, "Two tellers and declared directions, asking")
    told = f"{asked}, with two tellers"
    for row, shares in ((asked, found), (told, summed)):
        sizes = r"from ([\d,]+) people \| from ([\d,]+) \| from ([\d,]+)"
        cells = re.search(rf"^\| {row} \| {sizes} \|$", text, re.MULTILINE)
        assert cells
        for epsilon, size in zip((4.0, 2.0, 1.0), cells.groups(), strict=True):
            works = min(one for one, at in shares if at == epsilon and shares[one, at] >= WORKS)
            assert int(size.replace(",", "")) == works
    assert text.index("1. **Say what you believe.**") < text.index("2. **Find two tellers.**")
    assert all(summed[50, epsilon] < HOPELESS for epsilon in EPSILONS)
    assert all(found[50, epsilon] < HOPELESS for epsilon in EPSILONS)


@pytest.mark.slow
def test_the_row_of_a_belief_is_the_figure_of_consent_form_and_report() -> None:
    """However many features are asked about."""
    study, cell = load_proposal(CENSUS), r"from ([\d,]+)(?: people)? \| from ([\d,]+) \| from ([\d,]+)"
    told = "any features, with two tellers, from what you believe"
    row = re.search(rf"^\| {told} \| {cell} \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert row
    for names in FEATURES.values():
        asked = names or tuple(feature.name for feature in study.features)
        found = [SumShared().enough(plan_of(ruling(study, asked, epsilon)).manifest) for epsilon in (4.0, 2.0, 1.0)]
        assert found == [int(size.replace(",", "")) for size in row.groups()]


@pytest.mark.slow
def test_a_group_that_tellers_add_up_for_is_measured_alike() -> None:
    """The same made-up people, in a group and at an epsilon at which nothing is found without tellers."""
    blank = dict.fromkeys(COLUMNS)
    rows = [blank | {"education_num": 16 * (n % 2), "income": (">50K", "<=50K")[n % 2]} for n in range(400)]
    study = summing(load_proposal(CENSUS), ("education_num",), 1.0)
    people = people_from_rows(study, rows)
    assert study.protocol == "sum" and len(study.tellers) == 2 and not study.binned
    assert measure(study, people, people, 200, 6, [1])["shown"] == 1
    alone = asking(load_proposal(CENSUS), ("education_num",), 0.25)
    assert measure(alone, people, people, 50, 6, [1])["shown"] != 1


def test_a_measured_study_becomes_a_table() -> None:
    """Of people made up so that schooling decides all: even few of them are heard at a large epsilon."""
    blank = dict.fromkeys(COLUMNS)
    rows = [blank | {"education_num": 16 * (n % 2), "income": (">50K", "<=50K")[n % 2]} for n in range(400)]
    study = asking(load_proposal(CENSUS), ("education_num",), 4.0)
    people = people_from_rows(study, rows)
    found = measure(study, people, people, 300, 6, [1])
    assert found["shown"] == 1 and found["auc_mean"] == 1 and found["accuracy_low"] == 1
    every = [
        {"features": many, "people": size, "epsilon": epsilon, **found, "rule_auc": 0.75}
        for many in ("eleven", "three")
        for size in SIZES
        for epsilon in EPSILONS
    ]
    text = tables(every, 0.75)
    assert text.count("| 100%, works | 100%, works | 100%, works | 100%, works |") == 2 * len(SIZES)
    assert text.count("| 1.00 (1.00 to 1.00) | 0.75 |") == 2 * len(SIZES) and "right in 75.0%" in text


def test_a_study_that_starts_from_belief_knows_the_declared_directions() -> None:
    study = ruling(load_proposal(CENSUS), ("age", "sex", "marital_status"), 1.0)
    told = {feature.name: feature.expects for feature in study.features}
    assert study.design.kind == "rule" and len(study.tellers) == 2
    assert told == {"age": (1,), "sex": (-1, 1), "marital_status": (1, -1)}
