"""The histogram protocol's peer half: which surveys the tags draw, and the category that answers each.

Pure. A slot waits until the documents its survey needs have arrived; then there is exactly one `Answering` for it,
whatever the record holds. Thresholds and cuts are recomputed from published counts (design section 3, step 7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from anon.encoding import decode
from anon.errors import Malformed
from anon.ldp import RawCategory
from anon.ldp.mechanism import SCALE
from anon.protocols.contract import Aggregator, Answering, Continue, DocumentArrived, Finish, Step
from anon.protocols.histogram.binning import (
    MedianSearch,
    edges_from_histogram,
    level_edges,
    median_start,
    median_step,
    threshold,
)
from anon.protocols.histogram.categories import Value, histogram_category, level_category
from anon.protocols.histogram.tables import draw
from anon.study.manifest import Manifest, Survey

Counts = tuple[int, int] | tuple[int, tuple[int, ...]]


@frozen
class Record:
    """A snapshot's values by feature name, and the label's. Raw: only categories are derived from it."""

    values: Mapping[str, Value] = field(repr=False)
    label: Value = field(repr=False)


@frozen
class Waiting:
    """Slots still to be answered, as (slot, survey), and the published bodies that have arrived."""

    manifest: Manifest = field(repr=False)
    record: Record
    slots: tuple[tuple[int, int], ...]
    arrived: Mapping[tuple[str, int], Mapping[str, Any]] = field(factory=dict, repr=False)


def drawn_surveys(manifest: Manifest, seed: bytes, tags: Sequence[bytes]) -> tuple[int, ...]:
    """The survey that each slot's tag draws, in the order of slots. Nobody but the peer can compute it beforehand."""
    return tuple(draw(slot, seed, tag) for slot, tag in zip(manifest.slots, tags, strict=True))


def needs(manifest: Manifest, survey: int) -> tuple[tuple[str, int], ...]:
    """The documents (kind, part) without which a survey cannot be answered."""
    asked = manifest.survey(survey)
    if asked.kind == "quantile":
        return ()
    if asked.kind == "threshold":
        return tuple(("thresholds", turn) for turn in range(1, asked.round + 1))
    binned = [name for name in asked.features if manifest.feature(name).binned_privately]
    if not binned:
        return ()
    rounds = max((_rounds(manifest, name) for name in binned), default=1)
    return (*(("thresholds", turn) for turn in range(1, rounds)), ("edges", 0))


def start(manifest: Manifest, record: Record, slots: Sequence[tuple[int, int]]) -> Step[Waiting]:
    """Begin with the slots (slot, survey) still to be answered; those that need no document are answered at once."""
    return _answered(Waiting(manifest, record, tuple(slots)))


def step(state: Waiting, event: DocumentArrived) -> Step[Waiting]:
    """Take a document. Raises `Malformed` for a body that cannot be what its head says."""
    if event.kind not in ("thresholds", "edges"):
        return _answered(state)
    counts = parse_counts(event, state.manifest)
    return _answered(evolve(state, arrived={**state.arrived, (event.kind, event.part): counts}))


def _answered(state: Waiting) -> Step[Waiting]:
    ready = [one for one in state.slots if all(document in state.arrived for document in needs(state.manifest, one[1]))]
    outgoing = tuple(
        Answering(Aggregator(), slot, survey, category_of(state, state.manifest.survey(survey)))
        for slot, survey in ready
    )
    left = tuple(one for one in state.slots if one not in ready)
    return Continue(evolve(state, slots=left), outgoing) if left else Finish(outgoing)


def category_of(state: Waiting, survey: Survey) -> RawCategory:
    """The category that answers a survey whose documents have arrived. Total over records."""
    manifest, record = state.manifest, state.record
    if survey.kind == "histogram":
        cuts = {
            name: _cuts(state, name) for name in survey.features if manifest.feature(name).binned_privately
        }
        return histogram_category(manifest, survey, record.values, record.label, cuts)
    feature = manifest.feature(survey.features[0])
    if survey.kind == "quantile":
        edges = level_edges(feature, survey.m)
    else:
        edges = (threshold(feature, _search(state, feature.name, survey.round)),)
    return RawCategory(level_category(feature, record.values.get(feature.name), edges), survey.m)


def _cuts(state: Waiting, name: str) -> tuple[float, ...]:
    feature = state.manifest.feature(name)
    asked = _binning_surveys(state.manifest, name)[0]
    if asked.kind == "quantile":
        n, counts = state.arrived["edges", 0][name]
        estimates = asked.build().unbias(counts, n)
        return edges_from_histogram(level_edges(feature, asked.m), estimates, feature.bins)
    return (threshold(feature, _search(state, name, _rounds(state.manifest, name))),)


def _search(state: Waiting, name: str, rounds: int) -> MedianSearch:
    """Algorithm 1 after the answers of the first `rounds` rounds."""
    manifest = state.manifest
    surveys = _binning_surveys(manifest, name)
    search = median_start(manifest.feature(name))
    for turn in range(rounds):
        document = ("thresholds", turn + 1) if turn + 1 < len(surveys) else ("edges", 0)
        asked, said_yes = state.arrived[document][name]
        survey = surveys[turn]
        search = median_step(search, asked, said_yes, survey.p / SCALE, survey.q / SCALE)
    return search


def _binning_surveys(manifest: Manifest, name: str) -> list[Survey]:
    """The surveys that find a feature's cuts, in the order of rounds. Raises `Malformed` when there are none."""
    found = [one for one in manifest.surveys if one.kind != "histogram" and one.features == (name,)]
    if not found:
        raise Malformed(f"manifest: no survey finds the cuts of {name}; do not take part")
    return sorted(found, key=lambda survey: survey.round)


def _rounds(manifest: Manifest, name: str) -> int:
    return len(_binning_surveys(manifest, name))


def parse_counts(event: DocumentArrived, manifest: Manifest) -> Mapping[str, Any]:
    """Per privately binned feature its (n, counts): of the right features, whole and possible. Raises `Malformed`."""
    what = f"{event.kind} {event.part}"
    body = decode(event.body, what)
    heading = [1, manifest.study_id, event.part] if event.kind == "thresholds" else [1, manifest.study_id]
    if not isinstance(body, list) or body[:-1] != heading or not isinstance(body[-1], dict):
        raise Malformed(f"{what}: not this study's document; nothing is sent")
    surveys = {
        feature.name: _surveyed(manifest, feature.name, event)
        for feature in manifest.features
        if feature.binned_privately and _binning_surveys(manifest, feature.name)
    }
    expected = {name: survey for name, survey in surveys.items() if survey is not None}
    if set(body[-1]) != set(expected):
        raise Malformed(f"{what}: expected the counts of {', '.join(sorted(expected))}; nothing is sent")
    return {name: _counts(what, body[-1][name], survey) for name, survey in expected.items()}


def _surveyed(manifest: Manifest, name: str, event: DocumentArrived) -> Survey | None:
    surveys = _binning_surveys(manifest, name)
    if event.kind == "edges":
        return surveys[-1]
    return surveys[event.part - 1] if 1 <= event.part < len(surveys) else None


def _counts(what: str, pair: Any, survey: Survey) -> Counts:
    if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) is not int or pair[0] < 0:
        raise Malformed(f"{what}: expected a number of answers and their counts; nothing is sent")
    n, counts = pair
    listed = counts if survey.kind == "quantile" else [counts]
    length = survey.m if survey.kind == "quantile" else 1
    whole = isinstance(listed, list) and len(listed) == length and all(type(one) is int for one in listed)
    if not whole or not all(0 <= one <= n for one in listed):
        raise Malformed(f"{what}: counts that cannot be; nothing is sent")
    return (n, tuple(listed)) if survey.kind == "quantile" else (n, listed[0])
