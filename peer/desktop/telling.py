"""What an owner is told by a notification: that something is, never what. Pure.

A notification can be seen by whoever sees the screen, locked or not, and is mirrored to phones by some desktops. So its
words are one of four fixed sentences without a title, a number or a value. And it must not tell anybody on the network
when a packet left: that everything is sent is said after every window of the study has closed, and all of it at looks
whose times are drawn from nothing but randomness (`peer.desktop.reminding`). States depend on nothing in the data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum

from attrs import frozen

from peer.schedule import uniform
from peer.session import State

FIRST_LOOK = (60.0, 600.0)
NEXT_LOOK = (1800.0, 5400.0)
"""Seconds between which a look is drawn: after the start, and after each look. One notification a look at most."""


class Matter(StrEnum):
    """What may be told, the most urgent first."""

    ANSWER = "answer"
    ATTENTION = "attention"
    SENT = "sent"
    OVER = "over"


SENTENCES = {
    Matter.ANSWER: "A study waits for your answer.",
    Matter.ATTENTION: "Something needs you. Open your page: it says what to do.",
    Matter.SENT: "What you agreed to was sent. Nothing is left to do.",
    Matter.OVER: "A study is over. Open your page to see what became of it.",
}


@frozen
class Seen:
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


def happenings(studies: Iterable[Seen], waiting: Collection[str], faulty: bool, now: float) -> frozenset[Happening]:
    """All that could be told now. `waiting` are studies whose link was opened and not answered."""
    found = {Happening(Matter.ATTENTION, "home")} if faulty else set()
    known = set()
    for one in studies:
        known.add(one.study)
        matter = _matter(one, now)
        if matter is not None:
            found.add(Happening(matter, one.study))
    return frozenset(found | {Happening(Matter.ANSWER, study) for study in waiting if study not in known})


def next_told(happened: Collection[Happening], told: Collection[str]) -> Matter | None:
    """The most urgent matter of those that were not told yet, if any."""
    fresh = {one.matter for one in happened if one.key not in told}
    return next((matter for matter in Matter if matter in fresh), None)


def draw_look(first: bool, random_bytes: Callable[[int], bytes]) -> float:
    """Seconds until the next look."""
    return uniform(*(FIRST_LOOK if first else NEXT_LOOK), random_bytes)


def _matter(one: Seen, now: float) -> Matter | None:
    if one.state in (State.REFUSED, State.STOPPED):
        return Matter.ATTENTION
    if one.state in (State.FINISHED, State.ABANDONED):
        return Matter.OVER if now >= one.closes or one.state is State.ABANDONED else None
    if one.state is State.SENT and now >= one.closes:
        return Matter.SENT
    return Matter.ATTENTION if one.troubled and one.state is not State.WITHDRAWN else None
