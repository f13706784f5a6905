"""The histogram protocol's peer half: which surveys the tags draw, and the category that answers each.

Pure. A slot waits until the documents its survey needs have arrived; then there is exactly one `Answering` for it,
whatever the record holds. Thresholds and cuts are recomputed from published counts (design section 3, step 7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from anon.ldp import RawCategory
from anon.protocols.contract import Aggregator, Answering, Continue, DocumentArrived, Finish, Step
from anon.protocols.histogram import cuts
from anon.protocols.histogram.bits import bit_answer
from anon.protocols.histogram.categories import (
    Value,
    feature_category,
    histogram_category,
    label_category,
    level_category,
)
from anon.protocols.histogram.tables import draw
from anon.study.manifest import Manifest, Survey


@frozen
class Record:
    """A snapshot's values by feature name, and the label's. Raw: only categories are derived from it."""

    values: Mapping[str, Value] = field(repr=False)
    label: Value = field(repr=False)


@frozen
class Waiting:
    """Slots still to be answered, as (slot, survey), and the answers in the documents that have arrived."""

    manifest: Manifest = field(repr=False)
    record: Record
    slots: tuple[tuple[int, int], ...]
    published: cuts.Published = field(factory=dict, repr=False)


def drawn_surveys(manifest: Manifest, seed: bytes, tags: Sequence[bytes]) -> tuple[int, ...]:
    """The survey that each slot's tag draws, in the order of slots. Nobody but the peer can compute it beforehand."""
    return tuple(draw(slot, seed, tag) for slot, tag in zip(manifest.slots, tags, strict=True))


def needs(manifest: Manifest, survey: int) -> tuple[tuple[str, int], ...]:
    """The documents (kind, part) without which a survey cannot be answered."""
    return cuts.needs(manifest, manifest.survey(survey))


def start(manifest: Manifest, record: Record, slots: Sequence[tuple[int, int]]) -> Step[Waiting]:
    """Begin with the slots (slot, survey) still to be answered; those that need no document are answered at once."""
    return _answered(Waiting(manifest, record, tuple(slots)))


def step(state: Waiting, event: DocumentArrived) -> Step[Waiting]:
    """Take a document. Raises `Malformed` for a body that cannot be what its head says."""
    if event.kind not in ("thresholds", "edges"):
        return _answered(state)
    published = cuts.parse(state.manifest, (event.kind, event.part), event.body)
    return _answered(evolve(state, published={**state.published, **published}))


def _answered(state: Waiting) -> Step[Waiting]:
    ready = [one for one in state.slots if _can_answer(state, one[1])]
    outgoing = tuple(
        Answering(Aggregator(), slot, survey, category_of(state, state.manifest.survey(survey)))
        for slot, survey in ready
    )
    left = tuple(one for one in state.slots if one not in ready)
    return Continue(evolve(state, slots=left), outgoing) if left else Finish(outgoing)


def _can_answer(state: Waiting, survey: int) -> bool:
    before = cuts.asked_before(state.manifest, state.manifest.survey(survey))
    return all(one.survey in state.published for one in before)


def category_of(state: Waiting, survey: Survey) -> RawCategory:
    """The category that answers a survey whose documents have arrived. Total over records.

    That of a one-bit survey is a sign and a label (`anon.protocols.histogram.bits`), which `peer.release` rounds.
    """
    manifest, record = state.manifest, state.record
    if survey.kind == "histogram":
        known = {name: cuts.feature_cuts(manifest, name, state.published) for name in survey.features}
        return histogram_category(manifest, survey, record.values, record.label, known)
    if survey.kind == "bit":
        asked = manifest.feature(survey.features[0])
        known_cuts = cuts.feature_cuts(manifest, asked.name, state.published) if asked.kind == "numeric" else ()
        place = feature_category(asked, record.values.get(asked.name), known_cuts)
        return bit_answer(survey.signs[place], label_category(manifest.label, record.label))
    feature = manifest.feature(survey.features[0])
    edges = cuts.asked_edges(manifest, survey, state.published)
    return RawCategory(level_category(feature, record.values.get(feature.name), edges), survey.m)
