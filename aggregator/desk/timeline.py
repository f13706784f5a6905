"""A study's life as staff read it: what has been, what is, and when the rest happens by itself."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from aggregator.rules.lifecycle import Phase
from anon.protocols.contract import Round
from anon.protocols.tellers import tellers_of
from anon.study.manifest import Manifest

DONE, NOW, NEXT = "done", "now", "next"


@frozen
class TimelineStage:
    """One stage. `ends`: in unix seconds. `state`: done, now or next."""

    name: str
    what: str
    ends: float
    state: str


def stages(manifest: Manifest, rounds: Sequence[Round], phase: Phase, turn: int) -> tuple[TimelineStage, ...]:
    """All stages of a study, in order. They follow `lifecycle.TABLE`; nothing else moves a study."""
    if phase is Phase.ABANDONED:
        closes = manifest.timetable.enrol_closes
        why = "fewer enrolled than the minimum: nothing was sent, nobody was charged"
        return (TimelineStage("enrolment", why, closes, DONE),)
    listed: list[tuple[Phase, int, str, str, float]] = [
        (Phase.ENROLLING, 0, "enrolment", "then the list of members is published, and all that their programs need",
         manifest.timetable.enrol_closes),
        (Phase.SETTLING, 0, "settling", "students' programs fetch that and check it", manifest.timetable.settled),
    ]
    after = "then the tellers add it up, and the sum is published" if tellers_of(manifest) else ""
    listed += [
        (Phase.ROUND, number, study_round.name, after or _then(study_round), study_round.window.closes)
        for number, study_round in enumerate(rounds[:-1])
    ]
    closes = rounds[-1].window.closes
    last = "then the noisy answers are published, without names"
    if tellers_of(manifest):
        last = "then the tellers add it up, and the sum is published with the list of packets"
    listed.append((Phase.ROUND, len(rounds) - 1, rounds[-1].name, last, closes))
    listed.append((Phase.LEARNING, 0, "learning", "the model is trained and published with its report",
                   manifest.timetable.ends))
    erased = manifest.timetable.ends + manifest.release.retention
    listed.append((Phase.PUBLISHED, 0, "published", "then packets, enrolments and transcripts are erased", erased))
    if phase is Phase.ENDED:
        why = "a round has no sum, and nothing more is published; then packets and enrolments are erased"
        listed = [*listed[: 3 + turn], (Phase.ENDED, 0, "no sum", why, erased)]
    place = _place(listed, phase, turn)
    return tuple(
        TimelineStage(name, what, ends, DONE if number < place else NOW if number == place else NEXT)
        for number, (_, _, name, what, ends) in enumerate(listed)
    )


def _place(listed: list[tuple[Phase, int, str, str, float]], phase: Phase, turn: int) -> int:
    round_number = turn if phase is Phase.ROUND else 0
    places = [place for place, stage in enumerate(listed) if stage[0] is phase and stage[1] == round_number]
    return places[0] if places else len(listed)


def _then(study_round: Round) -> str:
    return "then the round's counts are published" if study_round.document else "then the next round opens"


def time_left(until: float | None, now: float) -> str:
    """Until the present phase ends, in words."""
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
