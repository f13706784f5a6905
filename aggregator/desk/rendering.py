"""The desk's templates. Everything is escaped; no page carries a script or a style of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment
from markupsafe import Markup

from aggregator.protocols.contract import PartScore
from aggregator.protocols.estimates import EstimateRow
from anon.kit.page.gate import FORM_FIELD
from anon.kit.page.rendering import qr_drawing, templates_of
from anon.protocols import consent_words
from anon.text.instants import instant


@cache
def environment() -> Environment:
    """The templates with their filters."""
    environment = templates_of("aggregator.desk")
    environment.filters |= {"moment": instant, "qr": qr_drawing}
    environment.globals["whisker"] = whisker
    environment.globals["mean_auc"] = mean_auc
    environment.globals["heads"] = consent_words
    return environment


def secret(token: str) -> Markup:
    """The hidden field that every form carries."""
    return Markup('<input type="hidden" name="{}" value="{}">').format(FORM_FIELD, token)


def mean_auc(reached: Sequence[PartScore]) -> float:
    """The mean over tables, each weighed by its reports."""
    total = sum(table.reports for table in reached)
    return sum(table.auc * table.reports for table in reached) / total if total else 0.5


def whisker(row: EstimateRow) -> Markup:
    """A share as a bar and its interval as a line, on the scale from 0 to 1; a share of zero or less has no bar."""
    bar, low, high = (100 * min(max(value, 0.0), 1.0) for value in (row.share, row.low, row.high))
    drawn = f'<rect x="0" y="2" height="6" width="{bar:.2f}"/>' if bar else ""
    return Markup(  # noqa: S704  (numbers alone)
        '<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'{drawn}<line y1="5" y2="5" x1="{low:.2f}" x2="{high:.2f}"/></svg>'
    )


def static(name: str) -> str:
    """A file beside the templates."""
    return files("aggregator.desk").joinpath(f"static/{name}").read_text("utf-8")
