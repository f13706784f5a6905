"""Faults that were planted in the learner once and went unnoticed: one test for each."""

from __future__ import annotations

import os

import numpy as np
import pytest
from attrs import evolve

from aggregator.lab.simulation.simulate import NO_KEYS
from aggregator.protocols.additive import noise_test as chance
from aggregator.protocols.additive.noise_test import WhitenedMeasurements, p_value
from aggregator.protocols.additive.reconstruct import Histogram
from aggregator.protocols.additive.scoring import _auc_slope, _f1_slope, auc_score, f1_score
from aggregator.protocols.histogram.classifiers import EXTREME, soft
from aggregator.protocols.histogram.cohorts import tally_cohorts
from aggregator.protocols.histogram.part import HistogramPart
from anon.ldp import RawCategory
from anon.protocols.resolve import resolve
from anon.protocols.sortition import in_score_cohort
from anon.wire.packets import Occasion, PublishedPacket
from tests.support.protocols import parse_proposal
from tests.support.studies import income_study

SCORE_VALUE = bytes(range(32))
PART = HistogramPart()


def test_no_report_both_trains_and_scores() -> None:
    text = income_study('kind = "one-packet"\nepsilon = 2.0\nsubsets = [["sex"]]')
    manifest = resolve(parse_proposal(text), NO_KEYS, 0)
    manifest = evolve(manifest, learning=evolve(manifest.learning, score_share=0.4))
    (survey,) = [one for one in manifest.surveys if one.kind == "histogram"]
    mechanism = survey.build()
    packets = [
        PublishedPacket(
            Occasion(bytes(32), 0, 0),
            survey.survey,
            bytes(mechanism.perturb(RawCategory(0, survey.m), os.urandom)),
            (),
            number.to_bytes(48, "big"),
        )
        for number in range(400)
    ]
    scoring = sum(in_score_cohort(SCORE_VALUE, packet.token, 0.4) for packet in packets)
    cohorts = tally_cohorts(
        manifest,
        {
            one.survey: PART.tally(manifest, one, packets if one == survey else (), SCORE_VALUE)
            for one in manifest.surveys
        },
    )
    assert 100 < scoring < 220  # 4 in 10; fails by chance less than once in 10^8
    assert (cohorts.train[0].n, cohorts.score[0].n) == (400 - scoring, scoring)


def _histogram(shares: np.ndarray, n: int = 10**6) -> Histogram:
    return Histogram(("a",), (len(shares) // 2,), n, shares, np.eye(len(shares)) * 1e-12)


def test_the_stated_bound_of_a_contrast_is_two_in_a_hundred() -> None:
    rate, shares = 0.3, np.array([0.5, 0.0, 0.2, 0.3])  # the first cell holds no positive label at all
    contrast = soft(_histogram(shares), rate, frozenset())
    lowest = np.log(0.02 / 0.98) - np.log(rate / (1 - rate))
    assert EXTREME == 0.02
    assert contrast[0] == pytest.approx(lowest)


def _numerical(score, cells: np.ndarray) -> np.ndarray:
    slope, step = np.zeros_like(cells), 1e-7
    for index in np.ndindex(*cells.shape):
        above, below = cells.copy(), cells.copy()
        above[index] += step
        below[index] -= step
        slope[index] = (score(above) - score(below)) / (2 * step)
    return slope


def test_the_slopes_behind_the_errors_are_derivatives_of_the_scores() -> None:
    cells, rate = np.array([[0.25, 0.05], [0.2, 0.1], [0.15, 0.25]]), 0.4
    contrast = np.array([-0.8, 0.1, 1.2])
    votes = contrast > 0
    assert _auc_slope(contrast, cells, rate) == pytest.approx(
        _numerical(lambda at: auc_score(contrast, at, rate), cells), abs=1e-5
    )
    assert _f1_slope(votes, cells, rate) == pytest.approx(
        _numerical(lambda at: f1_score(votes, at, rate), cells), abs=1e-5
    )


def test_the_observed_study_counts_among_the_draws() -> None:
    """A p-value is (1 + draws at least as extreme) / (1 + draws): never 0, and a draw equal to the study counts."""
    strengths = np.array([1.0, 0.5, 2.0])
    drawn = chance._standard_normal(3)
    averages = chance._average(drawn, WhitenedMeasurements(drawn[0], strengths, np.eye(3)), [1.0], ())
    most = int(np.argmax(averages))
    assert averages[most] < chance._CERTAIN
    seen = WhitenedMeasurements(drawn[most], strengths, np.eye(3))
    assert p_value(seen, [1.0]) == pytest.approx(2 / (1 + chance._DRAWS))
    beyond = WhitenedMeasurements(drawn[most] * 1.01, strengths, np.eye(3))
    assert p_value(beyond, [1.0]) == pytest.approx(1 / (1 + chance._DRAWS))
