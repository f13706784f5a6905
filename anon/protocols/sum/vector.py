"""The exact vector of a record, or of a member's many, for a sum: as its own machine makes it, and a simulation.

Total over values: a missing one, a text or no number has its place like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from anon.errors import Malformed
from anon.protocols.categories import feature_map, label_category
from anon.protocols.contract import Record
from anon.protocols.sum.classifiers import CLASSIFY
from anon.protocols.sum.design import summed_of
from anon.protocols.sum.parties import classifier_of
from anon.protocols.sum.rule import rule_of
from anon.protocols.vectors.averaging import AveragedWeights
from anon.protocols.vectors.checks import CheckSums
from anon.protocols.vectors.columns import CONSTANT
from anon.protocols.vectors.gradient import GradientSums
from anon.protocols.vectors.moments import MomentSums
from anon.protocols.vectors.residuals import ResidualSums, ScoreSums
from anon.protocols.vectors.rule import RuleModel
from anon.protocols.vectors.tables import TableSums
from anon.protocols.vectors.transfer import TransferredVotes, public_rows
from anon.study.manifest import Manifest, Survey


def vector_of(
    manifest: Manifest, survey: Survey, record: Record, told: Sequence[int] | RuleModel = (), given: bytes = b""
) -> Sequence[int]:
    """The exact vector of a record, or of many, whatever they hold. `told`: the weights of a gradient or the model of a
    rule, as they stand before its round. `given`: the public rows on which members vote. Raises `Malformed` on account
    of these alone."""
    records = record.rows if manifest.records else (record,)
    labels = [label_category(manifest.label, one.label) for one in records]
    rows = [{**one.values, CONSTANT: 1} for one in records]
    match summed_of(manifest, survey):
        case ScoreSums() as table:
            return table.vector(rule_of(manifest).bin([*_categories(manifest, record).values()]), labels[0])
        case ResidualSums() as residuals if isinstance(told, RuleModel):
            return residuals.vector([*_categories(manifest, record).values()], labels[0], told)
        case TableSums() as tables:
            return tables.vector(_categories(manifest, record), labels[0])
        case MomentSums() as moments:
            name = manifest.label.name
            return moments.vector([{**row, name: 2 * label - 1} for row, label in zip(rows, labels, strict=True)])
        case GradientSums() as gradient if not isinstance(told, RuleModel):
            return gradient.vector(list(zip(rows, labels, strict=True)), told)
        case CheckSums() as check if not isinstance(told, RuleModel):
            return check.vector(rows[0], labels[0], told)
        case AveragedWeights() as averaged:
            return averaged.vector(list(zip(rows, labels, strict=True)))
        case TransferredVotes() as votes:
            if not rows:
                return [0] * votes.length
            public, own = public_rows(votes, given), [votes.row(row) for row in rows]
            return votes.vector(CLASSIFY[classifier_of(survey)](own, labels, public), public)
    raise Malformed("survey: of no sum that this program knows; update it")


def _categories(manifest: Manifest, record: Record) -> dict[str, int]:
    return {one.name: feature_map(one, one.cuts)(record.values.get(one.name)) for one in manifest.features}
