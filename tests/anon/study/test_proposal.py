"""study.toml: what is accepted, and that every fault is named by its key, with what was expected and what came."""

from __future__ import annotations

import pytest

from anon.errors import Malformed
from tests.support.protocols import parse_proposal

GOOD = """
version = 1
title = "Income"
purpose = "To learn what goes with a high income."
contact = "staff@example.org"

[tables]
person = ["age", "sex", "income"]

[label]
name = "income"
description = "Whether you earn more than 50K"
query = "SELECT income FROM person"
positive = [">50K"]
negative = ["<=50K"]
missing = "negative"

[[features]]
name = "age"
kind = "numeric"
description = "Your age in years"
query = "SELECT age FROM person"
range = [17, 90]
bins = 4
missing = "own"

[[features]]
name = "sex"
kind = "categorical"
description = "Your sex"
query = "SELECT sex FROM person"
categories = ["Female", "Male"]
missing = "Male"

[design]
kind = "one-packet"
epsilon = 2.0

[schedule]
enrol = "7d"
settle = "1h"
binning = "1d"
collect = "3d12h"

[cohort]
minimum = 100
"""


def test_a_whole_study_loads_with_defaults() -> None:
    proposal = parse_proposal(GOOD)
    assert proposal.schedule.collect == 3 * 86400 + 12 * 3600
    assert [feature.cardinality for feature in proposal.features] == [5, 2]
    assert proposal.binned == ("age",)
    assert proposal.learning.ensemble == "soft"


def test_a_direction_is_a_sign_or_one_for_each_category() -> None:
    learned = GOOD + '[learning]\nclassifier = "additive"\n'
    up = learned.replace('missing = "own"', 'missing = "own"\nexpects = 1')
    both = up.replace('missing = "Male"', 'missing = "Male"\nexpects = [-1, 0]')
    assert [one.expects for one in parse_proposal(both).features] == [(1,), (-1, 0)]
    nothing = both.replace("expects = 1", "expects = 0").replace("[-1, 0]", "[0, 0]")
    assert [one.expects for one in parse_proposal(nothing).features] == [(), ()]


FAULTS = [
    (
        "unknown key at the top",
        'title = "Income"',
        'title = "Income"\ncolour = "red"',
        ["study.toml.colour: unknown key"],
    ),
    (
        "unknown key in a feature",
        'kind = "categorical"',
        'kind = "categorical"\nweight = 3',
        ["features[1].weight: unknown"],
    ),
    ("unknown key in the schedule", 'settle = "1h"', 'settle = "1h"\nnap = "1h"', ["schedule.nap: unknown key"]),
    ("epsilon as text", "epsilon = 2.0", 'epsilon = "two"', ["design.epsilon", "expected a number", "'two'"]),
    ("epsilon zero", "epsilon = 2.0", "epsilon = 0", ["design.epsilon", "above 0"]),
    ("epsilon not finite", "epsilon = 2.0", "epsilon = nan", ["design.epsilon", "finite"]),
    ("epsilon a truth value", "epsilon = 2.0", "epsilon = true", ["design.epsilon", "expected a number", "True"]),
    ("unknown design", 'kind = "one-packet"', 'kind = "two-packet"', ["design", "one-packet, paper", "two-packet"]),
    ("a bad duration", 'enrol = "7d"', 'enrol = "a week"', ["schedule", "enrol", "7d", "'a week'"]),
    ("an empty duration", 'enrol = "7d"', 'enrol = ""', ["schedule", "enrol"]),
    ("no label", "[label]", "[labels]", ["study.toml.labels: unknown key", "study.toml.label: required"]),
    ("range upside down", "range = [17, 90]", "range = [90, 17]", ["features[0]", "range", "minimum < maximum"]),
    ("bins and cuts", "bins = 4", "bins = 4\ncuts = [30.0]", ["features[0]", "exactly one of the two"]),
    ("cuts outside", "bins = 4", "cuts = [200.0]", ["features[0]", "cuts"]),
    ("cuts unsorted", "bins = 4", "cuts = [40.0, 30.0]", ["features[0]", "increasing"]),
    ("missing not a category", 'missing = "Male"', 'missing = "None"', ["features[1]", "missing"]),
    ("category twice", '["Female", "Male"]', '["Male", "Male"]', ["features[1]", "different"]),
    ("one feature name twice", 'name = "sex"', 'name = "age"', ["no name twice"]),
    ("a name with blanks", 'name = "sex"', 'name = "the sex"', ["features[1].name", "small letters"]),
    ("an empty title", 'title = "Income"', 'title = " "', ["study.toml.title", "expected some text"]),
    ("version", "version = 1", "version = 2", ["version", "expected 1"]),
    ("no binning window", 'binning = "1d"\n', "", ["schedule.binning", "age"]),
    ("minimum of one", "minimum = 100", "minimum = 1", ["cohort", "minimum"]),
    ("admission", "minimum = 100", 'minimum = 100\nadmission = "all"', ["cohort.admission", "allow-list"]),
    ("a value on both sides", 'negative = ["<=50K"]', 'negative = [">50K"]', ["label", "common value"]),
    (
        "a direction nothing learns from",
        'missing = "own"',
        'missing = "own"\nexpects = 1',
        ["learning.classifier", "additive", "age"],
    ),
    ("a direction of two", 'missing = "own"', 'missing = "own"\nexpects = 2', ["features[0]", "expects", "1, -1 or 0"]),
    ("signs for too few", 'missing = "Male"', 'missing = "Male"\nexpects = 1', ["features[1]", "expects", "2 numbers"]),
    (
        "a sign in words",
        'missing = "own"',
        'missing = "own"\nexpects = "up"',
        ["features[0].expects", "expected a list"],
    ),
    (
        "a sign that is true",
        'missing = "own"',
        'missing = "own"\nexpects = [true]',
        ["features[0].expects", "whole number"],
    ),
    ("subset of strangers", "epsilon = 2.0", 'epsilon = 2.0\nsubsets = [["height"]]', ["design.subsets"]),
]


@pytest.mark.parametrize(("name", "old", "new", "expected"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_each_fault_is_named(name: str, old: str, new: str, expected: list[str]) -> None:
    assert old in GOOD
    with pytest.raises(Malformed) as caught:
        parse_proposal(GOOD.replace(old, new, 1))
    for part in expected:
        assert part in str(caught.value)


def test_all_faults_come_at_once() -> None:
    broken = GOOD.replace("epsilon = 2.0", "epsilon = -1").replace('enrol = "7d"', "enrol = 7")
    with pytest.raises(Malformed) as caught:
        parse_proposal(broken)
    assert "design.epsilon" in str(caught.value)
    assert "enrol" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["title = ", "a=" + "[" * 100_000, "version = " + "9" * 5000], ids=["cut", "deep", "long"]
)
def test_text_that_is_not_toml(text: str) -> None:
    with pytest.raises(Malformed, match="not TOML"):
        parse_proposal(text)


def test_combinations_without_end_are_refused_before_any_is_made() -> None:
    """The desk checks while somebody types, in the process that serves: sixty features by six are fifty million."""
    sex = GOOD[GOOD.index('[[features]]\nname = "sex"') : GOOD.index("[design]")]
    many = "".join(sex.replace('name = "sex"', f'name = "sex{number}"') for number in range(60))
    text = GOOD.replace("epsilon = 2.0", "epsilon = 2.0\nsubset_size = 6").replace("[design]", f"{many}[design]")
    with pytest.raises(Malformed, match="at most 4000 combinations of features, got"):
        parse_proposal(text)
