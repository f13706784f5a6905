"""Small charts as inline SVG: no script, nothing fetched, readable in light and dark and in print.

Text takes the page's colour; each chart says its content in words for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen
from markupsafe import Markup, escape

from anon.text.html import seen

BLUE, ORANGE, GREY = "#3a6ea5", "#c2571a", "#8a8a8a"
_SIDE, _EDGE = 260, 44
_NAMES, _BARS, _LINE = 230, 330, 22

Point = tuple[float, float]


@frozen
class Interval:
    """A named value with the ends of its interval."""

    name: str
    value: float
    low: float
    high: float


def curve(points: Sequence[Point], caption: str, across: str, up: str, steps: bool = False) -> Markup:
    """A curve in the unit square above the diagonal: a ROC curve, or (with dots) a calibration."""
    places = [(_EDGE + x * _SIDE, 10 + (1 - y) * _SIDE) for x, y in points]
    path = " ".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(places))
    dots = "" if steps else "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{BLUE}"/>' for x, y in places)
    total = _EDGE + _SIDE + 14
    body = f'<path d="M{_EDGE} {10 + _SIDE}L{_EDGE + _SIDE} 10" stroke="{GREY}" stroke-dasharray="4 4" fill="none"/>'
    body += f'<rect x="{_EDGE}" y="10" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="{GREY}"/>'
    body += f'<path d="{path}" stroke="{BLUE}" stroke-width="2" fill="none"/>{dots}'
    for tick in (0.0, 0.5, 1.0):
        body += _text(_EDGE + tick * _SIDE, _SIDE + 26, f"{tick:g}", "middle")
        body += _text(_EDGE - 6, 14 + (1 - tick) * _SIDE, f"{tick:g}", "end")
    body += _text(_EDGE + _SIDE / 2, _SIDE + 42, across, "middle")
    body += f'<g transform="translate(12 {10 + _SIDE / 2:.0f}) rotate(-90)">{_text(0, 0, up, "middle")}</g>'
    return _drawing(total, _SIDE + 50, caption, body)


def intervals(rows: Sequence[Interval], caption: str, middle: float | None = None) -> Markup:
    """One line per row: a dot and its interval, on one scale; `middle` is marked."""
    ends = [end for row in rows for end in (row.low, row.high)] + ([middle] if middle is not None else [])
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    span = (high - low) or 1.0
    height = _LINE * len(rows) + 34

    def place(value: float) -> float:
        return _NAMES + (value - low) / span * _BARS

    body = ""
    if middle is not None:
        body += f'<path d="M{place(middle):.1f} 4V{height - 26}" stroke="{GREY}" stroke-dasharray="4 4"/>'
    for number, point in enumerate(rows):
        y = 16 + _LINE * number
        body += _text(_NAMES - 10, y + 4, _shortened(point.name), "end")
        body += f'<path d="M{place(point.low):.1f} {y}H{place(point.high):.1f}" stroke="{BLUE}" stroke-width="2"/>'
        body += f'<circle cx="{place(point.value):.1f}" cy="{y}" r="4" fill="{BLUE}"/>'
    for value in (low, high):
        body += _text(place(value), height - 6, f"{value:.3g}", "middle")
    return _drawing(_NAMES + _BARS + 24, height, caption, body)


def bars(rows: Sequence[tuple[str, float]], caption: str, most: float) -> Markup:
    """One bar per row from a common zero, negative ones to the left; `most` is the value of a full bar, the same for
    charts that are compared. A value that is shown as zero has no bar."""
    height, zero = _LINE * len(rows) + 12, _NAMES + _BARS / 2
    body = f'<path d="M{zero:.1f} 2V{height - 6}" stroke="{GREY}"/>'
    for number, (name, value) in enumerate(rows):
        y, width = 6 + _LINE * number, abs(value) / most * (_BARS / 2 - 46)
        start = zero if value >= 0 else zero - width
        colour = BLUE if value >= 0 else ORANGE
        body += _text(_NAMES - 10, y + 13, _shortened(name), "end")
        if not is_zero(value):
            body += f'<rect x="{start:.1f}" y="{y + 2}" width="{width:.1f}" height="{_LINE - 8}" fill="{colour}"/>'
        side, anchor = (zero + width + 4, "start") if value >= 0 else (zero - width - 4, "end")
        body += _text(side, y + 13, "0" if is_zero(value) else f"{value:+.2f}", anchor)
    return _drawing(_NAMES + _BARS + 24, height, caption, body)


def is_zero(value: float) -> bool:
    """True if a value is shown as zero, with two decimals."""
    return abs(value) < 0.005


def _drawing(width: float, height: float, caption: str, body: str) -> Markup:
    named = escape(seen(caption))
    return Markup(  # noqa: S704  (numbers, and texts that are escaped)
        f'<svg class="chart" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="img" aria-label="{named}" font-family="sans-serif" font-size="13"><title>{named}</title>{body}</svg>'
    )


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">{escape(seen(words))}</text>'


def _shortened(name: str) -> str:
    return name if len(name) <= 34 else name[:33] + "…"
