"""Designs: proposal to surveys and slot tables. `mechanism = "auto"` is resolved here, before anyone is asked.

The sections of a study file that name a design are in `anon.protocols.histogram.sections`, and the form of each design,
which every manifest has to have, in `anon.protocols.histogram.forms`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from attrs import evolve

from anon.errors import Malformed
from anon.ldp import MAX_CATEGORIES, SCALE, Mechanism, NanoEpsilon, build, choose, choose_for_label, nano
from anon.protocols.contract import Layout
from anon.protocols.histogram import ruled
from anon.protocols.histogram.asked import MIDDLE, SCORE, SIDE
from anon.protocols.histogram.one_bit import bit_parameters, feature_signs
from anon.protocols.histogram.sections import OnePacket, Paper
from anon.study.manifest import Survey, Window
from anon.study.proposal import Proposal
from anon.study.slots import Row, Slot
from anon.values import frozen

_WEIGHT = 1_000_000


@frozen
class Windows:
    """When surveys are open: one window per binning round, then collection."""

    binning: tuple[Window, ...]
    collect: Window


def binning_rounds(proposal: Proposal) -> int:
    """How many binning windows the study needs: none, one, or the rounds of Algorithm 1."""
    design = proposal.design
    if not proposal.binned:
        return int(isinstance(design, OnePacket) and design.asks == "rule")
    return design.binning_rounds if isinstance(design, Paper) and design.binning == "median" else 1


def lay_out(proposal: Proposal, windows: Windows, randbelow: Callable[[int], int]) -> Layout:
    """Surveys and slots of the proposal's design. `randbelow` draws the paper design's partitions."""
    sheet = _Sheet(proposal, windows)
    if isinstance(proposal.design, OnePacket):
        slots = [_one_packet_rows(sheet, proposal.design)]
    elif isinstance(proposal.design, Paper):
        slots = _paper_rows(sheet, proposal.design, randbelow)
    else:
        raise TypeError(f"no design of the histogram protocol: {proposal.design.kind}")
    return Layout(
        tuple(sheet.surveys),
        tuple(Slot(number, tuple(Row(survey, weight) for survey, weight in rows)) for number, rows in enumerate(slots)),
    )


class _Sheet:
    """Collects surveys as they are laid out, numbering them."""

    def __init__(self, proposal: Proposal, windows: Windows) -> None:
        self.proposal = proposal
        self.windows = windows
        self.surveys: list[Survey] = []
        self.features = {feature.name: feature for feature in proposal.features}

    def histogram(self, names: Sequence[str], mechanism: str, epsilon: NanoEpsilon) -> int:
        cards = tuple(self.features[name].cardinality for name in names)
        m = 2
        for card in cards:
            m *= card
        built = _mechanism(mechanism, m, epsilon, choose_for_label)
        return self._add("histogram", tuple(names), cards, built, self.windows.collect)

    def quantile(self, name: str, levels: int, mechanism: str, epsilon: NanoEpsilon) -> int:
        built = _mechanism(mechanism, levels, epsilon, choose)
        return self._add("quantile", (name,), (levels,), built, self.windows.binning[0])

    def threshold(self, name: str, turn: int, epsilon: NanoEpsilon) -> int:
        return self._add("threshold", (name,), (2,), build("krr", 2, epsilon), self.windows.binning[turn], turn)

    def bit(self, name: str, signs: tuple[int, ...], centre: int, epsilon: NanoEpsilon) -> int:
        built = build("krr", 2, epsilon)
        return self._add("bit", (name,), (len(signs),), built, self.windows.collect, 0, signs, centre)

    def about_score(self, kind: str, epsilon: NanoEpsilon, centre: int = 0) -> int:
        asked = ruled.DeclaredSums.of(self.proposal.features).features
        names, cards = tuple(told.name for told in asked), tuple(told.cardinality for told in asked)
        window = self.windows.binning[0] if kind == MIDDLE else self.windows.collect
        parameters = (centre,) if kind == SCORE else ()
        return self._add(kind, names, cards, build("krr", 2, epsilon), window, parameters=parameters)

    def _add(
        self,
        kind: str,
        names: tuple[str, ...],
        cards: tuple[int, ...],
        built: Mechanism,
        window: Window,
        turn: int = 0,
        signs: tuple[int, ...] = (),
        centre: int = 0,
        parameters: tuple[int, ...] = (),
    ) -> int:
        number = len(self.surveys)
        self.surveys.append(
            Survey(
                survey=number,
                kind=kind,
                features=names,
                cards=cards,
                m=built.m,
                mechanism=built.name,
                p=built.p,
                q=built.q,
                epsilon=built.epsilon,
                window=window,
                round=turn,
                parameters=bit_parameters(centre, signs) if signs else parameters,
            )
        )
        return number


def _mechanism(name: str, m: int, epsilon: NanoEpsilon, best: Callable[[int, NanoEpsilon], Mechanism]) -> Mechanism:
    if m > MAX_CATEGORIES:
        raise Malformed(f"design: a subset has {m} categories, more than {MAX_CATEGORIES}; use fewer features or bins")
    return best(m, epsilon) if name == "auto" else build(name, m, epsilon)


def _one_packet_rows(sheet: _Sheet, design: OnePacket) -> list[tuple[int, int]]:
    epsilon = nano(design.epsilon)
    binned = sheet.proposal.binned
    rows: list[tuple[int, int]] = []
    share = design.binning_share if binned else 0.0
    for name in binned:
        survey = sheet.quantile(name, design.binning_levels, design.mechanism, epsilon)
        rows.append((survey, round(_WEIGHT * share / len(binned))))
    if design.asks == "bits":
        return rows + _bit_rows(sheet, design, _WEIGHT * (1 - share))
    if design.asks == "rule":
        return _rule_rows(sheet, design)
    subsets = design.subsets or tuple(combinations(sheet.features, design.subset_size))
    for names in subsets:
        survey = sheet.histogram(names, design.mechanism, epsilon)
        rows.append((survey, max(1, round(_WEIGHT * (1 - share) / len(subsets)))))
    return rows


def _rule_rows(sheet: _Sheet, design: OnePacket) -> list[tuple[int, int]]:
    """The middle of the declared score, a side, the score with the label, and bits (`ruled`)."""
    epsilon, rate = nano(design.epsilon), sheet.proposal.learning.base_rate
    score = ruled.heard(sheet.proposal.cohort.minimum, epsilon, rate)
    asked = (
        (sheet.about_score(MIDDLE, epsilon), ruled.FINDING),
        (sheet.about_score(SIDE, epsilon), ruled.SIDED),
        (sheet.about_score(SCORE, epsilon, round(rate * SCALE)), score),
    )
    left = 1 - sum(share for _, share in asked)
    bits = _bit_rows(sheet, evolve(design, label_share=float(ruled.LABELS / left)), float(_WEIGHT * left))
    return [*((survey, round(_WEIGHT * share)) for survey, share in asked), *bits]


def _bit_rows(sheet: _Sheet, design: OnePacket, weight: float) -> list[tuple[int, int]]:
    """Every feature weighs the same, divided among its bits; one row asks about the label alone."""
    epsilon, centre = nano(design.epsilon), round((design.centre or sheet.proposal.learning.base_rate) * SCALE)
    rows: list[tuple[int, int]] = []
    if design.label_share > 0:
        features = sheet.proposal.features
        first = next((candidate for candidate in features if not candidate.binned_privately), features[0])
        survey = sheet.bit(first.name, (1,) * first.cardinality, centre, epsilon)
        rows.append((survey, max(1, round(weight * design.label_share))))
    each = weight * (1 - design.label_share) / len(sheet.features)
    for name, feature in sheet.features.items():
        asked = feature_signs(feature)
        for signs in asked:
            rows.append((sheet.bit(name, signs, centre, epsilon), max(1, round(each / len(asked)))))
    return rows


def _paper_rows(sheet: _Sheet, design: Paper, randbelow: Callable[[int], int]) -> list[list[tuple[int, int]]]:
    names = _shuffled(list(sheet.features), randbelow)
    slots: list[list[tuple[int, int]]] = []
    for turn in range(design.subsets_per_partition):
        group = names[turn :: design.subsets_per_partition]
        slots.append(
            [
                (sheet.histogram(subset, design.mechanism, nano(design.epsilon_histogram)), 1)
                for subset in _subsets(group, design, randbelow)
            ]
        )
    for name in sheet.proposal.binned:
        slots.append(_binning_rows(sheet, design, name))
    return slots


def _subsets(group: list[str], design: Paper, randbelow: Callable[[int], int]) -> list[tuple[str, ...]]:
    """One subset of `subset_size` features of the group per partition, each feature about equally often."""
    pool: list[str] = []
    found: list[tuple[str, ...]] = []
    for _ in range(design.partitions):
        chosen: list[str] = []
        while len(chosen) < design.subset_size:
            if not pool:
                pool = _shuffled(group, randbelow)
            fresh = next((name for name in pool if name not in chosen), None)
            if fresh is None:
                pool = []
                continue
            pool.remove(fresh)
            chosen.append(fresh)
        found.append(tuple(sorted(chosen)))
    return found


def _binning_rows(sheet: _Sheet, design: Paper, name: str) -> list[tuple[int, int]]:
    epsilon = nano(design.epsilon_binning)
    if design.binning == "quantile":
        return [(sheet.quantile(name, design.binning_levels, design.mechanism, epsilon), 1)]
    return [(sheet.threshold(name, turn, epsilon), 1) for turn in range(design.binning_rounds)]


def _shuffled(names: list[str], randbelow: Callable[[int], int]) -> list[str]:
    left, found = list(names), []
    while left:
        found.append(left.pop(randbelow(len(left))))
    return found
