"""The outlook of a study as its file stands: how well its model would rank, and whether the group is large enough.

A group is large enough when the model of nearly every made-up study with something to find was shown to beat a guess.
The figures are those of `study plan` for the same design, group and epsilon.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from aggregator.compute import HERE, Compute
from aggregator.lab.planning.population import MADE_UP, Assumptions
from aggregator.lab.planning.trials import SEED, Forecast, Trials, plan_of, populations_for, worlds_of
from aggregator.lab.simulation.linear_sums import is_linear
from aggregator.lab.simulation.people import people_from_csv
from aggregator.lab.simulation.run import Plan
from anon.ldp import NANO
from anon.protocols.contract import DeclaredPart
from anon.protocols.registry import protocol_of
from anon.protocols.sortition import has_board
from anon.protocols.sum.describe import promised
from anon.study.features import MOST_IN_COHORT
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal

ENOUGH, TOO_SMALL = 0.9, 0.5
"""From the first share of studies on a group is large enough; below the second it is too small."""

GRID: tuple[int, ...] = (
    *(part * decade // 10 for decade in (10, 100, 1_000, 10_000, 100_000) for part in (10, 15, 20, 30, 50, 70)),
    MOST_IN_COHORT,
)
"""Sizes of groups, the same for every study, so that one study has one figure."""

_DECADE = 6
_REMEDY = "ask about fewer features, or raise epsilon"


@frozen
class Outlook:
    """Figures as `trials.Forecast` has them for `people`; `enough`: the smallest group of `GRID` that is large enough
    for this study, whatever `people` is; None where none is."""

    people: int
    epsilon: float
    auc: float
    low: float
    high: float
    shown: float
    enough: int | None
    from_file: bool = False

    @property
    def verdict(self) -> str:
        """One of enough, close and small."""
        if self.shown >= ENOUGH:
            return "enough"
        return "close" if self.shown >= TOO_SMALL else "small"

    def sentences(self) -> tuple[str, ...]:
        """The verdict in whole sentences."""
        kind = "studies of last year's people" if self.from_file else "made-up studies with something to find"
        studies = f"{round(100 * self.shown)} of 100 {kind}"
        found = {
            "enough": f"{self.people:,} people are enough for this study at epsilon {self.epsilon:g}.",
            "close": f"{self.people:,} people may be too few for this study at epsilon {self.epsilon:g}.",
            "small": f"{self.people:,} people are too few for this study at epsilon {self.epsilon:g}.",
        }[self.verdict]
        told = f"The model was shown to beat a guess in {studies}; its expected ROC AUC is {self.auc:.2f}."
        lines = [found, told]
        lines.append(f"In nine of ten of them it lies between {self.low:.2f} and {self.high:.2f}.")
        if self.verdict == "enough":
            return tuple(lines)
        if self.enough is None:
            return (*lines, f"No group that we tried was large enough: {_REMEDY}.")
        fewer = f"With fewer, {_REMEDY}."
        said = f"About {self.enough:,} people would be enough. {fewer}"
        if self.enough <= self.people:
            said = f"This group is at the edge: at about {self.enough:,} people a study begins to be enough. {fewer}"
        return (*lines, said)

    def figures(self) -> dict[str, object]:
        """The keys of `study lint --json`."""
        return {
            "people": self.people,
            "expected_auc": self.auc,
            "expected_low": self.low,
            "expected_high": self.high,
            "shown": self.shown,
            "verdict": self.verdict,
            "people_enough": self.enough,
        }


@frozen
class BeliefOutlook:
    """Of a declared rule, whose model ranks as what staff believe at any size. `enough`: from about so many people
    on, answers show if that is wrong as a whole. Consent and report say the same figure."""

    people: int
    epsilon: float
    enough: int

    @property
    def verdict(self) -> str:
        """See `Outlook`; a belief is found out or not."""
        return "enough" if self.people >= self.enough else "small"

    def sentences(self) -> tuple[str, ...]:
        """The verdict in whole sentences."""
        least = f"about {self.enough:,} people"
        if self.verdict == "enough":
            return (
                f"{self.people:,} people are enough to show if what you believe is wrong as a whole.",
                f"That takes {least} at epsilon {self.epsilon:g}.",
                "The model starts from your belief, and answers correct it.",
            )
        return (
            f"With {self.people:,} people the model ranks about as your own belief.",
            "Its answers may add nothing but noise.",
            f"From {least} on, at epsilon {self.epsilon:g}, they show if your belief is wrong as a whole.",
        )

    def figures(self) -> dict[str, object]:
        """The keys of `study lint --json`."""
        return {"people": self.people, "verdict": self.verdict, "people_enough": self.enough}


def outlook_of_belief(study: Manifest, people: int | None = None) -> BeliefOutlook | None:
    """Of a declared rule, for so many people or for its minimum; None for any other study. At once."""
    people = people or study.cohort.minimum
    protocol = protocol_of(study)
    enough = protocol.enough(study) if isinstance(protocol, DeclaredPart) else None
    return None if enough is None else BeliefOutlook(people, planned_epsilon(study), enough)


def outlook_of(
    proposal: Proposal, manifest: Manifest, people: int | None = None, file: Path | None = None
) -> Outlook | BeliefOutlook | None:
    """Of a study that is not published, for so many people, or for its minimum. Deterministic; some seconds.

    `manifest`: what the proposal resolves to; `file`: last year's people (CSV) in place of made-up ones. None for a
    linear model, for which no people are made up, and for a study whose members write, which no lab simulates. A
    declared rule is not tried: see `BeliefOutlook`.
    """
    if belief := outlook_of_belief(manifest, people):
        return belief
    if has_board(manifest) or is_linear(manifest):
        return None
    epsilon = planned_epsilon(manifest)
    assumed = Assumptions(file=people_from_csv(proposal, file) if file else None)
    return outlook_of_plan(plan_of(proposal), manifest, people or manifest.cohort.minimum, epsilon, assumed=assumed)


def planned_epsilon(study: Manifest) -> float:
    """The local epsilon, or of exact sums the central one at the delta of their protocol."""
    return float(str(promised(study))) if study.surveys[0].exact else study.epsilon / NANO


def outlook_of_plan(
    plan: Plan,
    study: Proposal | Manifest,
    people: int,
    epsilon: float,
    found: Forecast | None = None,
    seed: int = SEED,
    compute: Compute = HERE,
    assumed: Assumptions = MADE_UP,
) -> Outlook:
    """Of a plan, with the made-up people of its study; `found`: its figures for so many people where they are known."""
    epsilon = round(epsilon, 3)
    worlds = worlds_of(study, populations_for(epsilon), assumed, seed, compute)

    def tried(size: int) -> Forecast:
        trials = Trials(plan, size, seed)
        trials.go_on(worlds, compute)
        return trials.forecast("", epsilon)

    known = found or tried(people)
    enough = _least(lambda size: tried(size).shown >= ENOUGH)
    from_file = assumed.file is not None
    return Outlook(people, epsilon, known.auc, known.low, known.high, known.shown, enough, from_file)


def _least(is_enough: Callable[[int], bool]) -> int | None:
    """The least size of `GRID` that is enough: by decades, then by halving; None where the largest is not."""
    last: int | None = next((at for at in range(_DECADE, len(GRID), _DECADE) if is_enough(GRID[at])), None)
    if last is None:
        return None
    low: int = last - _DECADE  # found too small; the list's first, 10, always is
    while last - low > 1:
        middle = (low + last) // 2
        low, last = (low, middle) if is_enough(GRID[middle]) else (middle, last)
    return GRID[last]
