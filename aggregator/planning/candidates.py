"""The designs that a plan compares: what is asked, in how many bins, with which centre."""

from __future__ import annotations

from itertools import combinations
from math import prod

from attrs import evolve, frozen

from anon.ldp import MAX_CATEGORIES
from anon.study.parts import Learning
from anon.study.proposal import OnePacket, Proposal

PAIRS_FROM = 0.75
"""Below this epsilon tables of pairs are never tried: they lose everywhere and cost the most time."""

MOST_PAIRS = 150


@frozen
class Candidate:
    """A design with a name for people."""

    name: str
    proposal: Proposal


def candidates(proposal: Proposal, epsilon: float) -> tuple[Candidate, ...]:
    """Every design worth trying at this record-level epsilon: one packet per peer with the whole budget.

    The bins of features whose cuts are found privately are varied; declared cuts and categories stay as they are. A
    centre of 1/2 is tried where the study knows how common categories are.
    """
    share = proposal.design.binning_share if isinstance(proposal.design, OnePacket) else 0.1
    levels = proposal.design.binning_levels
    found = []
    for bins in (2, 4, 8) if proposal.binned else (0,):
        binned = _with_bins(proposal, bins) if bins else proposal
        suffix = f", {bins} bins" if bins else ""
        plain = OnePacket("one-packet", epsilon, binning_share=share, binning_levels=max(levels, 2 * bins))
        if bins <= 4:
            found.append(Candidate(f"one-bit packets{suffix}", _with(binned, evolve(plain, asks="bits"))))
            if any(feature.shares for feature in proposal.features):
                middle = evolve(plain, asks="bits", centre=0.5)
                found.append(Candidate(f"one-bit packets around 1/2{suffix}", _with(binned, middle)))
        found.append(Candidate(f"tables of one feature{suffix}", _with(binned, plain)))
        pairs = list(combinations([feature.cardinality for feature in binned.features], 2))
        largest = max((2 * prod(pair) for pair in pairs), default=0)
        if epsilon >= PAIRS_FROM and 0 < len(pairs) <= MOST_PAIRS and largest <= MAX_CATEGORIES:
            found.append(Candidate(f"tables of two features{suffix}", _with(binned, evolve(plain, subset_size=2))))
    return tuple(found)


def _with_bins(proposal: Proposal, bins: int) -> Proposal:
    features = tuple(evolve(one, bins=bins) if one.binned_privately else one for one in proposal.features)
    return evolve(proposal, features=features, learning=_additive(proposal))


def _with(proposal: Proposal, design: OnePacket) -> Proposal:
    return evolve(proposal, design=design, learning=_additive(proposal))


def _additive(proposal: Proposal) -> Learning:
    return Learning("additive", "soft", proposal.learning.score, 0, proposal.learning.base_rate)
