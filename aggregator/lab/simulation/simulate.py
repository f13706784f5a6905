"""`simulate`: what a study would give, from data that staff already have. No network and no cryptography.

The same study file, category map, mechanism objects and learner as the real protocol; only the sum over peers is drawn
at once (`aggregator.lab.simulation.draws`). Every peer takes part and sends all its packets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import sqrt

import numpy as np
from attrs import asdict, evolve, frozen

from aggregator.compute import HERE, Compute
from aggregator.lab.simulation.ceilings import binned_ceiling, raw_ceiling, without_privacy
from aggregator.lab.simulation.evaluation import TestScores, evaluate
from aggregator.lab.simulation.leaks import leaking
from aggregator.lab.simulation.linear_sums import is_linear, learn_linear
from aggregator.lab.simulation.parties import Parties, has_parties, learn_parties
from aggregator.lab.simulation.people import People, split
from aggregator.lab.simulation.rule import rule_auc
from aggregator.lab.simulation.run import Plan, SimulatedTallies, collect
from aggregator.lab.simulation.sums import learn_summed
from aggregator.lab.simulation.trusted_party import trusted_party_auc
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.additive.report import Figure, scores_of
from aggregator.protocols.histogram.cohorts import Cohorts, learn_cohorts
from aggregator.protocols.histogram.ensemble import LearnedStudy, Subject
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.errors import Malformed, Refused
from anon.ldp import NANO
from anon.ldp.epsilon import NanoEpsilon
from anon.protocols.cost_words import exact_cost, is_local
from anon.protocols.models.ensemble import EnsembleModel
from anon.protocols.models.linear import LinearModel
from anon.protocols.models.tables import Model
from anon.protocols.resolve import StudyKeys, resolve
from anon.sharing.drafts import drafted
from anon.study.given import NONE_GIVEN
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal

NO_KEYS = StudyKeys(bytes(32), bytes(PUBLIC_KEY_SIZE), bytes(96), bytes(32))
HELD_OUT = 0.3


@frozen
class SimulationResult:
    """Means over the trials on people who were no peers, with standard errors of the AUC's mean; epsilons as numbers.

    `auc_min` and `auc_p01` are the worst trial and the first percentile. `majority_rate`: the accuracy of the answer
    that most of the scored people have, given to everybody. `shown`: the share of the trials whose model was shown to
    beat a guess. `chance`: the median over the trials of how often noise alone would count as much, a p-value. Both are
    None where a design has no such test. `rule_auc`: the AUC of the declared directions by themselves, which ask
    nobody; None without any. `auc_trusted_party`: see `trusted_party`; None for exact sums, whose epsilon is a central
    one. `leaks`: features of which each alone tells the label. `cost`: in words, where it is no local epsilon.
    `spread`: the standard deviation of one study's AUC. `drawn_from`: how many people those `peers` are drawn from anew
    in each trial, with replacement where they are fewer than the peers; as many as these, all take part. `scored`: how
    many people every trial and every comparison was scored on, none of them a peer: no error covers that others would
    score otherwise. Of parties, records are scored, and `accuracy_alone` and `auc_alone` are the means of parties that
    share nothing. The keys are documented in docs/figures.md.
    """

    trials: int
    peers: int
    auc_mean: float
    auc_se: float
    auc_min: float
    auc_p01: float
    f1_mean: float
    f1_se: float
    accuracy_mean: float
    accuracy_se: float
    majority_rate: float
    ece_mean: float
    epsilon_record: float
    epsilon_eq6: float
    auc_ceiling_binned: float
    auc_ceiling_raw: float
    auc_trusted_party: float | None
    shown: float | None
    spread: float
    drawn_from: int
    scored: int
    chance: float | None
    rule_auc: float | None
    leaks: tuple[str, ...] = ()
    cost: str = ""
    accuracy_alone: float | None = None
    auc_alone: float | None = None

    @property
    def draw(self) -> str:
        """How peers are drawn, in words; nothing where all take part."""
        if self.peers == self.drawn_from:
            return ""
        repeated = "with replacement" if self.peers > self.drawn_from else "nobody twice"
        return f"drawn anew for each from {self.drawn_from}, {repeated}"

    def figures(self) -> dict[str, object]:
        """The output of `simulate --json`. A study of exact sums has no local epsilon, and tells its cost in words."""
        absent = {"epsilon_record", "epsilon_eq6"} if self.cost else {"cost"}
        told = asdict(self) | {"leaks": list(self.leaks)}
        return {name: value for name, value in told.items() if name not in absent and value is not None}


def simulate(
    study: Proposal,
    data: People | Parties,
    trials: int,
    seed: int,
    test: People | Parties | None = None,
    *,
    peers: int | None = None,
    shuffle_labels: bool = False,
    equal_parts: bool = False,
    ceilings: bool = True,
    held_out: float = HELD_OUT,
    given: Mapping[str, bytes] = NONE_GIVEN,
    progress: Callable[[int], None] = lambda done: None,
    compute: Compute = HERE,
) -> SimulationResult:
    """Run the study `trials` times and score each model on `test` (without it, on a share `held_out` of `data`).

    `peers`: so many are drawn anew from `data` in each trial, with replacement where that is more than there are (no
    memory is taken for them); without it all take part. `given`: the study's public documents by name. Deterministic in
    `seed`: every trial has a seed of its own, so that `compute` decides where it runs and not what it gives. Raises
    `Malformed` for impossible numbers, and `Refused` for people in place of parties, and where the cluster cannot be
    used.

    >>> from importlib.resources import files
    >>> from aggregator.notebook import Study
    >>> study = Study(files("examples.census") / "study.toml")
    >>> result = simulate(study.proposal, study.made_up(300).people, trials=2, seed=7, ceilings=False)
    >>> result.peers, result.scored, result.epsilon_record, result.auc_mean <= 1
    (210, 90, 2.0, True)
    """
    root = np.random.SeedSequence(seed)
    generator = np.random.default_rng(root)
    if test is None:
        data, test = _split(data, held_out, generator)
    if trials < 1 or (peers is not None and peers < 1):
        raise Malformed("simulate: expected at least 1 trial and at least 1 peer")
    resampled = peers if peers is not None and peers > len(data) else None
    manifest = resolve(drafted(study), NO_KEYS, 0, lambda below: int(generator.integers(below)), given=given)
    plan = Plan.of(manifest)
    if has_parties(study) != isinstance(data, Parties):
        raise Refused("simulate: this study's members are read as parties, which `anonml simulate` does")
    public = next(iter(given.values()), b"")
    if isinstance(data, Parties) and not shuffle_labels:
        data = data.summing(plan.manifest, public)
    scored = _people(test)
    trial = _Trials(plan, data, scored, peers, resampled, shuffle_labels, equal_parts, public)
    last, *seeds = root.spawn(1 + trials)
    tried: list[_Tried] = []
    for outcome in compute.each(partial(_tried, trial), seeds):
        tried.append(outcome)
        progress(len(tried))
    chances = [outcome.chance for outcome in tried if outcome.chance is not None]
    drawn = _drawn(data, peers, np.random.default_rng(last))
    first, alone = _people(drawn), None
    leaks = leaking(plan.manifest.features, first, scored) if ceilings else ()
    binned, raw = (above(plan, first, scored, leaks) if ceilings else 0.0 for above in (binned_ceiling, raw_ceiling))
    if ceilings and study.many is not None and isinstance(drawn, Parties):
        alone = without_privacy(plan.manifest, drawn.alone, scored, leaks)
    trusted = None
    if ceilings and is_local(plan.manifest):
        epsilon = NanoEpsilon(plan.manifest.epsilon)
        draw = np.random.default_rng(last)
        trusted = trusted_party_auc(plan, epsilon, first, scored, draw, resampled=resampled)
    rate = float(scored.labels.mean())
    scores = [outcome.scores for outcome in tried]
    found = _result(plan, resampled or len(drawn), scores, binned, raw, max(rate, 1 - rate))
    tested = bool(chances) or not is_linear(plan.manifest)
    return evolve(
        found,
        shown=sum(outcome.shown for outcome in tried) / trials if tested else None,
        drawn_from=len(data),
        scored=len(scored),
        auc_trusted_party=trusted,
        chance=float(np.median(chances)) if tested and chances else None,
        rule_auc=rule_auc(plan.manifest.features, scored),
        leaks=leaks,
        accuracy_alone=alone and alone[0],
        auc_alone=alone and alone[1],
    )


@frozen(eq=False)
class _Trials:
    """The part that all trials share; the arguments are those of `simulate`."""

    plan: Plan
    data: People | Parties
    test: People
    peers: int | None
    resampled: int | None
    shuffle_labels: bool
    equal_parts: bool
    given: bytes


@frozen
class _Tried:
    """One trial's scores, if its model was shown, and how often noise alone would count as much."""

    scores: TestScores
    shown: bool
    chance: float | None


def _tried(trial: _Trials, seed: np.random.SeedSequence) -> _Tried:
    generator = np.random.default_rng(seed)
    chosen = _drawn(trial.data, trial.peers, generator)
    if trial.shuffle_labels:
        chosen = chosen.shuffled(generator)
    run = _run_of(trial, chosen, generator)
    return _Tried(evaluate(run.model, trial.test), run.shown, run.chance)


def _people(data: People | Parties) -> People:
    return data.people if isinstance(data, Parties) else data


def _drawn(data: People | Parties, peers: int | None, generator: np.random.Generator) -> People | Parties:
    if peers is None or peers >= len(data):
        return data
    return data.take(generator.choice(len(data), peers, replace=False))


def learn_once(
    plan: Plan,
    people: People,
    generator: np.random.Generator,
    equal_parts: bool = False,
    resampled: int | None = None,
) -> LearnedStudy:
    """One run of the study with `people` as peers, up to its model. `resampled` as in `collect`."""
    if plan.manifest.surveys[0].exact or is_linear(plan.manifest):
        return learn_summed(plan.manifest, _resampled(people, resampled, generator), generator)
    return learn_collected(plan, collect(plan, people, generator, equal_parts, resampled))


def _resampled(people: People, resampled: int | None, generator: np.random.Generator) -> People:
    return people if resampled is None else people.take(generator.integers(len(people), size=resampled))


@frozen
class _Run:
    """A run's model, if it was shown, and how often noise alone would count as much."""

    model: Model | LinearModel | EnsembleModel
    shown: bool
    chance: float | None


def _run_of(trial: _Trials, chosen: People | Parties, generator: np.random.Generator) -> _Run:
    study = trial.plan.manifest
    if isinstance(chosen, Parties):
        places = None if trial.resampled is None else generator.integers(len(chosen), size=trial.resampled)
        parties = chosen if places is None else chosen.take(places)
        return _Run(learn_parties(study, parties, generator, trial.given), False, None)
    if is_linear(study):
        model = learn_linear(study, _resampled(chosen, trial.resampled, generator), generator)
        return _Run(model, bool(model.shown), model.chance)
    learned = learn_once(trial.plan, chosen, generator, trial.equal_parts, trial.resampled)
    return _Run(learned.model, learned.learnable, learned.chance)


def run_once(manifest: Manifest, people: People, generator: np.random.Generator) -> LearnedStudy:
    """One run of a published study with `people` as peers, with all that its report shows."""
    plan = Plan.of(manifest)
    if manifest.surveys[0].exact or is_linear(manifest):
        return learn_summed(manifest, people, generator, with_influence=True)
    return learn_collected(plan, collect(plan, people, generator), with_influence=True).telling()


def table_scores(learned: LearnedStudy) -> list[Figure]:
    """The AUC of each table of a run, with its 95 % interval."""
    return scores_of(learned)


def learn_collected(plan: Plan, collected: SimulatedTallies, with_influence: bool = False) -> LearnedStudy:
    """The model that one run's tallies determine."""
    manifest = plan.manifest
    subject = Subject("simulated", manifest.title, manifest.label, manifest.features, collected.cuts, collected.shares)
    cohorts = Cohorts(collected.train, collected.scoring, collected.bits, collected.sides)
    return learn_cohorts(manifest, subject, cohorts, with_influence)


def _split(
    data: People | Parties, share: float, generator: np.random.Generator
) -> tuple[People | Parties, People | Parties]:
    kept, held = split(len(data), share, generator)
    return data.take(kept), data.take(held)


def _result(
    plan: Plan, peers: int, scores: list[TestScores], binned: float, raw: float, majority: float
) -> SimulationResult:
    aucs = np.array([score.auc for score in scores])
    f1s = np.array([score.f1 for score in scores])
    accuracies = np.array([score.accuracy for score in scores])
    return SimulationResult(
        trials=len(scores),
        peers=peers,
        auc_mean=float(aucs.mean()),
        auc_se=_standard_error(aucs),
        auc_min=float(aucs.min()),
        auc_p01=float(np.quantile(aucs, 0.01)),
        f1_mean=float(f1s.mean()),
        f1_se=_standard_error(f1s),
        accuracy_mean=float(accuracies.mean()),
        accuracy_se=_standard_error(accuracies),
        majority_rate=majority,
        ece_mean=float(np.mean([score.ece for score in scores])),
        epsilon_record=plan.manifest.epsilon / NANO,
        epsilon_eq6=plan.manifest.epsilon_per_attribute / NANO,
        auc_ceiling_binned=binned,
        auc_ceiling_raw=raw,
        auc_trusted_party=None,
        shown=0.0,
        spread=float(aucs.std(ddof=1)) if len(aucs) > 1 else 0.0,
        drawn_from=0,
        scored=0,
        chance=None,
        rule_auc=None,
        cost="" if is_local(plan.manifest) else exact_cost(plan.manifest),
    )


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / sqrt(len(values))) if len(values) > 1 else 0.0
