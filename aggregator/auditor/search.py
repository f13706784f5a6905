"""The search for a proof: events are learnt from all runs so far and counted on fresh ones, in growing stages.

The error is split over all that is ever tried: stages, pairs of neighbours, events. So the verdict is wrong about a
sound mechanism with a chance of at most `error`, whatever the search looked at and wherever it stopped. This takes
runs that are independent and alike: a mechanism that remembers runs needs a fresh process for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from attrs import field, frozen
from numpy.random import Generator

from aggregator.auditor.claim import EventCounts, PrivacyClaim
from aggregator.auditor.domain import Input
from aggregator.auditor.events import MOST, OutputEvent, Rows, learn
from aggregator.auditor.table import OutputTable

Pair = tuple[Input, Input]
ERROR = 1e-9
RUNS, SECONDS = 100_000, 60.0
_FRESH, _FEWEST, _FIRST = 2 / 3, 120, 600
_WARM, _TIMED, _LEAST = 256, 0.1, 120
_AHEAD = 16  # pairs are kept by what they promise with so many times the runs
_OF_THE_TIME = 0.85


class BlackBox(Protocol):
    """A mechanism that can be run."""

    def run(self, pair: Pair, first: Sequence[bool]) -> list[object]:
        """The plain outputs of independent runs: of the pair's first input where `first` says so, else of the
        second."""

    def seconds(self) -> float:
        """The processor time that all runs took."""


@frozen
class AuditEvidence:
    """An event of one pair, counted on fresh runs, and the epsilon that these counts prove."""

    pair: Pair
    event: OutputEvent
    counts: EventCounts
    error: float
    """The part of the error that this one trial spent."""
    epsilon: float


@frozen
class AuditVerdict:
    """The end of an audit."""

    claim: PrivacyClaim
    error: float
    runs: int
    pairs: int
    tried: int
    """How many events were counted."""
    best: AuditEvidence | None = field(repr=False)
    highest: float
    """The largest epsilon that any fresh counts proved; 0 where none did."""

    @property
    def broken(self) -> bool:
        """True if the claim is refuted."""
        return self.highest > self.claim.epsilon

    def words(self) -> str:
        """The verdict as a sentence."""
        delta = f" (delta {self.claim.delta:g})" if self.claim.delta else ""
        if self.broken:
            proven = f"epsilon at least {_down(self.highest)} where {self.claim.epsilon:g} is claimed{delta}"
            return f"broken: {proven}, with error at most {self.error:g}"
        measured = self.best.counts.measured(self.claim.delta) if self.best else 0.0
        return (
            f"not refuted: {self.tried} events of {self.pairs} pairs prove an epsilon of {_down(self.highest)}{delta} "
            f"in {self.runs:,} runs, and the best of them measures {measured:.2f}; {self.claim.epsilon:g} is claimed"
        )


def _down(number: float) -> str:
    return f"{np.floor(number * 100) / 100:.2f}"


def audit_black_box(
    box: BlackBox,
    claim: PrivacyClaim,
    pairs: Sequence[Pair],
    coins: Generator,
    clock: Callable[[], float],
    runs: int = RUNS,
    seconds: float = SECONDS,
    error: float = ERROR,
) -> AuditVerdict:
    """Search until the claim is refuted, or runs or seconds of processor time are spent.

    `coins` must be unpredictable for the box; `clock` tells this process's own seconds of processor time.
    """
    began = clock() + box.seconds()

    def spent() -> float:
        return clock() + box.seconds() - began

    runs = max(_LEAST, min(runs, int(_OF_THE_TIME * seconds * _speed(box, pairs[0], spent))))

    pools: dict[int, tuple[OutputTable, Rows]] = {}
    kept, used, tried = list(range(len(pairs))), 0, 0
    best: AuditEvidence | None = None
    stages = _stages(runs, len(pairs))
    for number, planned in enumerate(stages):
        block = _afforded(planned, used, spent(), seconds)
        if block < 2 * len(kept):
            break
        each, hopes = block // len(kept), dict[int, float]()
        share = error / (len(stages) * len(kept) * MOST)
        for index in kept:
            first = coins.integers(0, 2, each).astype(bool)
            events = learn(*pools[index], each, claim.delta, share) if index in pools else []
            outputs = OutputTable.of(box.run(pairs[index], first.tolist()))
            used += each
            for event in events:
                tried += 1
                counts = event.counted(outputs, first)
                found = AuditEvidence(pairs[index], event, counts, share, counts.epsilon(claim.delta, share))
                hopes[index] = max(hopes.get(index, 0.0), counts.promise(claim.delta, share, _AHEAD))
                best = found if best is None or _rank(found, claim) > _rank(best, claim) else best
            pools[index] = _joined(pools.get(index), outputs, first)
            if best and best.epsilon > claim.epsilon:
                break
        if best and best.epsilon > claim.epsilon:
            break
        if number:  # the first stage only teaches: its own counts say nothing yet
            left = 1 if number + 2 == len(stages) else max(1, len(kept) // 2)  # the last stage has one pair alone
            kept = sorted(kept, key=lambda index: -hopes.get(index, 0.0))[:left]
    return AuditVerdict(claim, error, used, len(pairs), tried, best, best.epsilon if best else 0.0)


def _stages(runs: int, pairs: int) -> list[int]:
    """How many runs each stage has: the last has two thirds of all, the one before two thirds of the rest. The first
    only teaches."""
    found, rest = list[int](), runs
    while rest * (1 - _FRESH) >= max(_FIRST, _FEWEST * pairs) or not found:
        found.insert(0, round(rest * _FRESH))
        rest -= found[0]
    return [rest, *found]


def _speed(box: BlackBox, pair: Pair, spent: Callable[[], float]) -> float:
    """Runs in a second of processor time, without the first ones, in which a mechanism loads what it needs."""
    box.run(pair, [True, False])
    many, began = 4, spent()
    box.run(pair, [True, False] * (many // 2))
    while spent() - began < _TIMED and many < _WARM:
        many, began = 2 * many, spent()
        box.run(pair, [True, False] * (many // 2))
    return many / max(spent() - began, 1e-6)


def _afforded(planned: int, used: int, spent: float, seconds: float) -> int:
    """The runs of a stage that the time allows, by the speed so far."""
    left = _OF_THE_TIME * seconds - spent
    return max(0, min(planned, int(left * used / max(spent, 1e-9)))) if used else planned


def _rank(found: AuditEvidence, claim: PrivacyClaim) -> tuple[bool, int, float]:
    refutes = found.epsilon > claim.epsilon
    return refutes, -found.event.reading.steps if refutes else 0, found.epsilon


def _joined(pool: tuple[OutputTable, Rows] | None, outputs: OutputTable, first: Rows) -> tuple[OutputTable, Rows]:
    if pool is None:
        return outputs, first
    return pool[0].and_more(outputs), np.concatenate([pool[1], first])
