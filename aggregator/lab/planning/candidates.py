"""The designs that a plan compares: what is asked, in how many bins, with which cuts and centre."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from math import log1p, prod

from attrs import evolve, frozen

from aggregator.lab.simulation.pairs import tried
from anon.errors import InvalidValue
from anon.ldp import MAX_CATEGORIES
from anon.protocols.histogram.sections import OnePacket, Paper
from anon.study.features import Feature, Learning
from anon.study.proposal import Proposal

BINS = (2, 4, 8)

LEVELS = 16
"""Into so many the range is divided where cuts are looked for, or more if the study says so: two a bin at least."""

MOST_BINS_OF_BITS = 4
DECLARED_RULE = "the declared rule"
_FINDING = 86_400
"""Seconds at most for finding where scores lie, in a study that finds no cuts."""


@frozen
class Candidate:
    """A design with a name for people."""

    name: str
    proposal: Proposal


def candidates(proposal: Proposal, epsilon: float) -> tuple[Candidate, ...]:
    """Every design worth trying at this record-level epsilon: one packet per peer with the whole budget.

    The bins of features whose cuts are found privately are varied. So are those of features with declared cuts that
    binning could find as well (`opened`): a finer answer may be worth the peers who only bin. A centre of 1/2 is tried
    where the study knows how common categories are, and the declared rule where it can be asked (`ruled`).
    """
    found: list[Candidate] = []
    for bins in BINS if proposal.binned else (0,):
        binned = _with_bins(proposal, bins) if bins else proposal
        found += _asked(binned, epsilon, f", {bins} bins" if bins else "", bins)
    finer = opened(proposal)
    if finer != proposal:
        for bins in BINS[1:]:
            found += _asked(_with_bins(finer, bins), epsilon, f", {bins} bins, no cuts declared", bins)
    with suppress(InvalidValue):
        found.append(Candidate(DECLARED_RULE, ruled(proposal, epsilon)))
    return tuple(found)


def ruled(proposal: Proposal, epsilon: float) -> Proposal:
    """The study whose model starts from the declared directions. Where no time is set to find the middle of scores, it
    takes as long as collection, and at most a day. Raises `InvalidValue` without two directions or with cuts to find.
    """
    schedule = proposal.schedule
    timed = evolve(schedule, binning=schedule.binning or min(schedule.collect, _FINDING))
    design = OnePacket("one-packet", epsilon, asks="rule")
    return evolve(proposal, design=design, learning=additive(proposal), schedule=timed)


def opened(proposal: Proposal) -> Proposal:
    """The study without those declared cuts that lie where binning looks: inside the range, no nearer to an end than
    one of its levels. The others say something about the range that even levels cannot see. A study whose schedule
    has no time for binning stays as it is."""
    if proposal.schedule.binning == 0:
        return proposal
    bins = max(BINS)
    features = tuple(
        evolve(feature, cuts=(), shares=(), bins=bins) if _findable(feature, LEVELS) else feature
        for feature in proposal.features
    )
    return evolve(proposal, features=features)


def _findable(feature: Feature, levels: int) -> bool:
    if feature.kind != "numeric" or not feature.cuts:
        return False
    low, high = (_scaled(feature, end) for end in feature.range)
    places = [(_scaled(feature, cut) - low) / (high - low) for cut in feature.cuts]
    return min(places) >= 1 / levels and max(places) <= 1 - 1 / levels


def _scaled(feature: Feature, value: float) -> float:
    return log1p(value) if feature.scale == "log" else value


def _asked(proposal: Proposal, epsilon: float, suffix: str, bins: int) -> Iterator[Candidate]:
    """Bits around the base rate and around 1/2, tables of one feature and of two."""
    given = proposal.design
    share = given.binning_share if isinstance(given, OnePacket) else 0.1
    levels = max(given.binning_levels, LEVELS) if isinstance(given, OnePacket | Paper) else LEVELS
    plain = OnePacket("one-packet", epsilon, binning_share=share, binning_levels=levels)
    if bins <= MOST_BINS_OF_BITS:
        bits = evolve(plain, asks="bits")
        yield Candidate(f"one-bit packets{suffix}", _with(proposal, bits))
        if any(feature.shares for feature in proposal.features):
            yield Candidate(f"one-bit packets around 1/2{suffix}", _with(proposal, evolve(bits, centre=0.5)))
    yield Candidate(f"tables of one feature{suffix}", _with(proposal, plain))
    pairs = combinations([feature.cardinality for feature in proposal.features], 2)
    largest = max((2 * prod(pair) for pair in pairs), default=0)
    if tried(len(proposal.features), epsilon) and largest <= MAX_CATEGORIES:
        yield Candidate(f"tables of two features{suffix}", _with(proposal, evolve(plain, subset_size=2)))


def _with_bins(proposal: Proposal, bins: int) -> Proposal:
    features = tuple(
        evolve(feature, bins=bins) if feature.binned_privately else feature for feature in proposal.features
    )
    return evolve(proposal, features=features)


def _with(proposal: Proposal, design: OnePacket) -> Proposal:
    return evolve(proposal, design=design, learning=additive(proposal))


def additive(proposal: Proposal) -> Learning:
    """The learner of all candidates."""
    return Learning("additive", "soft", proposal.learning.score, 0, proposal.learning.base_rate)
