"""The life of one study on a peer, as a table: state x event -> state, effects. An unlisted event raises.

Effects are done in the same transaction as the change of state. Once a study is in a last state nothing of it leaves
the machine any more.
"""

from __future__ import annotations

from enum import StrEnum

from anon.values import frozen


class State(StrEnum):
    """Where a study stands."""

    CONSENTED = "consented"  # enrolment and reservation are stored; the aggregator has not acknowledged
    ENROLLED = "enrolled"  # acknowledged; waiting for the roster to close
    CHECKED = "checked"  # all checks passed; features are evaluated, packets made and sent
    SENT = "sent"  # every slot delivered or given up; waiting for the transcript
    LEAVING = "leaving"  # the owner left before closing; a withdrawal is being delivered, and is all that is left
    FINISHED = "finished"
    ABANDONED = "abandoned"  # too few enrolled, or the study never went on
    WITHDRAWN = "withdrawn"
    REFUSED = "refused"  # the aggregator did not admit this enrolment
    STOPPED = "stopped"  # a check failed: the reason and any evidence are kept


class Event(StrEnum):
    """Facts that move the study."""

    ENROLMENT_ACCEPTED = "enrolment-accepted"
    ENROLMENT_REFUSED = "enrolment-refused"
    CHECKS_PASSED = "checks-passed"
    CHECK_FAILED = "check-failed"
    STUDY_ABANDONED = "study-abandoned"
    WINDOWS_PASSED = "windows-passed"
    OWNER_LEFT_EARLY = "owner-left-early"
    OWNER_STOPPED = "owner-stopped"
    WITHDRAWAL_SETTLED = "withdrawal-settled"
    SLOTS_SETTLED = "slots-settled"
    INCLUSION_SETTLED = "inclusion-settled"


class Effect(StrEnum):
    """Acts that go with the change of state, in the same transaction."""

    RETURN_REST = "return-rest"  # the unspent reservation goes back to the budget
    ERASE = "erase"  # packets, snapshot and secrets go; the receipt stays


@frozen
class Move:
    """The next state and its effects."""

    state: State
    effects: tuple[Effect, ...] = ()


_END = (Effect.RETURN_REST, Effect.ERASE)

TABLE: dict[tuple[State, Event], Move] = {
    (State.CONSENTED, Event.ENROLMENT_ACCEPTED): Move(State.ENROLLED),
    (State.CONSENTED, Event.ENROLMENT_REFUSED): Move(State.REFUSED, _END),
    (State.CONSENTED, Event.CHECKS_PASSED): Move(State.CHECKED),  # accepted, but the answer was lost
    (State.CONSENTED, Event.CHECK_FAILED): Move(State.STOPPED, _END),
    (State.CONSENTED, Event.STUDY_ABANDONED): Move(State.ABANDONED, _END),
    (State.CONSENTED, Event.WINDOWS_PASSED): Move(State.ABANDONED, _END),
    (State.CONSENTED, Event.OWNER_LEFT_EARLY): Move(State.LEAVING, _END),
    (State.CONSENTED, Event.OWNER_STOPPED): Move(State.WITHDRAWN, _END),
    (State.ENROLLED, Event.CHECKS_PASSED): Move(State.CHECKED),
    (State.ENROLLED, Event.CHECK_FAILED): Move(State.STOPPED, _END),
    (State.ENROLLED, Event.STUDY_ABANDONED): Move(State.ABANDONED, _END),
    (State.ENROLLED, Event.WINDOWS_PASSED): Move(State.ABANDONED, _END),
    (State.ENROLLED, Event.OWNER_LEFT_EARLY): Move(State.LEAVING, _END),
    (State.ENROLLED, Event.OWNER_STOPPED): Move(State.WITHDRAWN, _END),
    (State.CHECKED, Event.CHECK_FAILED): Move(State.STOPPED, _END),
    (State.CHECKED, Event.OWNER_STOPPED): Move(State.WITHDRAWN, _END),
    (State.CHECKED, Event.SLOTS_SETTLED): Move(State.SENT, (Effect.RETURN_REST,)),
    (State.SENT, Event.CHECK_FAILED): Move(State.STOPPED, _END),
    (State.SENT, Event.INCLUSION_SETTLED): Move(State.FINISHED, _END),
    (State.SENT, Event.OWNER_STOPPED): Move(State.FINISHED, _END),
    (State.LEAVING, Event.WITHDRAWAL_SETTLED): Move(State.WITHDRAWN, _END),
}

LAST = frozenset({State.FINISHED, State.ABANDONED, State.WITHDRAWN, State.REFUSED, State.STOPPED})


class Unlisted(Exception):
    """An event that cannot happen in this state: our own bug, or the owner changed the study in another process."""


def move(state: State, event: Event) -> Move:
    """The table's entry. Raises `Unlisted` for an event that cannot happen in this state."""
    try:
        return TABLE[state, event]
    except KeyError:
        raise Unlisted(f"{event} cannot happen while {state}") from None
