"""The demos of parties that hold many records each: `averaging` and `transfer` with two tellers; `masks`, `groups`
and `trees` without any.

The census rows are divided among parties, and the study file of `examples/census/parties.toml` asks them. A demo knows
every record, which no aggregator does. So it can compare the published sum with the exact one: their distance has to be
that of the declared noise. By that law alone a run falls out of the band once in a million. Neither time nor an
unlucky division decides it. Of groups the sums of all together are compared, for each aggregation has each party once.
Trees publish no sum: see `examples.shared_rows`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from io import StringIO
from math import sqrt
from pathlib import Path
from typing import Any

from attrs import frozen
from scipy.stats import chi2

from aggregator.lab.simulation.ceilings import without_privacy
from aggregator.lab.simulation.evaluation import evaluate
from aggregator.lab.simulation.parties import Parties, asked_of, parties_of, vectors_of
from aggregator.lab.simulation.people import People, cells_of
from aggregator.protocols.installed import PROTOCOLS
from aggregator.protocols.sum.part import learned_of
from aggregator.protocols.sum.published import NoisySum
from anon.errors import Malformed
from anon.protocols.board import Pages, page_of, pages_in
from anon.protocols.contract import Record
from anon.protocols.models.ensemble import EnsembleModel
from anon.protocols.models.linear import LinearModel
from anon.protocols.sum.design import column_of, shape_of
from anon.protocols.sum.groups.drawing import KEYS, told
from anon.protocols.sum.groups.layout import grouping_of
from anon.protocols.sum.groups.shared import drawn_groups
from anon.protocols.sum.masks.layout import masking_of, vector_survey
from anon.protocols.sum.masks.masking import came, opened
from anon.protocols.sum.standing import place_of, read_sum
from anon.protocols.tellers import tellers_of
from anon.protocols.trees.shared import MOST_DRAWN
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal
from examples import shared_rows
from examples.census import data as census_data
from examples.published import Published
from examples.scenes import CENSUS_TEST_ROWS, Scene, census_rows

STUDY = Path(__file__).parent / "census" / "parties.toml"
RECORDS = {"averaging": 60, "transfer": 22, "masks": 200, "groups": 200, "trees": 200}
"""Of each party."""
PUBLIC_ROWS, GROUP = 500, 10
"""Of the file for everybody, and members of a group at most."""
ALARM = 1e-6
"""The chance that a run without a fault ends outside of the band."""
_DESIGNS = {
    "masks": 'kind = "masked-averaging"\nepsilon = 2.0\nstrength = 0.003\nleast = {half}\nhonest = {half}\n',
    "groups": 'kind = "group-averaging"\nepsilon = 2.0\nstrength = 0.003\naggregations = 2\ngroup = {group}\n'
    "receivers = 2\n",
    "trees": 'kind = "trees"\nepsilon = 2.0\nrows = {rows}\ndepth = 3\n',
    "transfer": f'kind = "transfer"\nepsilon = 4.0\npublic_rows = {PUBLIC_ROWS}\nclassifier = "tree"\n'
    "strength = 0.01\n",
}
_GIVEN = '[[given]]\nname = "rows"\ndescription = "Made public: rows without the income."\nfile = "rows.csv"\n'


def study_text(example: str, parties: int) -> str:
    """The study file of an example with so many parties."""
    half = max(3, parties // 2)
    cohort = f"minimum = {half}\nmaximum = {max(500, parties)}"
    text = re.sub(r"(?m)^minimum = \d+\nmaximum = \d+", cohort, STUDY.read_text("utf-8"))
    if example != "averaging":
        rows = min(RECORDS["trees"], MOST_DRAWN // max(500, parties))
        design = _DESIGNS[example].format(half=half, group=min(GROUP, max(2, parties // 2)), rows=rows)
        text = re.sub(r"(?ms)^\[design\]\n.*?\n(?=\[)", lambda _: f"[design]\n{design}\n", text)
    if example in ("masks", "groups", "trees"):
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
    held, public, test = (
        parties_of(proposal, _parts(rows, each)) for rows in (own, others[:PUBLIC_ROWS], others[PUBLIC_ROWS:])
    )
    given = {"rows": _public(proposal, [row for rows in public.held for row in rows])} if proposal.given else {}
    table = proposal.tables[0]
    lines = tuple(
        {"table": table.name, "columns": list(table.columns), "rows": [cells_of(row, table.columns) for row in rows]}
        for rows in _parts(own, each)
    )
    return Scene(example, text, lines, held.people, test.people, made_up, given, held.held)


def _parts(rows: Sequence[census_data.Row], each: int) -> list[list[dict[str, Any]]]:
    """So many rows of each party, with a number of each as the key of its record."""
    keyed = [{**row, "id": number} for number, row in enumerate(rows)]
    return [keyed[at : at + each] for at in range(0, len(keyed), each)]


def _public(proposal: Proposal, records: Sequence[Record]) -> bytes:
    """The file that is given to everybody: every feature, and no label. A missing value is the middle of its range."""
    names, out = [feature.name for feature in proposal.features], StringIO()
    middles = {feature.name: column_of(feature).value(0.0) for feature in proposal.features}
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
        return cls(*(sqrt(square / len(exact)) for square in (squares, *_ends(alarm, len(exact)))))


@cache
def _ends(alarm: float, entries: int) -> tuple[float, float]:
    return float(chi2.ppf(alarm / 2, entries)), float(chi2.isf(alarm / 2, entries))


def scores(scene: Scene, published: Published) -> dict[str, Any]:
    """Errors and AUCs on the test rows of the published model and of those without sharing or without privacy."""
    manifest = PROTOCOLS.manifest(published.body("manifest"))
    if manifest.protocol == "trees":
        return shared_rows.scores(scene.held, scene.test, published)
    survey, given = asked_of(manifest), scene.given.get("rows", b"")
    parties, found = Parties(manifest.label, scene.held), _published_sum(manifest, published)
    exact = vectors_of(manifest, survey, scene.held, given=given).sum(axis=0).tolist()
    model = PROTOCOLS.model(published.body("model"))
    if not isinstance(model, LinearModel | EnsembleModel):
        raise Malformed("model: expected a linear one, or those of groups")
    quiet = learned_of(manifest, survey, NoisySum(tuple(exact), len(parties), found.variance, 1), given).model
    times, positive = len(found.values) // len(exact), float(scene.test.labels.mean())
    noise = Noise.of(exact * times, found.values, found.variance)
    return {
        **({"groups": len(model.models)} if isinstance(model, EnsembleModel) else {}),
        "records": len(scene.held[0]),
        "distance": round(noise.distance, 4),
        "distance_band": [round(noise.least, 4), round(noise.most, 4)],
        "models": {
            "published": _of_model(model, scene.test),
            "without noise": _of_model(quiet, scene.test),
            "one party alone": _rounded(*without_privacy(manifest, parties.alone, scene.test)),
            "all records, no privacy": _rounded(*without_privacy(manifest, [scene.train], scene.test)),
            "majority": _rounded(max(positive, 1 - positive), 0.5),
        },
    }


def _published_sum(study: Manifest, published: Published) -> NoisySum:
    """The sum that everybody can add up. Raises `Malformed` where none was opened."""
    if tellers_of(study):
        found = read_sum(study, 0, published.body(*place_of(0)))
        return NoisySum(found.values, found.accepted, found.noise, 1)
    documents = {page_of(number): published.body(*page_of(number)) for number in range(len(study.surveys))}
    pages = pages_in(study, documents)
    if study.protocol == "groups":
        return _sum_of_groups(study, pages)
    masking = masking_of(study.part)
    values = opened(study.study_id, pages, masking.least, shape_of(vector_survey(study)).length)
    if values is None:
        raise Malformed("masks: the sum does not open")
    many = len(came(pages, masking.least))
    return NoisySum(tuple(values), many, masking.noise, many)


def _sum_of_groups(study: Manifest, pages: Pages) -> NoisySum:
    """The sum of all groups' sums, one aggregation after the other. Raises `Malformed` where one was not told."""
    grouping, values, many = grouping_of(study.part), list[int](), set[int]()
    for aggregation in range(grouping.aggregations):
        drawn = drawn_groups(study, aggregation, pages)
        sums = [found for group in drawn if (found := told(pages, group)) is not None]
        many.add(len(sums))
        if len(sums) < len(drawn) or 0 in many or len(many) > 1:
            raise Malformed("groups: a group told no sum")
        values += map(sum, zip(*sums, strict=True))
    noises = many.pop() * grouping.receivers
    return NoisySum(tuple(values), len(pages[KEYS].entries[KEYS]), grouping.noise, noises)


def _of_model(model: LinearModel | EnsembleModel, test: People) -> tuple[float, float]:
    found = evaluate(model, test)
    return _rounded(found.accuracy, found.auc)


def _rounded(accuracy: float, auc: float) -> tuple[float, float]:
    return round(1 - accuracy, 4), round(auc, 4)
