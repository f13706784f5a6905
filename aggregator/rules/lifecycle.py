"""A study's life: one table of state x event, and the pure rule that says which event is due.

Enrolling, settling, rounds 1 to n, learning, published. The rounds are the protocol's: this module is given their
windows, and the words under which the protocol's part has them stored. Deadlines come from the manifest alone; nothing
but time, the number of enrolments and a study's tellers moves it. How long tellers are waited for is not decided here
(`aggregator.study.sums`). Effects are idempotent and the state is stored after them, so that
a crash repeats them and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from anon.study.manifest import Manifest, Window


class Phase(StrEnum):
    """Where a study is."""

    ENROLLING = "enrolling"
    SETTLING = "settling"
    ROUND = "round"
    LEARNING = "learning"
    PUBLISHED = "published"
    ABANDONED = "abandoned"
    ENDED = "ended"  # a round never has a sum
    ERASED = "erased"


OVER = frozenset({Phase.PUBLISHED, Phase.ABANDONED, Phase.ENDED, Phase.ERASED})
"""Phases in which a study is over for its members."""


class Event(StrEnum):
    """Facts that move the study."""

    ENROLMENT_CLOSED = "enrolment closed"
    TOO_FEW_ENROLLED = "too few enrolled"
    SETTLED = "settled"
    ROUND_CLOSED = "round closed"
    LAST_ROUND_CLOSED = "last round closed"
    NO_SUM = "no sum"
    TRANSCRIPTS_PUBLISHED = "transcripts published"
    RETENTION_PASSED = "retention passed"


class Effect(StrEnum):
    """Acts that follow an event."""

    PUBLISH_ABANDONED = "publish that the study is abandoned"
    PUBLISH_ROSTER = "publish the roster"
    REVEAL_SEED = "reveal the seed value"
    ISSUE_CREDENTIALS = "issue the credentials"
    FREEZE_ROUND = "stop accepting packets of the round"
    PUBLISH_COUNTS = "publish the round's counts or sums"
    PUBLISH_NO_SUM = "publish why the round has no sum"
    FREEZE_LAST_ROUND = "stop accepting packets"
    PUBLISH_TRANSCRIPTS = "publish the transcripts"
    REVEAL_SCORE_VALUE = "reveal the value that draws the score cohort"
    PUBLISH_MODEL = "learn, publish the model and its report"
    ERASE = "erase packets, enrolments and transcripts"


TABLE: dict[tuple[Phase, Event], tuple[Phase, tuple[Effect, ...]]] = {
    (Phase.ENROLLING, Event.TOO_FEW_ENROLLED): (Phase.ABANDONED, (Effect.PUBLISH_ABANDONED,)),
    (Phase.ENROLLING, Event.ENROLMENT_CLOSED): (
        Phase.SETTLING,
        (Effect.PUBLISH_ROSTER, Effect.REVEAL_SEED, Effect.ISSUE_CREDENTIALS),
    ),
    (Phase.SETTLING, Event.SETTLED): (Phase.ROUND, ()),
    (Phase.ROUND, Event.ROUND_CLOSED): (Phase.ROUND, (Effect.FREEZE_ROUND, Effect.PUBLISH_COUNTS)),
    (Phase.ROUND, Event.LAST_ROUND_CLOSED): (
        Phase.LEARNING,
        (
            Effect.FREEZE_LAST_ROUND,
            Effect.PUBLISH_COUNTS,
            Effect.PUBLISH_TRANSCRIPTS,
            Effect.REVEAL_SCORE_VALUE,
        ),
    ),
    (Phase.ROUND, Event.NO_SUM): (Phase.ENDED, (Effect.PUBLISH_NO_SUM,)),
    (Phase.LEARNING, Event.TRANSCRIPTS_PUBLISHED): (Phase.PUBLISHED, (Effect.PUBLISH_MODEL,)),
    (Phase.PUBLISHED, Event.RETENTION_PASSED): (Phase.ERASED, (Effect.ERASE,)),
    (Phase.ABANDONED, Event.RETENTION_PASSED): (Phase.ERASED, (Effect.ERASE,)),
    (Phase.ENDED, Event.RETENTION_PASSED): (Phase.ERASED, (Effect.ERASE,)),
    # a study that cannot go on is erased all the same
    (Phase.ENROLLING, Event.RETENTION_PASSED): (Phase.ERASED, (Effect.ERASE,)),
    (Phase.SETTLING, Event.RETENTION_PASSED): (Phase.ERASED, (Effect.ERASE,)),
    (Phase.ROUND, Event.RETENTION_PASSED): (Phase.ERASED, (Effect.ERASE,)),
    (Phase.LEARNING, Event.RETENTION_PASSED): (Phase.ERASED, (Effect.ERASE,)),
}


def step(phase: Phase, event: Event) -> tuple[Phase, tuple[Effect, ...]]:
    """The next phase and the effects that lead there. An event that the table does not list raises `AssertionError`."""
    if (phase, event) not in TABLE:
        raise AssertionError(f"a study that is {phase} cannot meet: {event}")
    return TABLE[phase, event]


def word_of(phase: Phase, turn: int, words: Sequence[str]) -> str:
    """The word under which a study is stored and shown; in a round the word of that round."""
    return words[turn] if phase is Phase.ROUND else str(phase)


def read_word(word: str, turn: int, words: Sequence[str]) -> tuple[Phase, int]:
    """Phase and round (from 0) of a stored study. Raises `ValueError` for a word that is none, or of another round."""
    if 0 <= turn < len(words) and words[turn] == word:
        return Phase.ROUND, turn
    return Phase(word), turn


def deadline(manifest: Manifest, windows: Sequence[Window], phase: Phase, turn: int) -> float | None:
    """When the phase ends, in unix seconds; None when nothing more happens. 0 means at once. `windows`: the rounds'."""
    table = manifest.timetable
    if phase is Phase.ENROLLING:
        return table.enrol_closes
    if phase is Phase.SETTLING:
        return table.settled
    if phase is Phase.ROUND:
        return windows[turn].closes
    if phase is Phase.LEARNING:
        return 0
    return None if phase is Phase.ERASED else table.ends + manifest.release.retention


def due(
    manifest: Manifest, windows: Sequence[Window], phase: Phase, turn: int, enrolled: int, now: float
) -> Event | None:
    """The event that has happened by `now`, or None while the phase lasts."""
    until = deadline(manifest, windows, phase, turn)
    if until is None or now < until:
        return None
    if phase is Phase.ENROLLING:
        return Event.ENROLMENT_CLOSED if enrolled >= manifest.cohort.minimum else Event.TOO_FEW_ENROLLED
    if phase is Phase.SETTLING:
        return Event.SETTLED
    if phase is Phase.ROUND:
        return Event.LAST_ROUND_CLOSED if turn + 1 == len(windows) else Event.ROUND_CLOSED
    return Event.TRANSCRIPTS_PUBLISHED if phase is Phase.LEARNING else Event.RETENTION_PASSED


def due_though_stuck(manifest: Manifest, phase: Phase, now: float) -> Event | None:
    """Of a study that cannot go on: nothing happens until its retention has passed."""
    over = now >= manifest.timetable.ends + manifest.release.retention
    return Event.RETENTION_PASSED if over and phase is not Phase.ERASED else None


def may_lack(manifest: Manifest, windows: Sequence[Window], phase: Phase, turn: int, now: float) -> bool:
    """True if by now packets may have been sent, or documents signed, that a store of this state does not have."""
    if phase in OVER:
        return False
    until = deadline(manifest, windows, phase, turn)
    return until is None or now >= until or (phase is Phase.ROUND and now >= windows[turn].opens)


def turn_after(turn: int, event: Event) -> int:
    """The round after an event."""
    return turn + 1 if event is Event.ROUND_CLOSED else turn
