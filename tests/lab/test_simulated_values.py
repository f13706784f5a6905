"""Simulation treats many values or reports at once exactly as the protocol treats each."""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.lab.simulation import draws
from aggregator.lab.simulation.people import FeatureColumn
from aggregator.lab.simulation.run import category_table, level_table
from anon.ldp import build, nano
from anon.ldp.subset import SubsetSelection
from anon.protocols.categories import feature_category, level_category
from anon.study.features import Feature

pytestmark = pytest.mark.slow

VALUES = (None, "x", float("nan"), float("inf"), -5.0, 0.0, 1, 2.5, 3.0, 3.0000001, 9.0, 10.0, 11.0, True, "7")


@pytest.mark.parametrize("missing", ["own", 4.0, 0])
@pytest.mark.parametrize("cuts", [(3.0,), (0.0, 2.5, 9.0)])
def test_tables_of_numbers_are_the_protocols_own_map(missing: str | float, cuts: tuple[float, ...]) -> None:
    column = FeatureColumn(VALUES, np.arange(len(VALUES)))
    feature = Feature("age", "numeric", "Age.", "SELECT 1", missing, (0.0, 10.0), cuts=cuts)
    expected = [feature_category(feature, value, cuts) for value in VALUES]
    assert category_table(feature, column, cuts).tolist() == expected
    assert level_table(feature, column, cuts).tolist() == [level_category(feature, value, cuts) for value in VALUES]
    few = column.take(np.array([3, 0]))
    assert category_table(feature, few, cuts)[few.index].tolist() == [expected[3], expected[0]]


@pytest.mark.parametrize(("m", "epsilon"), [(8, 1.0), (16, 0.5)])
def test_sets_drawn_one_by_one_are_as_those_drawn_together(m: int, epsilon: float) -> None:
    """4,000 draws of each: means within 5 and (co)variances within 6 standard errors; 1 false alarm in 1,000."""
    mechanism = build("subset", m, nano(epsilon))
    assert isinstance(mechanism, SubsetSelection)
    assert mechanism.w > 1
    truth = np.zeros(m, dtype=np.int64)
    truth[:3] = 40, 7, 13
    generator = np.random.default_rng(4)
    one, other = (
        np.array([form(mechanism, truth, generator) for _ in range(4000)])
        for form in (draws._sets_one_by_one, draws._set_counts)
    )
    assert set(one.sum(axis=1)) == {60 * mechanism.w}
    deviation = np.sqrt((one.var(axis=0) + other.var(axis=0)) / 4000)
    assert np.all(np.abs(one.mean(axis=0) - other.mean(axis=0)) < 5 * deviation)
    first, second = np.cov(one.T), np.cov(other.T)
    scale = np.sqrt(np.outer(np.diag(second), np.diag(second)))
    assert np.abs((first - second) / scale).max() < 6 * np.sqrt(2 * 2 / 4000)
