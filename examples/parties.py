"""The demos of parties that hold many records each: `averaging` and `transfer` with two tellers, `masks` without any.

The census rows are divided among parties, and the study file of `examples/census/parties.toml` asks them. A demo knows
every record, which no aggregator does. So it can compare the published sum with the exact one: their distance has to be
that of the declared noise. By that law alone a run falls out of the band once in a million. Neither time nor an
unlucky division decides it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from io import StringIO
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression

from aggregator.lab.simulation.evaluation import evaluate, roc_auc
from aggregator.lab.simulation.linear_sums import reals_of_people
from aggregator.lab.simulation.people import People, people_from_values
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.installed import PROTOCOLS
from aggregator.protocols.sum.part import linear_of
from aggregator.protocols.sum.published import NoisySum
from anon.errors import Malformed
from anon.protocols.board import page_of, read_page
from anon.protocols.contract import Record
from anon.protocols.models.linear import LinearModel
from anon.protocols.sum.design import column_of, shape_of
from anon.protocols.sum.masks.layout import masking_of, vector_survey
from anon.protocols.sum.masks.masking import came, opened
from anon.protocols.sum.standing import place_of, read_sum
from anon.protocols.tellers import tellers_of
from anon.queries.answers import LABEL, value_of
from anon.queries.records import Draw, drawn
from anon.queries.sandbox import Bench, MissingValue, Reason
from anon.study.manifest import Manifest, Survey
from anon.study.proposal import Proposal
from examples.census import data as census_data
from examples.published import Published
from examples.scenes import CENSUS_TEST_ROWS, Scene, census_rows
from peer.protocols.sum.part import vector_of

STUDY = Path(__file__).parent / "census" / "parties.toml"
RECORDS = {"averaging": 60, "transfer": 22, "masks": 200}
"""Of each party."""
PUBLIC_ROWS = 500
ALARM = 1e-6
"""The chance that a run without a fault ends outside of the band."""
_DESIGNS = {
    "masks": 'kind = "masked-averaging"\nepsilon = 2.0\nstrength = 0.003\nleast = {half}\nhonest = {half}\n',
    "transfer": f'kind = "transfer"\nepsilon = 4.0\npublic_rows = {PUBLIC_ROWS}\nclassifier = "tree"\n'
    "strength = 0.01\n",
}
_GIVEN = '[[given]]\nname = "rows"\ndescription = "Made public: rows without the income."\nfile = "rows.csv"\n'
_NOTHING = MissingValue(Reason.SHAPE)


def study_text(example: str, parties: int) -> str:
    """The study file of an example with so many parties."""
    half = max(3, parties // 2)
    cohort = f"minimum = {half}\nmaximum = {max(500, parties)}"
    text = re.sub(r"(?m)^minimum = \d+\nmaximum = \d+", cohort, STUDY.read_text("utf-8"))
    if example != "averaging":
        design = _DESIGNS[example].format(half=half)
        text = re.sub(r"(?ms)^\[design\]\n.*?\n(?=\[)", lambda _: f"[design]\n{design}\n", text)
    if example == "masks":
        text = re.sub(r"(?ms)^\[\[tellers\]\]\n.*?(?=^\[|\Z)", "", text)
    if example == "transfer":
        text = text.replace('unit = "record"\n', "") + "\n" + _GIVEN
    return re.sub(r"(?m)^(most|least)_records = \d+", rf"\1_records = {RECORDS[example]}", text)


def scene(example: str, parties: int, seed: int, data: Path | None) -> Scene:
    """Adult, or people made up in its likeness, divided among parties; test rows are held by nobody."""
    text, each = study_text(example, parties), RECORDS[example]
    proposal = PROTOCOLS.proposal(text)
    rows, made_up = census_rows(data, parties * each + PUBLIC_ROWS, seed)
    try:
        own, others = census_data.split(rows, parties * each, CENSUS_TEST_ROWS + PUBLIC_ROWS, seed)
    except ValueError as too_few:
        raise Malformed(f"demo: {too_few}") from None
    held = [records_of(proposal, own[at : at + each]) for at in range(0, len(own), each)]
    public, test = others[:PUBLIC_ROWS], others[PUBLIC_ROWS:]
    given = {"rows": _public(proposal, records_of(proposal, public))} if proposal.given else {}
    columns = list(proposal.tables[0].columns)
    lines = tuple(
        {"table": proposal.tables[0].name, "columns": columns, "rows": _cells(columns, own[at : at + each])}
        for at in range(0, len(own), each)
    )
    everybody = _people(proposal, [record for records in held for record in records])
    return Scene(
        example, text, lines, everybody, _people(proposal, records_of(proposal, test)), made_up, given, tuple(held)
    )


def _cells(columns: Sequence[str], rows: Sequence[census_data.Row]) -> list[list[Any]]:
    """The rows of a table, with a number of each as the key of its record."""
    return [[number if column == "id" else row[column] for column in columns] for number, row in enumerate(rows)]


def records_of(proposal: Proposal, rows: Sequence[census_data.Row]) -> tuple[Record, ...]:
    """The records of these rows by the study's queries, in a peer's sandbox."""
    table, names = proposal.tables[0], [feature.name for feature in proposal.features]
    queries = [feature.query for feature in proposal.features] + [proposal.label.query]
    kinds = [feature.kind for feature in proposal.features] + [LABEL]
    with closing(Bench({table.name: table.columns})) as bench:
        bench.put(table.name, _cells(table.columns, rows))
        found = drawn(bench, queries, 0, Draw(len(rows), b""))
    values = [[value_of(kind, _NOTHING if one is None else one) for kind, one in zip(kinds, each, strict=True)]
              for each in found]
    return tuple(Record(dict(zip(names, each, strict=False)), each[-1]) for each in values)


def _people(proposal: Proposal, records: Sequence[Record]) -> People:
    return people_from_values(proposal.label, [(record.values, record.label) for record in records])


def _public(proposal: Proposal, records: Sequence[Record]) -> bytes:
    """The file that is given to everybody: every feature, and no label. A missing value is the middle of its range."""
    names, out = [feature.name for feature in proposal.features], StringIO()
    middles = {feature.name: sum(feature.range) / 2 for feature in proposal.features}
    rows = [[record.values[name] if record.values[name] is not None else middles[name] for name in names]
            for record in records]
    csv.writer(out, lineterminator="\n").writerows([names, *rows])
    return out.getvalue().encode()


@frozen
class Noise:
    """The distance of a published sum from the exact one, as a multiple of what the declared noise has on average."""

    distance: float
    least: float
    most: float

    @classmethod
    def of(cls, exact: Sequence[int], published: Sequence[int], variance: Fraction, alarm: float = ALARM) -> Noise:
        """The squares of independent discrete Gaussians over their variance: a chi-square, for deviations above 1."""
        squares = sum((one - other) ** 2 for one, other in zip(published, exact, strict=True)) / float(variance)
        ends = (float(chi2.ppf(alarm / 2, len(exact))), float(chi2.isf(alarm / 2, len(exact))))
        return cls(*(sqrt(square / len(exact)) for square in (squares, *ends)))


def scores(scene: Scene, published: Published) -> dict[str, Any]:
    """Errors and AUCs on the test rows of the published model and of those without sharing or without privacy."""
    manifest = PROTOCOLS.manifest(published.body("manifest"))
    survey, given = _asked(manifest), scene.given.get("rows", b"")
    exact, found = exact_sum(manifest, survey, scene.held, given), _published_sum(manifest, published)
    model = PROTOCOLS.model(published.body("model"))
    if not isinstance(model, LinearModel):
        raise Malformed("model: expected a linear one")
    quiet = linear_of(manifest, survey, NoisySum(tuple(exact), len(scene.held), found.variance, 1), given)
    each = len(scene.held[0])
    alone = [own_model(manifest, scene.train.take(np.arange(at, at + each)), scene.test)
             for at in range(0, len(scene.train), each)]
    noise, positive = Noise.of(exact, found.values, found.variance), float(scene.test.labels.mean())
    return {
        "records": each,
        "distance": round(noise.distance, 4),
        "distance_band": [round(noise.least, 4), round(noise.most, 4)],
        "models": {
            "published": _of_model(model, scene.test),
            "without noise": _of_model(quiet, scene.test),
            "one party alone": _rounded(*np.mean(alone, axis=0)),
            "all records, no privacy": own_model(manifest, scene.train, scene.test),
            "majority": _rounded(min(positive, 1 - positive), 0.5),
        },
    }


def _asked(study: Manifest) -> Survey:
    return study.surveys[0] if tellers_of(study) else vector_survey(study)


def exact_sum(study: Manifest, survey: Survey, held: Sequence[Sequence[Record]], given: bytes) -> list[int]:
    """The sum of all parties' vectors, made as their peers make them."""
    vectors = (vector_of(study, survey, Record({}, None, records), given=given) for records in held)
    return [sum(entries) for entries in zip(*vectors, strict=True)]


def _published_sum(study: Manifest, published: Published) -> NoisySum:
    """The sum that everybody can add up. Raises `Malformed` where none was opened."""
    if tellers_of(study):
        found = read_sum(study, 0, published.body(*place_of(0)))
        return NoisySum(found.values, found.accepted, found.noise, 1)
    masking = masking_of(study.part)
    pages = {number: read_page(study, number, published.body(*page_of(number))) for number in range(len(study.surveys))}
    values = opened(study.study_id, pages, masking.least, shape_of(vector_survey(study)).length)
    if values is None:
        raise Malformed("masks: the sum does not open")
    many = len(came(pages, masking.least))
    return NoisySum(tuple(values), many, masking.noise, many)


def own_model(study: Manifest, train: People, test: People) -> tuple[float, float]:
    """Test error and AUC of logistic regression on these records alone; of one label alone, that is said of all."""
    if train.alike:
        return _rounded(float((test.labels != train.labels[0]).mean()), 0.5)
    columns = [column_of(feature) for feature in study.features]
    rows, tested = (reals_of_people(columns, study.label.name, people) for people in (train, test))
    ranks: Floats = LogisticRegression(max_iter=1000).fit(rows, train.labels).decision_function(tested)
    return _rounded(float(((ranks > 0) != (test.labels == 1)).mean()), roc_auc(ranks, test.labels == 1))


def _of_model(model: LinearModel, test: People) -> tuple[float, float]:
    found = evaluate(model, test)
    return _rounded(1 - found.accuracy, found.auc)


def _rounded(error: float, auc: float) -> tuple[float, float]:
    return round(float(error), 4), round(float(auc), 4)
