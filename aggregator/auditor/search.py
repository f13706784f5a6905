"""The search for a proof: for each pair a rule is learnt from all runs so far and counted on fresh ones, in stages.

The error is split over all that is ever tried: a tenth over the earlier stages and their pairs, the rest for the last
stage. That has one pair, and its test is joined with the two before, of the same pair. So the verdict is wrong about a
sound mechanism with a chance of at most `error`, whatever the search looked at and wherever it stopped. This takes
runs that are independent and alike: a mechanism that remembers runs needs a fresh process for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Protocol

import numpy as np
from attrs import field, frozen
from numpy.random import Generator

from aggregator.auditor.claim import EventCounts, Parts, PrivacyClaim, lower_epsilon
from aggregator.auditor.domain import Input
from aggregator.auditor.events import OutputEvent, Rows, learn
from aggregator.auditor.table import OutputTable

Pair = tuple[Input, Input]
ERROR = 1e-9
RUNS, SECONDS = 100_000, 60.0
_SEARCH = ((0.12, 1, 1), (0.12, 2, 12), (0.12, 5, 6), (0.14, 16, 3))
"""Of each stage before the last three its part of the runs, its part of the pairs, and the fewest of them. The first
stage only teaches."""
_LAST, _FEWEST = 0.9, 10  # the last stage's part of the error; the runs of a pair in the first one
_WARM, _TIMED, _LEAST = 256, 0.1, 200
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
    words: str
    """The event as a phrase."""
    counts: EventCounts
    parts: Parts
    """All counts of the proof, each with its weight: these, and in the last stage those of the two before."""
    error: float
    """The part of the error that this one trial spent."""
    epsilon: float
    """Proven by all parts together."""


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

    total = max(_LEAST, min(runs, int(_OF_THE_TIME * seconds * _speed(box, pairs[0], spent))))
    asked = min(len(pairs), max(1, int(_SEARCH[0][0] * total) // _FEWEST))
    stages = _stages(total, asked)
    kept, used, tried = list(range(asked)), 0, 0
    pools: dict[int, tuple[OutputTable, Rows]] = {}
    events: dict[int, OutputEvent] = {}
    best: AuditEvidence | None = None
    before: list[tuple[int, EventCounts]] = []  # of the one pair, in the last stages
    for number, (planned, _) in enumerate(stages):
        each = _afforded(planned, used, spent(), seconds) // len(kept)
        last = number + 1 == len(stages)
        share = error * (_LAST if last else (1 - _LAST) / (len(stages) - 2) / len(kept))  # the first tests nothing
        for index in kept if each else ():
            first = coins.integers(0, 2, each).astype(bool)
            outputs = OutputTable.of(box.run(pairs[index], first.tolist()))
            used += each
            pools[index] = _joined(pools.get(index), outputs, first)
            if index in events:
                tried += 1
                counts = events[index].counted(outputs, first)
                parts = [*before, (planned, counts)] if last else [(planned, counts)]
                # A stage without a rule would leave its weight to the others, whose counts were seen before.
                whole = not last or len(parts) == len(stages) - len(_SEARCH)
                proven = lower_epsilon(parts, claim.delta, share) if whole else 0.0
                words = events[index].told(outputs)
                found = AuditEvidence(pairs[index], events[index], words, counts, parts, share, proven)
                best = found if best is None or found.epsilon > best.epsilon else best
                before += [(planned, counts)] if number >= len(_SEARCH) else []
        if last or (best and best.epsilon > claim.epsilon):
            break
        learnt = {index: learn(*pools[index], stages[-1][0], claim) for index in kept if index in pools}
        events = {index: event for index, event in learnt.items() if event is not None}
        kept = _kept(events, kept)[: stages[number + 1][1]]
    return AuditVerdict(claim, error, used, asked, tried, best, best.epsilon if best else 0.0)


def _stages(total: int, pairs: int) -> list[tuple[int, int]]:
    """How many runs and pairs each stage has. The last three share the rest as 1 : 2 : 3, and have one pair."""
    scale = min(1.0, (pairs + 4) / 16)  # fewer pairs need less of a search
    found = [(int(part * scale * total), max(min(fewest, pairs), pairs // by)) for part, by, fewest in _SEARCH]
    rest = total - sum(planned for planned, _ in found)
    return [*found, (rest // 6, 1), (rest // 3, 1), (rest // 2, 1)]


def _kept(events: dict[int, OutputEvent], pairs: list[int]) -> list[int]:
    """The pairs in the order of what they promise: in turn by the epsilon, and by the excess over the claim."""
    by_epsilon = sorted(events, key=lambda index: -events[index].forecast)
    by_excess = sorted(events, key=lambda index: -events[index].excess)
    return list(dict.fromkeys([*chain.from_iterable(zip(by_epsilon, by_excess, strict=True)), *pairs]))


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


def _joined(pool: tuple[OutputTable, Rows] | None, outputs: OutputTable, first: Rows) -> tuple[OutputTable, Rows]:
    if pool is None:
        return outputs, first
    return pool[0].and_more(outputs), np.concatenate([pool[1], first])
