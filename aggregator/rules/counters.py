"""Counts of who enrolled and of what was accepted and refused, by reason. They describe traffic, never anybody.

Every surface shows them by one rule (design section 8): in steps of 50 while they grow, exact once they cannot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from attrs import frozen

from anon.transparency.fingerprint import HeadPrint

STEP = 50


@frozen
class Count:
    """A number as it may be shown: exact, or rounded down to a step of 50. Text is the way to say it."""

    number: int
    exact: bool

    @classmethod
    def shown(cls, number: int, final: bool) -> Count:
        """Of a number that may still grow, unless it is `final`."""
        return cls(number if final else number // STEP * STEP, final)

    def __str__(self) -> str:
        if self.exact:
            return str(self.number)
        return f"{self.number} or more" if self.number else f"fewer than {STEP}"


class Counters:
    """The aggregator's replies, counted. Until a study closes, counts are shown in steps of 50 only (design section
    8)."""

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self._counts: Counter[str] = Counter(counts)

    def count(self, word: str) -> None:
        """One more answer of this word."""
        self._counts[word] += 1

    def due(self, rest: bool) -> dict[str, int]:
        """The whole steps among the counts, or with `rest` all of them: what may be noted outside of memory."""
        step = 1 if rest else STEP
        return {word: number // step * step for word, number in sorted(self._counts.items()) if number >= step}

    def noted(self, counts: Mapping[str, int]) -> None:
        """So many are counted elsewhere from now on."""
        self._counts -= Counter(counts)

    def beside(self, counts: Mapping[str, int]) -> Counters:
        """These and others, together."""
        return Counters(self._counts + Counter(counts))

    def coarse(self) -> dict[str, int]:
        """Each count rounded down to a multiple of 50; small ones are left out."""
        return {word: number // STEP * STEP for word, number in sorted(self._counts.items()) if number >= STEP}

    def exact(self) -> dict[str, int]:
        """Each count. Only for a study whose collection is closed."""
        return dict(sorted(self._counts.items()))


@frozen
class Traffic:
    """The report's facts beside the documents. They are the aggregator's replies, by word, and how many enrolled. They
    are the fingerprints of the heads that it had signed until then. They are also the packets left out as damaged, by
    slot and the beginning of the tag."""

    enrolled: int
    enrolment_answers: Mapping[str, int]
    packet_answers: Mapping[str, int]
    signed: tuple[HeadPrint, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def refused(self) -> dict[str, int]:
        """Refusals of packets by reason."""
        return {word: number for word, number in self.packet_answers.items() if word != "accepted"}
