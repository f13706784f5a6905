"""A study's life: one table of state x event, and the pure rule that says which event is due.

Deadlines come from the manifest's timetable alone; nothing but time and the number of enrolments moves a study.
Effects are idempotent and the state is stored after them, so that a crash repeats them and changes nothing.
"""

from __future__ import annotations

from enum import StrEnum

from anon.study.manifest import Manifest, Window


class Phase(StrEnum):
    """Where a study is."""

    ENROLLING = "enrolling"
    SETTLING = "settling"
    BINNING = "binning"
    COLLECTING = "collecting"
    LEARNING = "learning"
    PUBLISHED = "published"
    ABANDONED = "abandoned"
    ERASED = "erased"


class Event(StrEnum):
    """What happened."""

    ENROLMENT_CLOSED = "enrolment closed"
    TOO_FEW_ENROLLED = "too few enrolled"
    SETTLED = "settled"
    SETTLED_WITH_CUTS = "settled, no cuts to find"
    ROUND_CLOSED = "binning round closed"
    LAST_ROUND_CLOSED = "last binning round closed"
    COLLECTION_CLOSED = "collection closed"
    TRANSCRIPTS_PUBLISHED = "transcripts published"
    RETENTION_PASSED = "retention passed"


class Effect(StrEnum):
    """What to do about it."""

    PUBLISH_ABANDONED = "publish that the study is abandoned"
    PUBLISH_ROSTER = "publish the roster"
    REVEAL_SEED = "reveal the seed value"
    ISSUE_CREDENTIALS = "issue the credentials"
    FREEZE_ROUND = "stop accepting packets of the round"
    PUBLISH_THRESHOLDS = "publish the round's counts"
    PUBLISH_EDGES = "publish the counts that give the cuts"
    FREEZE_COLLECTION = "stop accepting packets"
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
    (Phase.SETTLING, Event.SETTLED): (Phase.BINNING, ()),
    (Phase.SETTLING, Event.SETTLED_WITH_CUTS): (Phase.COLLECTING, ()),
    (Phase.BINNING, Event.ROUND_CLOSED): (Phase.BINNING, (Effect.FREEZE_ROUND, Effect.PUBLISH_THRESHOLDS)),
    (Phase.BINNING, Event.LAST_ROUND_CLOSED): (Phase.COLLECTING, (Effect.FREEZE_ROUND, Effect.PUBLISH_EDGES)),
    (Phase.COLLECTING, Event.COLLECTION_CLOSED): (
        Phase.LEARNING,
        (Effect.FREEZE_COLLECTION, Effect.PUBLISH_TRANSCRIPTS, Effect.REVEAL_SCORE_VALUE),
    ),
    (Phase.LEARNING, Event.TRANSCRIPTS_PUBLISHED): (Phase.PUBLISHED, (Effect.PUBLISH_MODEL,)),
    (Phase.PUBLISHED, Event.RETENTION_PASSED): (Phase.ERASED, (Effect.ERASE,)),
    (Phase.ABANDONED, Event.RETENTION_PASSED): (Phase.ERASED, (Effect.ERASE,)),
}


def step(phase: Phase, event: Event) -> tuple[Phase, tuple[Effect, ...]]:
    """The next phase and the effects that lead there. An event that the table does not list raises `AssertionError`."""
    if (phase, event) not in TABLE:
        raise AssertionError(f"a study that is {phase} cannot meet: {event}")
    return TABLE[phase, event]


def rounds(manifest: Manifest) -> tuple[Window, ...]:
    """The windows of the binning rounds, in order."""
    windows = {survey.round: survey.window for survey in manifest.surveys if not survey.asks_label}
    return tuple(windows[turn] for turn in sorted(windows))


def collection(manifest: Manifest) -> Window | None:
    """The window of collection; None when no survey asks for a histogram."""
    return next((survey.window for survey in manifest.surveys if survey.asks_label), None)


def deadline(manifest: Manifest, phase: Phase, turn: int) -> float | None:
    """When the phase ends, in unix seconds; None when nothing more happens. 0 means at once."""
    table = manifest.timetable
    if phase is Phase.ENROLLING:
        return table.enrol_closes
    if phase is Phase.SETTLING:
        return table.settled
    if phase is Phase.BINNING:
        return rounds(manifest)[turn].closes
    if phase is Phase.COLLECTING:
        window = collection(manifest)
        return window.closes if window else 0
    if phase is Phase.LEARNING:
        return 0
    return None if phase is Phase.ERASED else table.ends + manifest.release.retention


def due(manifest: Manifest, phase: Phase, turn: int, enrolled: int, now: float) -> Event | None:
    """The event that has happened by `now`, or None while the phase lasts."""
    until = deadline(manifest, phase, turn)
    if until is None or now < until:
        return None
    if phase is Phase.ENROLLING:
        return Event.ENROLMENT_CLOSED if enrolled >= manifest.cohort.minimum else Event.TOO_FEW_ENROLLED
    if phase is Phase.SETTLING:
        return Event.SETTLED if rounds(manifest) else Event.SETTLED_WITH_CUTS
    if phase is Phase.BINNING:
        return Event.LAST_ROUND_CLOSED if turn + 1 == len(rounds(manifest)) else Event.ROUND_CLOSED
    if phase is Phase.COLLECTING:
        return Event.COLLECTION_CLOSED
    return Event.TRANSCRIPTS_PUBLISHED if phase is Phase.LEARNING else Event.RETENTION_PASSED


def turn_after(turn: int, event: Event) -> int:
    """The binning round after an event."""
    return turn + 1 if event is Event.ROUND_CLOSED else turn
