"""The texts of notifications: that something is, never what. Pure.

A notification can be seen by whoever sees the screen, locked or not, and is mirrored to phones by some desktops. So its
words are one of four fixed sentences without a title, a number or a value. And it must not tell anybody on the network
when a packet left. "Everything is sent" is said after every window of the study has closed. All of it is said at looks
whose times are drawn from nothing but randomness. States depend on nothing in the data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum

from anon.text.sentences import say
from anon.values import frozen
from peer.rules.lifecycle import State
from peer.rules.schedule import uniform
from peer.store.records import Study

FIRST_LOOK = (60.0, 600.0)
NEXT_LOOK = (1800.0, 5400.0)
"""Seconds between which a look is drawn: after the start, and after each look. One notification a look at most."""


class Matter(StrEnum):
    """The notices that are due, the most urgent first."""

    ANSWER = "answer"
    ATTENTION = "attention"
    SENT = "sent"
    OVER = "over"


SENTENCES = {
    Matter.ANSWER: say("A study waits for your answer."),
    Matter.ATTENTION: say("Something needs you. Your studies say what to do."),
    Matter.SENT: say("What you agreed to was sent. Nothing is left to do."),
    Matter.OVER: say("A study is over. Look what became of it."),
}


@frozen
class StudySnapshotForNotice:
    """One study as far as telling goes: `closes` is when its last window does, `troubled` whether a reason is kept."""

    study: str
    state: State
    closes: float
    troubled: bool


@frozen
class Happening:
    """A matter and whose it is: a study's id, or the home itself."""

    matter: Matter
    about: str

    @property
    def key(self) -> str:
        """Under which it is remembered, so that it is told once."""
        return f"{self.matter}:{self.about}"


def happenings(
    studies: Iterable[StudySnapshotForNotice], waiting: Collection[str], faulty: bool, now: float
) -> frozenset[Happening]:
    """All that could be told now. `waiting` are studies whose link was opened and not answered."""
    happenings = {Happening(Matter.ATTENTION, "home")} if faulty else set()
    known = set()
    for study in studies:
        known.add(study.study)
        matter = _matter(study, now)
        if matter is not None:
            happenings.add(Happening(matter, study.study))
    return frozenset(happenings | {Happening(Matter.ANSWER, study) for study in waiting if study not in known})


def next_told(happened: Collection[Happening], already_told: Collection[str]) -> Matter | None:
    """The most urgent matter of those that were not told yet, if any."""
    fresh = {notice.matter for notice in happened if notice.key not in already_told}
    return next((matter for matter in Matter if matter in fresh), None)


def draw_look(first: bool, random_bytes: Callable[[int], bytes]) -> float:
    """Seconds until the next look."""
    return uniform(*(FIRST_LOOK if first else NEXT_LOOK), random_bytes)


def for_notice(study: Study) -> StudySnapshotForNotice:
    """As much of a study as telling goes by."""
    closes = 0 if study.refused else max(window.closes for window in study.manifest.windows)
    return StudySnapshotForNotice(study.study.hex(), study.state, closes, bool(study.reason))


def _matter(study: StudySnapshotForNotice, now: float) -> Matter | None:
    if study.state in (State.REFUSED, State.STOPPED):
        return Matter.ATTENTION
    if study.state in (State.FINISHED, State.ABANDONED):
        return Matter.OVER if now >= study.closes or study.state is State.ABANDONED else None
    if study.state is State.SENT and now >= study.closes:
        return Matter.SENT
    return Matter.ATTENTION if study.troubled and study.state is not State.WITHDRAWN else None
