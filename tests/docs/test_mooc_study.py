"""The course study over generated logs: its queries work in a peer's sandbox, and its label means something.

The statistical tests have fixed seeds. Their levels say how often a correct generator would fail under another seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import pytest

from anon.ldp import choose, nano
from anon.protocols.histogram.sections import OnePacket
from anon.study.proposal import Proposal
from examples.mooc.features import STUDY, Record, evaluate
from examples.mooc.generate import Student, generate
from peer.rules.checks import check_queries
from tests.support.protocols import load_proposal

pytestmark = pytest.mark.slow

STUDENTS = 160


@pytest.fixture(scope="module")
def proposal() -> Proposal:
    return load_proposal(STUDY)


@pytest.fixture(scope="module")
def records(proposal: Proposal) -> list[Record]:
    return evaluate(proposal, generate(STUDENTS, seed=3))


@pytest.fixture(scope="module")
def shuffled(proposal: Proposal) -> list[Record]:
    return evaluate(proposal, generate(STUDENTS, seed=3, shuffle_labels=True))


def test_the_study_is_as_announced(proposal: Proposal) -> None:
    assert len(proposal.features) == 13
    assert {feature.kind for feature in proposal.features} == {"numeric"}
    assert isinstance(proposal.design, OnePacket)
    assert proposal.design.epsilon == 4.0
    assert not proposal.binned
    asked = {name for subset in proposal.design.subsets for name in subset}
    assert asked == {feature.name for feature in proposal.features}
    assert max(choose(2 * 2**len(subset), nano(4.0)).m for subset in proposal.design.subsets) <= 8


def test_no_query_is_refused(proposal: Proposal) -> None:
    check_queries(proposal.features, proposal.label, {table.name: table.columns for table in proposal.tables})


def test_features_are_there_and_in_range_for_nearly_everyone(proposal: Proposal, records: list[Record]) -> None:
    for feature in proposal.features:
        values = [record.values[feature.name] for record in records]
        numbers = [value for value in values if isinstance(value, float)]
        assert len(numbers) >= 0.95 * STUDENTS, feature.name
        assert sum(feature.range[0] <= number <= feature.range[1] for number in numbers) >= 0.95 * STUDENTS, (
            feature.name
        )
        assert len(set(numbers)) > 5, feature.name


def test_every_declared_cut_divides_the_cohort(proposal: Proposal, records: list[Record]) -> None:
    """True shares above are .36 to .55; .25 is 2.9 standard errors of 160 students away: false alarm below 1 %."""
    for position, feature in enumerate(proposal.features):
        above = sum(record.categories[position] for record in records) / STUDENTS
        assert 0.25 < above < 0.75, feature.name


def test_a_known_log_gives_known_values(proposal: Proposal) -> None:
    def line(time: str, kind: str, event: str, source: str = "server", session: str = "one") -> str:
        return (
            f'{{"time": "{time}+00:00", "session": "{session}", "event_source": "{source}", "event_type": "{kind}", '
            f'"event": {event}}}'
        )

    def check(time: str, problem: str, success: str) -> str:
        return line(time, "problem_check", f'{{"problem_id": "{problem}", "success": "{success}"}}')

    lines = (
        line("2024-02-05T10:00:00.000000", "play_video", '"{\\"id\\": \\"v\\"}"', "browser"),
        line("2024-02-05T11:59:00.000000", "problem_check", '"input_a=1"', "browser"),
        check("2024-02-05T12:00:00.000000", "a", "incorrect"),
        check("2024-02-05T14:00:00.000000", "a", "correct"),
        line("2024-03-12T10:00:00.000000", "page_close", '""', "browser", "two"),
        check("2024-03-12T11:00:00.000000", "b", "incorrect"),
        line("2024-03-12T11:30:00.000000", "edx.forum.searched", "{}"),
        line("2024-03-12T12:00:00.000000", "edx.forum.comment.created", "{}", session="two"),
        line("2024-03-12T12:01:00.000000", "seq_next", '"{}"', "browser", "two"),
        check("2024-03-18T00:00:00.000000", "c", "correct"),
        line("2024-04-08T00:00:00.000000", "play_video", '"{}"', "browser"),
    )
    (stayed,) = evaluate(proposal, [Student("one", lines)])
    hours = [10, 11 + 59 / 60, 12, 14, 10, 11, 11.5, 12, 12 + 1 / 60]
    mean = sum(hours) / len(hours)
    expected = {
        "attempts": 3, "problems_tried": 2, "problems_correct": 1, "share_correct": 1 / 3, "hours_to_solve": 2,
        "event_time_variance": sum((hour - mean) ** 2 for hour in hours) / (len(hours) - 1), "longest_gap": 36,
        "active_days": 2, "videos_played": 1, "forum_posts": 1, "navigation": 1, "sessions": 2, "recent_days": 1,
    }
    assert stayed.values == pytest.approx(expected)
    assert stayed.label == 0
    (left,) = evaluate(proposal, [Student("one", lines[:-1])])
    assert left.label == 1
    assert left.values == stayed.values
    (early,) = evaluate(proposal, [Student("one", lines[:4])])
    assert early.values["longest_gap"] == 42


def test_a_log_without_answers_ends_in_declared_categories(proposal: Proposal) -> None:
    line = (
        '{"time": "2024-03-12T10:00:00+00:00", "session": "s", "event_source": "browser", "event_type": "page_close", '
    )
    (record,) = evaluate(proposal, [Student("one", (line + '"event": ""}',))])
    absent = {name for name, value in record.values.items() if value is None}
    assert absent == {"share_correct", "hours_to_solve", "event_time_variance"}
    assert len(record.categories) == 13


def test_dropout_is_neither_rare_nor_the_rule(records: list[Record]) -> None:
    """True share about .38; false alarm of 160 students: 4e-4 (2e-4 on each side, normal)."""
    assert 0.24 < _share(records) < 0.52


def test_behaviour_tells_who_leaves(proposal: Proposal, records: list[Record]) -> None:
    """True AUC of the count of bins that point to leaving is about .84; s.e. .033: false alarm below 1e-4."""
    assert _auc(_leanings(proposal, records), [record.label for record in records]) > 0.7


def test_shuffling_leaves_weeks_one_to_six_and_the_number_of_dropouts(
    records: list[Record], shuffled: list[Record]
) -> None:
    assert [record.values for record in records] == [record.values for record in shuffled]
    assert _share(records) == _share(shuffled)
    assert [record.label for record in records] != [record.label for record in shuffled]


def test_shuffled_labels_are_independent_of_every_feature(proposal: Proposal, shuffled: list[Record]) -> None:
    """Rank tests of 13 features and of their sum, each at 3.9 standard errors: false alarm below 14 x 1e-4."""
    labels = [record.label for record in shuffled]
    positives = sum(labels)
    error = math.sqrt((STUDENTS + 1) / (12 * positives * (STUDENTS - positives)))
    scores = [[record.categories[position] for record in shuffled] for position in range(len(proposal.features))]
    for score in [*scores, _leanings(proposal, shuffled)]:
        assert abs(_auc(score, labels) - 0.5) < 3.9 * error


def _share(records: Sequence[Record]) -> float:
    return sum(record.label for record in records) / len(records)


def _leanings(proposal: Proposal, records: Sequence[Record]) -> list[int]:
    """How many features lie on the side where students leave more often: many hours, much variance, long gaps."""
    risky = {"hours_to_solve", "event_time_variance", "longest_gap"}
    signs = [1 if feature.name in risky else -1 for feature in proposal.features]
    return [sum(sign * found for sign, found in zip(signs, record.categories, strict=True)) for record in records]


def _auc(scores: Sequence[float], labels: Sequence[int]) -> float:
    left = [score for score, label in zip(scores, labels, strict=True) if label]
    stayed = [score for score, label in zip(scores, labels, strict=True) if not label]
    wins = sum((high > low) + 0.5 * (high == low) for high, low in product(left, stayed))
    return wins / (len(left) * len(stayed))
