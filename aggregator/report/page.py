"""The study's report: one HTML page without scripts and without any request, whole in itself.

Privacy statement, what was asked, methods and threats stand here; model, estimates and the protocol's own methods come
from its part. Accuracy on people with known labels (ROC curve, calibration, errors by subgroup) is in it where staff
give a test set; the study itself has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from aggregator.protocols.contract import LearningResult, part_of
from aggregator.report.charts import Interval, bars, curve, intervals
from aggregator.report.evaluation import FEWEST, TestEvaluation
from aggregator.report.rehearsal import made_up
from aggregator.rules.counters import Traffic
from anon.accounting.statement import Batch, batch_of_reports
from anon.ldp import format_epsilon, odds_moved
from anon.protocols.cost_words import cost_in_words, is_local, promise_in_words, statement
from anon.protocols.models.linear import LinearModel
from anon.protocols.models.published import PublishedModel
from anon.protocols.names import expectation
from anon.protocols.registry import charge_of, protocol_of
from anon.protocols.tellers import presented_tellers, tellers_can, tellers_of
from anon.study.manifest import Manifest
from anon.text.html import seen
from anon.text.instants import instant
from anon.text.report_sheet import SHEET
from anon.transparency.fingerprint import words


def render(
    manifest: Manifest,
    learned: LearningResult,
    traffic: Traffic,
    accepted: Mapping[int, int],
    evaluation: TestEvaluation | None = None,
    unreadable: int = 0,
) -> str:
    """The page. `accepted`: packets per survey; `evaluation`: on a test set, if there is one; `unreadable`: packets of
    the transcripts that count for nothing."""
    part = part_of(manifest).report(manifest, learned)
    return _template(part.template).render(
        manifest=manifest,
        summary=protocol_of(manifest).summary(manifest),
        learned=learned,
        model=learned.model,
        subject=_subject(manifest, learned.model),
        traffic=traffic,
        accepted=sum(accepted.values()),
        unreadable=unreadable,
        fingerprint=words(manifest.study_id),
        tellers=presented_tellers(manifest),
        tellers_can=tellers_can((arrangement := tellers_of(manifest)) is not None and arrangement.has_spare),
        made_up=made_up(manifest),
        local=is_local(manifest),
        written=any(survey.written for survey in manifest.surveys),
        cost=cost_in_words(manifest),
        promise=promise_in_words(manifest),
        symbol=charge_of(manifest).budget.symbol,
        epsilon=format_epsilon(manifest.epsilon),
        epsilon_per_attribute=format_epsilon(manifest.epsilon_per_attribute),
        odds=odds_moved(manifest.epsilon),
        slots=[_slot(manifest, number) for number in range(len(manifest.slots))],
        anonymous=manifest.cohort.admission != "open",
        accounting=statement(manifest, _batch(manifest, accepted)),
        evaluation=evaluation,
        roc=_roc(evaluation),
        calibration=_calibration(evaluation),
        fewest=FEWEST,
        retention=_length(manifest.release.retention),
        rarity=_rarity(learned.model.chance if learned.model else None),
        expected={
            feature.name: expectation(feature, manifest.label.name)
            for feature in manifest.features
            if feature.expects
        },
        **part.values,
    )


def _subject(manifest: Manifest, model: PublishedModel | None) -> str:
    """The name of what is predicted: the label, or a linear model's number."""
    target = model.target if isinstance(model, LinearModel) else None
    return manifest.label.name if target is None else target.name


def ended(sentence: str) -> str:
    """The sentence with one mark at its end: its own, or a full stop."""
    return sentence if sentence.endswith(("?", "!", ".")) else f"{sentence}."


@lru_cache(8)
def _template(text: str) -> Template:
    """A protocol's page, compiled once: an audit writes a report for each of its checks."""
    return _environment().from_string(text)


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("aggregator.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=seen,
    )
    found.filters |= {"instant": instant, "ended": ended}
    found.globals |= {"sheet": SHEET, "bars": bars, "intervals": _intervals}
    return found


def _intervals(rows: Sequence[tuple[str, float, float, float]], said: str, middle: float | None = None) -> Markup:
    return intervals([Interval(*row) for row in rows], said, middle)


def _roc(evaluation: TestEvaluation | None) -> Markup | None:
    if evaluation is None:
        return None
    caption = f"ROC curve, area {evaluation.auc:.3f}"
    return curve(evaluation.roc, caption, "false positive rate", "true positive rate", steps=True)


def _calibration(evaluation: TestEvaluation | None) -> Markup | None:
    if evaluation is None:
        return None
    caption = f"calibration in tenths, expected error {evaluation.ece:.3f}"
    return curve(evaluation.calibration, caption, "predicted", "share of positives")


def _batch(manifest: Manifest, accepted: Mapping[int, int]) -> Batch:
    return batch_of_reports(manifest, [accepted.get(survey.survey, 0) for survey in manifest.surveys])


def _rarity(chance: float | None) -> str:
    """How many of a thousand studies; empty where nobody said."""
    if chance is None:
        return ""
    return f"about {1000 * chance:.0f} in 1,000" if chance >= 0.0015 else "no more than 1 in 1,000"


def _length(seconds: int) -> str:
    units = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
    length, unit = next(((length, unit) for length, unit in units if seconds >= length), units[-1])
    count = f"{seconds / length:.3g}"
    return f"{count} {unit}{'' if count == '1' else 's'}"


def _slot(manifest: Manifest, number: int) -> dict[str, object]:
    surveys = [manifest.surveys[row.survey] for row in manifest.slots[number].rows]
    kinds = sorted({survey.kind for survey in surveys})
    mechanisms = sorted({posed.mechanism for posed in surveys})
    dearest = format_epsilon(max(posed.epsilon for posed in surveys))
    return {"number": number, "surveys": len(surveys), "kinds": kinds, "mechanisms": mechanisms, "epsilon": dearest}
