"""The desk's templates. Everything is escaped; no page carries a script or a style of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.resources import files

import segno
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from aggregator.desk.estimates import Row
from aggregator.desk.facts import Reached
from anon.page.security import FORM_FIELD
from anon.page.wording import sentence


def environment() -> Environment:
    """The templates with their filters."""
    found = Environment(
        loader=PackageLoader("aggregator.desk"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["moment"] = moment
    found.filters |= {"qr": qr, "sentence": sentence}
    found.globals["whisker"] = whisker
    found.globals["mean_auc"] = mean_auc
    return found


def secret(token: str) -> Markup:
    """The hidden field that every form carries."""
    return Markup('<input type="hidden" name="{}" value="{}">').format(FORM_FIELD, token)


def mean_auc(reached: Sequence[Reached]) -> float:
    """The mean over tables, each weighed by its reports."""
    total = sum(one.reports for one in reached)
    return sum(one.auc * one.reports for one in reached) / total if total else 0.5


def whisker(row: Row) -> Markup:
    """A share as a bar and its interval as a line, on the scale from 0 to 1."""
    bar, low, high = (100 * min(max(value, 0.0), 1.0) for value in (row.share, row.low, row.high))
    return Markup(  # noqa: S704  (numbers alone)
        '<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect x="0" y="2" height="6" width="{bar:.2f}"/><line y1="5" y2="5" x1="{low:.2f}" x2="{high:.2f}"/></svg>'
    )


def moment(seconds: float) -> str:
    """An instant in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(seconds))


def qr(text: str) -> Markup:
    """A QR code as an inline drawing, black on white."""
    code = segno.make(text, error="m", micro=False)
    drawn = code.svg_inline(scale=4, border=4, dark="#000", light="#fff", svgclass="qr", lineclass=None)
    return Markup(drawn)  # noqa: S704  (made of modules, not of the text)


def static(name: str) -> str:
    """A file beside the templates."""
    return files("aggregator.desk").joinpath(f"static/{name}").read_text("utf-8")
