"""Exact sums beside the designs of `histogram`: what each is expected to find, and on what its guarantee rests.

The forecast of the sums is a simulation with the protocol's own parts: cells, each teller's noise, learner. It is made
on the same made-up people as that of the other designs. Nothing here ever sees a peer's data.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil

import numpy as np
from attrs import evolve, frozen

from aggregator.compute import HERE, Compute
from aggregator.lab.planning.candidates import additive
from aggregator.lab.planning.outlook import BeliefOutlook, outlook_of_belief
from aggregator.lab.planning.population import MADE_UP, Assumptions
from aggregator.lab.planning.trials import Forecast, Trials, World, interval, plan_of, populations_for, worlds_of
from aggregator.lab.simulation.trusted_party import trusted_party_auc
from aggregator.protocols.installed import PROTOCOLS
from anon.accounting.central import central, local_epsilon
from anon.accounting.statement import slot_rows
from anon.ldp import nano
from anon.protocols.charge import LOCAL
from anon.protocols.histogram.binning import level_edges
from anon.protocols.histogram.sections import OnePacket
from anon.protocols.registry import charge_of
from anon.protocols.sum.arranged import DELTA
from anon.protocols.sum.rule_section import CalibratedRule
from anon.protocols.sum.sections import TablesSum
from anon.study.features import Feature
from anon.study.manifest import Manifest
from anon.study.proposal import FEWEST_TELLERS, Proposal, TellerPlace

_WITHOUT_SPARE = (
    "It holds if at least one teller is honest: it keeps its shares to itself and adds its noise.",
    "If all tellers work together it does not hold: they read exact answers, without names.",
)
_WITH_SPARE = (
    "It holds if at least two of the three tellers are honest: they keep their shares and add their noise.",
    "If any two tellers work together it does not hold: they read exact answers, without names.",
    "The spare costs accuracy: a dishonest teller can have a round summed twice, and the noise is made for both sums.",
)
PARTS = 4
"""Into so many equal parts a range is cut that has no declared cuts."""
_PLACES = tuple(TellerPlace(f"teller {number}", f"127.0.0.1:900{number}") for number in range(1, FEWEST_TELLERS + 1))
_LARGEST = 800
"""Of the local epsilons that are tried, in hundredths."""


@frozen
class Beside:
    """Exact sums at a central epsilon, for one cohort.

    `tellers`: the noise of so many is in the sums; with a `spare` they are two of three. `stood_in`: numbers without
    declared cuts, whose range is cut evenly here. `if_honest`: the central epsilon of the best design of `histogram`,
    if everybody else is honest and no packet is linked; None without a bound. `equal`: that design where `if_honest` is
    as large as the sums' epsilon. `believed`: of a rule, where staff say what they expect. `trusted`: the expected
    AUC where a trusted party adds noise once to the same tables; `trusted_between`: nine in ten of its studies.
    """

    sums: Forecast
    tellers: int
    stood_in: tuple[str, ...]
    if_honest: float | None
    equal: Forecast | None
    spare: bool = False
    believed: BeliefOutlook | None = None
    trusted: float | None = None
    trusted_between: tuple[float, float] | None = None

    @property
    def noises(self) -> str:
        """Whose noise is in the sums."""
        return f"{self.tellers} of three" if self.spare else f"all {self.tellers}"

    def sentences(self, epsilon: float) -> tuple[str, ...]:
        """On what each guarantee rests, in plain words."""
        lines = [
            f"histogram: epsilon {epsilon:g} is local. It protects each person by that person's own noise.",
            "Nobody else needs to be honest for it: no other person, no teller, no aggregator.",
            f"sum: epsilon {epsilon:g} at delta {DELTA} is central: about what is published. It rests on the tellers.",
            *(_WITH_SPARE if self.spare else _WITHOUT_SPARE),
            f"The other people need not be honest. The noise of {self.noises} tellers is in these figures.",
        ]
        if self.if_honest is not None and self.equal is not None:
            lines.append(
                f"As a central guarantee histogram has epsilon {self.if_honest:.2f} here, if everybody else is honest "
                "and no packet is linked to its sender."
            )
            lines.append(
                f"At local epsilon {self.equal.epsilon:g} that would be {epsilon:g}, as of the sums. Without these two "
                f"conditions a person is left with local epsilon {self.equal.epsilon:g}."
            )
        lines.append("The two epsilons are different promises: choose by whom your members can trust, then by the AUC.")
        if self.stood_in:
            lines.append(
                f"tables-sum finds no cuts: here {PARTS} equal parts of the range stand in for those of "
                f"{', '.join(self.stood_in)}. Write cuts from public knowledge."
            )
        if self.believed is not None:
            lines.append('kind = "rule" in place of "tables-sum" starts from what you expect, and ranks about as that.')
            lines += self.believed.sentences()
        lines.append(
            'For the sums write protocol = "sum", kind = "tables-sum" under [design], and [[tellers]] that different '
            "people run. `anonml simulate` tries it on data that you have."
        )
        return tuple(lines)

    def figures(self) -> dict[str, object]:
        """The key `sum` of `study plan --json`."""
        return {
            **self.sums.figures(),
            "delta": str(DELTA),
            "tellers": self.tellers,
            **({"spare": True} if self.spare else {}),
            "trusted_party_auc": self.trusted,
            "trusted_party_between": self.trusted_between,
            "cuts_stood_in": list(self.stood_in),
            "histogram_if_all_honest": self.if_honest,
            "histogram_equal": self.equal.figures() if self.equal is not None else None,
        }


def without_tellers(proposal: Proposal, epsilon: float) -> Proposal:
    """The same study for the designs of `histogram`, which replace its own."""
    if not proposal.design.has_tellers:
        return proposal
    design = OnePacket("one-packet", epsilon)
    return PROTOCOLS.proposed(evolve(proposal, design=design, learning=additive(proposal), protocol="", tellers=()))


def summed(proposal: Proposal, epsilon: float) -> tuple[Proposal, tuple[str, ...]]:
    """The study as one of summed tables at this central epsilon, and the features whose cuts stand in."""
    stood_in = tuple(feature.name for feature in proposal.features if feature.binned_privately)
    features = tuple(_cut(feature) if feature.name in stood_in else feature for feature in proposal.features)
    made = PROTOCOLS.proposed(evolve(
        proposal,
        features=features,
        design=TablesSum("tables-sum", epsilon),
        learning=additive(proposal),
        schedule=evolve(proposal.schedule, binning=0),
        protocol="sum",
        tellers=proposal.tellers or _PLACES,
    ))
    return made, stood_in


def beside(
    proposal: Proposal, best: Proposal, cohort: int, epsilon: float, seed: int, compute: Compute = HERE,
    assumed: Assumptions = MADE_UP,
) -> Beside:  # fmt: skip
    """Exact sums beside the best design of `histogram`, on as many made-up populations as that has its figures from.

    Raises `Malformed` and `Refused` for a study that cannot be one of exact sums.
    """
    worlds = worlds_of(proposal, populations_for(epsilon), assumed, seed, compute)

    def forecast(name: str, tried: Proposal, at: float) -> Forecast:
        trials = Trials(plan_of(tried, seed), cohort, seed)
        trials.go_on(worlds, compute)
        return trials.forecast(name, at)

    made, stood_in = summed(proposal, epsilon)
    sums = forecast("exact sums of tables", made, epsilon)
    parties = len(made.tellers) - made.has_spare
    believed = _believed(made, epsilon, cohort, seed)
    aucs = np.array([*compute.each(_Trusted(made, cohort, epsilon, seed), list(enumerate(worlds)))])
    trusted, between = float(aucs.mean()), interval(aucs)
    if proposal.cohort.admission == "open" or not isinstance(best.design, OnePacket):
        return Beside(sums, parties, stood_in, None, None, made.has_spare, believed, trusted, between)
    local = equal_local(best, cohort, epsilon, seed)
    other = evolve(best, design=evolve(best.design, epsilon=local))
    equal = forecast(f"histogram at local epsilon {local:g}", other, local)
    if_honest = _if_honest(plan_of(best, seed).manifest, cohort)
    return Beside(sums, parties, stood_in, if_honest, equal, made.has_spare, believed, trusted, between)


def _believed(made: Proposal, epsilon: float, cohort: int, seed: int) -> BeliefOutlook | None:
    """Of the same sums that start from what staff expect; None where they say it of fewer than two features."""
    if sum(bool(feature.expects) for feature in made.features) < 2:
        return None
    design = CalibratedRule("rule", epsilon)
    return outlook_of_belief(plan_of(evolve(made, design=design), seed).manifest, cohort)


@frozen
class _Trusted:
    """The AUC of a trusted party at the numbered population, with one draw of people and noise."""

    made: Proposal
    cohort: int
    epsilon: float
    seed: int

    def __call__(self, numbered: tuple[int, World]) -> float:
        number, world = numbered
        (peers, test), draw = world.people, np.random.default_rng([self.seed, 4, number])
        drawn = peers.take(draw.integers(len(peers), size=self.cohort))
        return trusted_party_auc(plan_of(self.made, self.seed), nano(str(self.epsilon)), drawn, test, draw, 1)


def equal_local(best: Proposal, cohort: int, epsilon: float, seed: int) -> float:
    """The largest local epsilon, to two decimals, of a one-packet study whose central one is at most `epsilon`, if
    everybody else is honest and no packet is linked."""
    if not isinstance(best.design, OnePacket):
        raise TypeError("expected a one-packet study")
    low, high = min(ceil(100 * epsilon), _LARGEST - 1), _LARGEST
    while high - low > 1:
        middle = (low + high) // 2
        tried = plan_of(evolve(best, design=evolve(best.design, epsilon=middle / 100)), seed).manifest
        low, high = (middle, high) if _if_honest(tried, cohort) <= epsilon else (low, middle)
    return low / 100


@lru_cache(maxsize=64)
def _if_honest(study: Manifest, people: int) -> float:
    if charge_of(study).budget != LOCAL:
        raise TypeError("expected a study of perturbed answers")
    rows = slot_rows(study)
    return central(rows, [people] * len(rows), sum(map(local_epsilon, rows)), float(DELTA)).epsilon


def _cut(feature: Feature) -> Feature:
    return evolve(feature, cuts=level_edges(feature, PARTS), bins=0, shares=())
