"""The binning documents: counts of perturbed answers, and the cuts that everyone computes from them.

Documents carry counts only; thresholds and cuts are a pure function of them, so that there is nothing to aim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from anon.encoding import decode, encode
from anon.errors import Malformed
from anon.ldp import SCALE
from anon.messages import VERSION
from anon.protocols.histogram.binning import (
    MedianSearch,
    edges_from_histogram,
    level_edges,
    median_start,
    median_step,
    threshold,
)
from anon.study.manifest import Manifest, Survey

Cuts = dict[str, tuple[float, ...]]


@frozen
class Answers:
    """How many answered a binning survey and how many reports support each of its m categories."""

    n: int
    counts: tuple[int, ...]


def count(survey: Survey, reports: Sequence[bytes]) -> Answers:
    """The answers in the reports of one survey."""
    mechanism = survey.build()
    return Answers(len(reports), tuple(mechanism.tally([mechanism.parse(report) for report in reports])))


def surveys_of_round(manifest: Manifest, turn: int) -> tuple[Survey, ...]:
    """The binning surveys of one round."""
    return tuple(one for one in manifest.surveys if one.kind != "histogram" and one.round == turn)


def thresholds_body(manifest: Manifest, turn: int, answers: Mapping[int, Answers]) -> bytes:
    """The document that opens round `turn` >= 1: [asked, said yes] of round `turn` - 1, per feature."""
    asked = {one.features[0]: _said_yes(answers[one.survey]) for one in surveys_of_round(manifest, turn - 1)}
    return encode([VERSION, manifest.study_id, turn, asked])


def edges_body(manifest: Manifest, answers: Mapping[int, Answers]) -> bytes:
    """The document that ends binning: level counts of quantile surveys, [asked, said yes] of the last round."""
    last = max(one.round for one in manifest.surveys if one.kind != "histogram")
    found: dict[str, Any] = {}
    for one in surveys_of_round(manifest, last):
        here = answers[one.survey]
        found[one.features[0]] = [here.n, list(here.counts)] if one.kind == "quantile" else _said_yes(here)
    return encode([VERSION, manifest.study_id, found])


def cuts(manifest: Manifest, thresholds: Sequence[bytes], edges: bytes | None) -> Cuts:
    """The cuts of every numeric feature: declared ones, and those found from the documents.

    `thresholds` are the bodies of rounds 1, 2, ... in order; `edges` is None only for a study without binning. Raises
    `Malformed` when a document lacks a feature or holds impossible counts.
    """
    found: Cuts = {feature.name: feature.cuts for feature in manifest.features if feature.cuts}
    if edges is None:
        return found
    rows = [_fields(body, 4)[3] for body in thresholds] + [_fields(edges, 3)[2]]
    for name in sorted({one.features[0] for one in manifest.surveys if one.kind != "histogram"}):
        surveys = [one for one in manifest.surveys if one.kind != "histogram" and one.features[0] == name]
        if surveys[0].kind == "quantile":
            found[name] = _quantile_cuts(manifest, surveys[0], _row(rows[-1], name))
        else:
            found[name] = _median_cut(manifest, surveys, [_row(row, name) for row in rows])
    return found


def _quantile_cuts(manifest: Manifest, survey: Survey, row: list[Any]) -> tuple[float, ...]:
    n, counts = row
    if (
        not isinstance(counts, list)
        or len(counts) != survey.m
        or not all(type(c) is int and 0 <= c <= n for c in counts)
    ):
        raise Malformed(f"edges: expected {survey.m} counts for survey {survey.survey}")
    feature = manifest.feature(survey.features[0])
    return edges_from_histogram(level_edges(feature, survey.m), survey.build().unbias(counts, n), feature.bins)


def _median_cut(manifest: Manifest, surveys: Sequence[Survey], rows: Sequence[list[Any]]) -> tuple[float, ...]:
    feature = manifest.feature(surveys[0].features[0])
    search: MedianSearch = median_start(feature)
    for survey, (asked, said_yes) in zip(sorted(surveys, key=lambda one: one.round), rows, strict=True):
        if type(said_yes) is not int or not 0 <= said_yes <= asked:
            raise Malformed(f"thresholds: impossible counts for survey {survey.survey}")
        search = median_step(search, asked, said_yes, survey.p / SCALE, survey.q / SCALE)
    return (threshold(feature, search),)


def _said_yes(answers: Answers) -> list[int]:
    return [answers.n, answers.counts[1]]


def _fields(body: bytes, size: int) -> list[Any]:
    fields = decode(body, "binning document")
    if not isinstance(fields, list) or len(fields) != size or not isinstance(fields[-1], dict):
        raise Malformed(f"binning document: expected {size} fields")
    return fields


def _row(rows: dict[Any, Any], name: str) -> list[Any]:
    row = rows.get(name)
    if not isinstance(row, list) or len(row) != 2 or type(row[0]) is not int or row[0] < 0:
        raise Malformed(f"binning document: expected two fields for feature {name}")
    return row
