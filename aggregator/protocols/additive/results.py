"""The subject of learning and its results: the value types that the ensembles share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from aggregator.protocols.additive.noise_test import ABSTAIN_FROM, LEVEL
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.additive.scoring import Scores
from anon.protocols.contract import MODEL, Place
from anon.protocols.models.tables import VERSION, Cuts, Model, ModelTable
from anon.study.features import Feature, Label

HOSTILE_SHARE = 0.01


@frozen
class Subject:
    """The subject of a model: the study's id in hex, its title, label, features, and the cuts that collection used.

    `shares`: how common each category of a feature is, where that was declared or found with the cuts.
    """

    study: str
    title: str
    label: Label
    features: tuple[Feature, ...]
    cuts: Mapping[str, tuple[float, ...]]
    shares: Mapping[str, tuple[float, ...]] = field(factory=dict)

    def model_cuts(self) -> tuple[Cuts, ...]:
        """The cuts of every numeric feature, as the model states them."""
        numeric = [feature for feature in self.features if feature.kind == "numeric"]
        return tuple(Cuts(feature.name, tuple(self.cuts.get(feature.name, feature.cuts))) for feature in numeric)

    def model(
        self, ensemble: str, classifier: str, base_rate: float, threshold: float, tables: Sequence[ModelTable]
    ) -> Model:
        """The model of these tables."""
        return Model(
            version=VERSION,
            study=self.study,
            title=self.title,
            label=self.label,
            features=self.features,
            cuts=self.model_cuts(),
            ensemble=ensemble,
            classifier=classifier,
            base_rate=base_rate,
            threshold=threshold,
            tables=tuple(tables),
        )


@frozen(eq=False)
class PartitionResult:
    """One table of the model with the estimates behind it, for the report.

    `shares` (unbiased), `standard_errors` and `likely` (`empirical_bayes.smoothed`: shares of least error, for showing)
    have one entry per category of the survey, label last. `influence` is the most that hostile peers, 1 % of the
    reports, could move any cell's log-odds by all naming one category; it bounds no other strategy.
    """

    surveys: tuple[int, ...]
    features: tuple[str, ...]
    cards: tuple[int, ...]
    n: int
    scores: Scores
    shares: Floats = field(repr=False)
    standard_errors: Floats = field(repr=False)
    likely: Floats = field(repr=False)
    influence: float


@frozen(eq=False)
class LearnedStudy:
    """The model, what stands behind each of its tables (same order), and the pooled base rate of the positive label.

    `null`: the probability that nothing measured can be told from noise (additive classifier only, else 0). `chance`:
    how often noise alone would count as much as was counted (`noise_test.p_value`; of tables
    `table_noise_test.chance_of_tables`).
    """

    model: Model
    partitions: tuple[PartitionResult, ...]
    base_rate: float
    null: float = 0.0
    chance: float = 1.0

    @property
    def results(self) -> Mapping[Place, bytes]:
        """The model alone."""
        return {MODEL: self.model.to_json().encode()}

    @property
    def learnable(self) -> bool:
        """False where noise alone could have counted this: then the model is not shown to beat the base rate.

        A study without any signal is learnable at most as often as `noise_test.FALSE_ALARM`.
        """
        return self.chance <= LEVEL

    def telling(self) -> LearnedStudy:
        """The same, its model saying how far it is from noise."""
        return evolve(self, model=evolve(self.model, chance=self.chance, shown=self.learnable))


def published(learned: LearnedStudy) -> LearnedStudy:
    """The study with the model that it publishes, which claims less where noise usually counts as much.

    There votes and soft tables, which nothing draws towards the base rate, become the base rate alone. The additive
    model was drawn there by as much as its noise demands, and its remaining effects still rank. It decides for the
    likelier label, from probabilities that are almost everybody's.
    """
    if learned.chance <= ABSTAIN_FROM:
        return learned
    if learned.model.classifier == "additive":
        return evolve(learned, model=evolve(learned.model, threshold=0.5))
    return evolve(learned, model=base_rate_alone(learned.model))


def base_rate_alone(model: Model) -> Model:
    """The model of a study that told nothing: the same tables, all silent, and the likelier label for everybody."""
    silent = [
        evolve(table, log_odds=(0.0,) * len(table.log_odds), votes=(0,) * len(table.votes), weight=0.0)
        for table in model.tables
    ]
    return evolve(model, tables=tuple(silent), threshold=0.5)
