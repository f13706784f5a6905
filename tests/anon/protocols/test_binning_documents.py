"""The binning documents: what one side publishes the other side reads back, and nothing else is taken for one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from aggregator.protocols.histogram.part import count
from aggregator.protocols.tally import tallied
from anon.errors import Malformed
from anon.ldp import RawCategory
from anon.protocols.contract import DocumentArrived, Record
from anon.protocols.histogram import thresholds as cuts
from anon.protocols.registry import check_study
from anon.study.manifest import Manifest, Survey
from anon.wire.cbor import decode, encode
from peer.protocols.contract import part_of
from tests.anon.study.test_manifest import PAPER, manifest_of
from tests.anon.study.test_proposal import GOOD
from tests.support.protocols import parse_manifest

MANIFESTS = {"one-packet": manifest_of(GOOD), "paper": manifest_of(PAPER)}
both = pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS)


def answers_of(manifest: Manifest, turn: int, seed: int) -> dict[int, cuts.RoundCounts]:
    """The aggregator's counts for each survey of one round, from reports with seeded randomness."""
    rng = random.Random(seed)
    found = {}
    for survey in cuts.surveys_of_round(manifest, turn):
        built = survey.build()
        values = [RawCategory(int(survey.m * rng.random() ** 2), survey.m) for _ in range(200)]
        found[survey.survey] = count(
            survey, tallied(survey, [built.perturb(value, rng.randbytes).data for value in values])
        )
    return found


def published(manifest: Manifest, seed: int) -> tuple[dict[cuts.Place, bytes], dict[int, cuts.RoundCounts]]:
    bodies: dict[cuts.Place, bytes] = {}
    answers: dict[int, cuts.RoundCounts] = {}
    for turn in range(len({one.round for one in manifest.surveys if one.kind != "histogram"})):
        here = answers_of(manifest, turn, seed + turn)
        bodies[cuts.place_of(manifest, turn)] = cuts.body(manifest, turn, here)
        answers |= here
    return bodies, answers


@both
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_was_counted_is_what_is_read(manifest: Manifest, seed: int) -> None:
    bodies, answers = published(manifest, seed)
    assert cuts.parse_all(manifest, bodies) == answers


@both
def test_a_peer_bins_by_the_cuts_that_the_aggregator_learns_with(manifest: Manifest) -> None:
    """A peer whose value is on a cut stays below it; the least above goes to the next bin."""
    bodies, _ = published(manifest, 5)
    learned = cuts.study_cuts(manifest, cuts.parse_all(manifest, bodies))
    (binned,) = [feature for feature in manifest.features if feature.binned_privately]
    asked = next(one for one in manifest.surveys if one.kind == "histogram" and one.features == (binned.name,))
    documents = [DocumentArrived(kind, part, body) for (kind, part), body in bodies.items()]
    for number, cut in enumerate(learned[binned.name]):
        for value, expected in ((cut, number), (cut + 1e-6, number + 1)):
            (answer,) = part_of(manifest).answers(
                manifest, Record({binned.name: value}, 0.0), [(0, asked.survey)], documents
            )
            assert answer.category.value // 2 == expected


@both
def test_a_survey_needs_the_documents_of_the_rounds_before_it(manifest: Manifest) -> None:
    rounds = [one for one in manifest.surveys if one.kind != "histogram"]
    for survey in manifest.surveys:
        needed = cuts.needs(manifest, survey)
        if survey.kind == "histogram":
            binned = manifest.feature(survey.features[0]).binned_privately
            assert needed == (tuple(cuts.place_of(manifest, turn) for turn in range(len(rounds))) if binned else ())
        else:
            assert needed == tuple(("thresholds", turn) for turn in range(1, survey.round + 1))


FLAWS: dict[str, Callable[[list[Any]], object]] = {
    "another study": lambda fields: fields.__setitem__(1, bytes(32)),
    "another version": lambda fields: fields.__setitem__(0, 2),
    "a field more": lambda fields: fields.insert(2, 0),
    "no feature": lambda fields: fields[-1].clear(),
    "another feature": lambda fields: fields[-1].update(height=[1, 1]),
    "no pair": lambda fields: fields[-1].update(dict.fromkeys(fields[-1], 7)),
    "negative": lambda fields: fields[-1].update({name: [-1, row[1]] for name, row in fields[-1].items()}),
    "more than asked": lambda fields: fields[-1].update({name: [0, row[1]] for name, row in fields[-1].items()}),
    "text": lambda fields: fields[-1].update({name: [row[0], "1"] for name, row in fields[-1].items()}),
}


@both
@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flawed_document_is_refused(manifest: Manifest, flaw: str) -> None:
    bodies, _ = published(manifest, 1)
    for place, body in bodies.items():
        fields = decode(body, "document")
        FLAWS[flaw](fields)
        with pytest.raises(Malformed):
            cuts.parse(manifest, place, encode(fields))


@both
def test_a_missing_or_swapped_document_is_refused(manifest: Manifest) -> None:
    bodies, _ = published(manifest, 1)
    for place in bodies:
        with pytest.raises(Malformed, match="not among"):
            cuts.parse_all(manifest, {one: body for one, body in bodies.items() if one != place})
    with pytest.raises(Malformed):
        cuts.parse(manifest, ("thresholds", 99), bodies["edges", 0])


def _resurveyed(text: str, change: Callable[[Survey], Survey]) -> Manifest:
    manifest = manifest_of(text)
    return evolve(manifest, surveys=tuple(change(one) for one in manifest.surveys))


def test_a_study_whose_cuts_cannot_be_found_is_refused() -> None:
    """A round that is missing, and levels about a feature whose values are categories."""
    gap = _resurveyed(PAPER, lambda one: evolve(one, round=one.round + (one.kind == "threshold" and one.round == 4)))
    categorical = next(one.name for one in gap.features if not one.binned_privately)
    aimed = _resurveyed(GOOD, lambda one: evolve(one, features=(categorical,)) if one.kind == "quantile" else one)
    for lying in (gap, aimed):
        again = parse_manifest(lying.to_bytes())
        with pytest.raises(Malformed, match="cuts"):
            check_study(again)


def test_more_answers_than_any_cohort_are_refused() -> None:
    manifest = manifest_of(GOOD)
    place = cuts.place_of(manifest, 0)
    rows = {one.features[0]: [10**400, [10**400] * one.m] for one in cuts.surveys_of_round(manifest, 0)}
    with pytest.raises(Malformed, match="number of answers"):
        cuts.parse(manifest, place, encode([1, manifest.study_id, rows]))
