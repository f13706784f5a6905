"""A proposal as a study file, and forecasts as a chart: plain text and SVG, nothing to install."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from attrs import asdict, fields

from aggregator.lab.planning.plan import DesignChoice
from anon.study.proposal import Proposal
from anon.study.translations import PIECES

_COLOURS = ("#1b6ca8", "#c2571a", "#2e7d32", "#7b3fa0", "#8a6d1b", "#b3246b")
_LEFT, _TOP, _WIDTH, _HEIGHT = 60, 40, 520, 300


def to_toml(proposal: Proposal) -> str:
    """The study file of a proposal: `parse_proposal` reads back an equal one. Defaults are left out."""
    lines = ["version = 1"]
    lines += [f"{name} = {literal(getattr(proposal, name))}" for name in ("title", "purpose", "contact")]
    if proposal.protocol:
        lines.append(f"protocol = {literal(proposal.protocol)}")
    if proposal.data_source:
        lines.append(f"data_source = {literal(proposal.data_source)}")
    if proposal.language:
        lines.append(f"language = {literal(proposal.language)}")
    lines += ["", "[tables]"]
    lines += [f"{table.name} = {literal(table.columns)}" for table in proposal.tables]
    lines += _section("label", proposal.label)
    for feature in proposal.features:
        lines += _section("features", feature, repeated=True)
    for teller in proposal.tellers:
        lines += _section("tellers", teller, repeated=True)
    for name in ("design", "learning", "cohort"):
        lines += _section(name, getattr(proposal, name))
    schedule = asdict(proposal.schedule)
    lines += ["", "[schedule]", *(f'{name} = "{seconds}s"' for name, seconds in schedule.items() if seconds)]
    release = proposal.release
    lines += ["", "[release]", f'transcript = "{release.transcript}"', f'retention = "{release.retention}s"']
    if proposal.cover.connections:
        lines += _section("cover", proposal.cover)
    for text in proposal.texts:
        pieces = ((name, getattr(text, name)) for name in PIECES)
        lines += ["", f"[texts.{text.language}]", *(f"{name} = {literal(piece)}" for name, piece in pieces if piece)]
        if text.words:
            lines += ["", f"[texts.{text.language}.words]"]
            lines += [f"{words.name} = {literal(words.description)}" for words in text.words]
    return "\n".join(lines) + "\n"


def changes(before: Proposal, after: Proposal) -> list[str]:
    """A line for each key of design, learning, schedule or a feature whose value differs, defaults included."""
    lines = []
    for section in ("design", "learning", "schedule"):
        lines += _changed(section, getattr(before, section), getattr(after, section))
    known = {feature.name: feature for feature in before.features}
    for feature in after.features:
        if feature.name in known:
            lines += _changed(f"features: {feature.name}", known.pop(feature.name), feature)
        else:
            lines.append(f"[features: {feature.name}] added")
    return [*lines, *(f"[features: {name}] left out" for name in known)]


def _changed(section: str, before: Any, after: Any) -> list[str]:
    """The changed keys of two values of attrs."""
    old, new = asdict(before), asdict(after)
    return [
        f"[{section}] {key}: {_told(old, key)} -> {_told(new, key)}"
        for key in [*new, *(key for key in old if key not in new)]
        if old.get(key) != new.get(key)
    ]


def _told(values: dict[str, Any], key: str) -> str:
    return literal(values[key]) if values.get(key) is not None else "not set"


def _section(name: str, value: Any, repeated: bool = False) -> list[str]:
    head = f"[[{name}]]" if repeated else f"[{name}]"
    body = [
        f"{attribute.name} = {literal(getattr(value, attribute.name))}"
        for attribute in fields(type(value))
        if getattr(value, attribute.name) != attribute.default and getattr(value, attribute.name) != ()
    ]
    return ["", head, *body]


def literal(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # then a TOML basic string
    return repr(value)


def chart(choices: Iterable[DesignChoice]) -> str:
    """An SVG of the best design's expected AUC against epsilon, a line for each cohort, and nine in ten studies."""
    by_cohort: dict[int, list[DesignChoice]] = {}
    for choice in choices:
        by_cohort.setdefault(choice.best.cohort, []).append(choice)
    epsilons = sorted({choice.best.epsilon for group in by_cohort.values() for choice in group})
    box = f'viewBox="0 0 {_LEFT + _WIDTH + 160} {_TOP + _HEIGHT + 60}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif" font-size="13">',
        f'<text x="{_LEFT}" y="20" font-size="15">Expected ROC AUC of the best design, on made-up people</text>',
        *_axes(epsilons),
    ]
    for number, (cohort, group) in enumerate(sorted(by_cohort.items())):
        parts += _line(number, cohort, sorted(group, key=lambda planned: planned.best.epsilon), epsilons)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axes(epsilons: Sequence[float]) -> list[str]:
    parts = []
    for tenth in range(5, 11):
        y = _y(tenth / 10)
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _WIDTH}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 35}" y="{y + 4}">{tenth / 10:.1f}</text>')
    for epsilon in epsilons:
        x = _x(epsilon, epsilons)
        parts.append(f'<text x="{x}" y="{_TOP + _HEIGHT + 20}" text-anchor="middle">{epsilon:g}</text>')
    middle = _LEFT + _WIDTH / 2
    parts.append(f'<text x="{middle}" y="{_TOP + _HEIGHT + 42}" text-anchor="middle">record-level epsilon</text>')
    return parts


def _line(number: int, cohort: int, group: Sequence[DesignChoice], epsilons: Sequence[float]) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    points = [(_x(choice.best.epsilon, epsilons), choice.best) for choice in group]
    parts = [
        f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
        + " ".join(f"{x},{_y(best.auc)}" for x, best in points)
        + '"/>'
    ]
    for x, best in points:
        low, high = _y(max(best.low, 0.5)), _y(min(best.high, 1.0))
        parts.append(f'<line x1="{x}" y1="{low}" x2="{x}" y2="{high}" stroke="{colour}"/>')
        parts.append(
            f'<circle cx="{x}" cy="{_y(best.auc)}" r="4" fill="{colour}">'
            f"<title>{escape(best.design)}: {best.auc:.3f}</title></circle>"
        )
    at = f'x="{_LEFT + _WIDTH + 15}" y="{_TOP + 20 * number + 10}"'
    parts.append(f'<text {at} fill="{colour}">{cohort:,} people</text>')
    return parts


def _x(epsilon: float, epsilons: Sequence[float]) -> float:
    return round(_LEFT + _WIDTH * (epsilons.index(epsilon) + 0.5) / len(epsilons), 1)


def _y(auc: float) -> float:
    return round(_TOP + _HEIGHT * (1 - (auc - 0.5) / 0.5), 1)
