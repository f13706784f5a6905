"""A study's life as staff read it: what has been, what is, and when the rest happens by itself."""

from __future__ import annotations

from attrs import frozen

from aggregator.session import Phase, collection, deadline, rounds
from anon.study.manifest import Manifest

DONE, NOW, NEXT = "done", "now", "next"


@frozen
class Stage:
    """One stage. `ends`: in unix seconds. `state`: done, now or next."""

    name: str
    what: str
    ends: float
    state: str


def stages(manifest: Manifest, phase: Phase, turn: int) -> tuple[Stage, ...]:
    """All stages of a study, in order. They follow `session.TABLE`; nothing else moves a study."""
    if phase is Phase.ABANDONED:
        closes = manifest.timetable.enrol_closes
        why = "fewer enrolled than the minimum: nothing was sent, nobody was charged"
        return (Stage("enrolment", why, closes, DONE),)
    listed: list[tuple[Phase, int, str, str, float]] = [
        (Phase.ENROLLING, 0, "enrolment", "then roster, seed and credentials are published",
         manifest.timetable.enrol_closes),
        (Phase.SETTLING, 0, "settling", "peers fetch and check what was published", manifest.timetable.settled),
    ]
    for number, window in enumerate(rounds(manifest)):
        listed.append((Phase.BINNING, number, f"finding cuts, round {number + 1}",
                       "then the round's counts are published", window.closes))
    window_of = collection(manifest)
    closes = window_of.closes if window_of else manifest.timetable.ends
    listed.append((Phase.COLLECTING, 0, "collection", "then the transcripts are published", closes))
    listed.append((Phase.LEARNING, 0, "learning", "the model is trained and published with its report", closes))
    erased = manifest.timetable.ends + manifest.release.retention
    listed.append((Phase.PUBLISHED, 0, "published", "then packets, enrolments and transcripts are erased", erased))
    place = _place(listed, phase, turn)
    return tuple(
        Stage(name, what, ends, DONE if number < place else NOW if number == place else NEXT)
        for number, (_, _, name, what, ends) in enumerate(listed)
    )


def _place(listed: list[tuple[Phase, int, str, str, float]], phase: Phase, turn: int) -> int:
    round_number = turn if phase is Phase.BINNING else 0
    places = [place for place, one in enumerate(listed) if one[0] is phase and one[1] == round_number]
    return places[0] if places else len(listed)


def time_left(manifest: Manifest, phase: Phase, turn: int, now: float) -> str:
    """Until the present phase ends, in words."""
    until = deadline(manifest, phase, turn)
    if until is None:
        return "over"
    if until <= now:
        return "at work"
    return in_words(until - now)


def in_words(seconds: float) -> str:
    """A length of time with its two largest units."""
    parts, rest = [], int(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "less than 1 s"
