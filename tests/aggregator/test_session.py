"""The table of a study's life: what is listed, what is not, and that only time and the number enrolled move it."""

from __future__ import annotations

import os
from itertools import product

import pytest

from aggregator.rules.lifecycle import TABLE, Effect, Event, Phase, deadline, due, read_word, step, turn_after, word_of
from aggregator.study.publish import prepare
from anon.protocols.registry import protocol_of
from anon.study import Manifest
from tests.support.protocols import parse_proposal
from tests.support.world import study_text

NOW = 1_700_000_000


def _manifest(design: str) -> Manifest:
    return prepare(parse_proposal(study_text(design)), bytes(32), NOW, os.urandom, lambda below: 0)[0]


def _walk(manifest: Manifest, enrolled: int) -> list[tuple[Phase, int, Event]]:
    """Every event of a study whose clock jumps from deadline to deadline."""
    phase, turn, met = Phase.ENROLLING, 0, []
    windows = [one.window for one in protocol_of(manifest).rounds(manifest)]
    while (until := deadline(manifest, windows, phase, turn)) is not None:
        assert until == 0 or due(manifest, windows, phase, turn, enrolled, until - 0.001) is None
        event = due(manifest, windows, phase, turn, enrolled, until)
        assert event is not None
        met.append((phase, turn, event))
        phase, turn = step(phase, event)[0], turn_after(turn, event)
    assert phase is Phase.ERASED
    return met


def test_an_unlisted_event_raises() -> None:
    for phase, event in product(Phase, Event):
        if (phase, event) not in TABLE:
            with pytest.raises(AssertionError):
                step(phase, event)


def test_every_phase_is_reached_and_every_effect_used() -> None:
    assert {phase for phase, _ in TABLE.values()} | {Phase.ENROLLING} == set(Phase)
    assert {effect for _, effects in TABLE.values() for effect in effects} == set(Effect)
    assert {event for _, event in TABLE} == set(Event)


@pytest.mark.parametrize(("design", "count"), [("cuts", 0), ("quantile", 1), ("median", 3)])
def test_a_study_takes_every_round(design: str, count: int) -> None:
    manifest = _manifest(design)
    rounds = protocol_of(manifest).rounds(manifest)
    assert [one.state for one in rounds] == ["binning"] * count + ["collecting"]
    assert [one.document is None for one in rounds] == [False] * count + [True]
    events = [event for _, _, event in _walk(manifest, 2)]
    middle = [Event.ROUND_CLOSED] * count + [Event.LAST_ROUND_CLOSED]
    end = [Event.TRANSCRIPTS_PUBLISHED, Event.RETENTION_PASSED]
    assert events == [Event.ENROLMENT_CLOSED, Event.SETTLED, *middle, *end]


def test_a_stored_word_is_read_as_the_round_it_was() -> None:
    words = ["binning", "binning", "binning", "collecting"]
    assert [read_word("binning", turn, words) for turn in range(3)] == [(Phase.ROUND, turn) for turn in range(3)]
    assert read_word("collecting", 3, words) == (Phase.ROUND, 3)
    assert read_word("learning", 2, words) == (Phase.LEARNING, 2)
    assert [word_of(Phase.ROUND, turn, words) for turn in range(4)] == words and word_of(
        Phase.ERASED, 3, words
    ) == "erased"
    for word, turn in (("sleeping", 0), ("collecting", 2), ("collecting", 4), ("binning", -2)):
        with pytest.raises(ValueError, match=word):
            read_word(word, turn, words)


def test_too_few_and_nothing_else_happens() -> None:
    manifest = _manifest("cuts")
    events = [event for _, _, event in _walk(manifest, manifest.cohort.minimum - 1)]
    assert events == [Event.TOO_FEW_ENROLLED, Event.RETENTION_PASSED]
    effects = TABLE[Phase.ENROLLING, Event.TOO_FEW_ENROLLED][1]
    assert effects == (Effect.PUBLISH_ABANDONED,)


def test_the_seed_is_revealed_after_the_roster_and_the_score_value_after_the_transcripts() -> None:
    closing = TABLE[Phase.ENROLLING, Event.ENROLMENT_CLOSED][1]
    assert closing.index(Effect.PUBLISH_ROSTER) < closing.index(Effect.REVEAL_SEED)
    ending = TABLE[Phase.ROUND, Event.LAST_ROUND_CLOSED][1]
    last = (Effect.FREEZE_LAST_ROUND, Effect.PUBLISH_COUNTS, Effect.PUBLISH_TRANSCRIPTS, Effect.REVEAL_SCORE_VALUE)
    assert ending == last
