"""How an owner leaves a study, by where it stands. Pure."""

from __future__ import annotations

from collections.abc import Callable

from anon.errors import Refused
from anon.protocols.posts import sealed_withdrawal
from anon.text.sentences import Term, say
from anon.wire.messages import sign_withdrawal
from peer.rules.lifecycle import Event, State
from peer.rules.study_secrets import StudySecrets
from peer.store.records import JoinedStudy, Study

Departure = tuple[Event, bytes | None]
"""The study's event, and the sealed withdrawal that is owed to the aggregator, if any."""
OPEN = (State.CONSENTED, State.ENROLLED)


def departure(study: Study, now: float, opened: Callable[[bytes], bytes]) -> Departure:
    """Before enrolment closes by a signed withdrawal, later by sending nothing more. `opened` opens stored secrets.

    Raises `Refused` for a study that is over or was left before.
    """
    if study.state is State.LEAVING:
        raise Refused(say("you left this study: the withdrawal is on its way; keep `anonml peer run` running"))
    if is_early(study, now) and isinstance(study, JoinedStudy):
        signed = sign_withdrawal(study.study, StudySecrets.from_bytes(opened(study.secrets)).signing_key)
        return Event.OWNER_LEFT_EARLY, sealed_withdrawal(study.manifest, signed)
    if study.state in (*OPEN, State.CHECKED, State.SENT):
        return Event.OWNER_STOPPED, None
    state = Term(study.state)
    raise Refused(say("this study is over for you already ({state}); there is nothing to leave", state=state))


def silent_departure(study: Study) -> Departure:
    """Without a word to the aggregator; a withdrawal that is on its way is given up. For studies that are not over."""
    return (Event.WITHDRAWAL_SETTLED if study.state is State.LEAVING else Event.OWNER_STOPPED), None


def is_early(study: Study, now: float) -> bool:
    """True if the aggregator can still strike the owner off the roster."""
    return study.state in OPEN and not study.refused and now < study.manifest.timetable.enrol_closes
