"""Faults that keep a study from going on: how each is said, and when it is tried again.

Every fault has a sentence that says what to do, which is logged and shown to staff for as long as it lasts. It
is tried again ever more rarely. Other studies are not held up by it.
"""

from __future__ import annotations

import logging
from math import inf

from attrs import frozen

from aggregator.rules.lengths import TooLong
from anon.errors import FAULT_IN_THIS_PROGRAM, Damaged, NoRoom, Refused, Unreachable
from anon.machine import guard
from anon.sharing.round_document import Why

LONGEST_PAUSE = 300.0
"""Seconds between two tries of one study."""
_LOG = logging.getLogger(__name__)


class TellerAway(Unreachable):
    """A teller does not answer, or cannot. The message names it. Ask who runs it; then the command can be repeated.

    `trouble`: in the teller's words; `silence`: in those of the route to it."""

    code = "teller-away"

    def __init__(self, name: str, trouble: str = "", silence: str = "") -> None:
        why = silence.partition(";")[0]
        said = f"has trouble: {trouble}" if trouble else f"does not answer ({why})" if why else "does not answer"
        self.name = name
        super().__init__(f"the teller {name} {said}. Nothing is lost. Ask who runs it; then the study goes on")


class DatabaseAway(Unreachable):
    """A database's server does not answer, or lets this program not in. Nothing is lost; start it and try again.

    `code`: PostgreSQL's, empty without one."""

    code = "database-away"

    def __init__(self, place: str, code: str = "") -> None:
        why = f" (PostgreSQL says {code})" if code else ""
        super().__init__(
            f"{place}: the database's server does not answer, or does not let this program in{why}. Nothing that was "
            "stored is lost. Start the server and check the address; it goes on from here"
        )


class Superseded(Refused):
    """Another process of this aggregator has carried the study further. Nothing was signed or stored."""

    code = "superseded"

    def __init__(self, study: bytes) -> None:
        super().__init__(f"study {study.hex()[:8]}: another process of this aggregator carries it on; this one follows")


class TellerRefuses(Refused):
    """A teller says no, or says something that it must not. The message names it and gives its reason."""

    code = "teller-refuses"

    def __init__(self, name: str, said: str) -> None:
        self.name = name
        super().__init__(f"the teller {name} refuses: {said}. Ask who runs it; it is asked again")


class NoSum(Refused):
    """A round never has a sum: nothing of it is published, and the study ends.

    `evidence`: of a disagreement."""

    code = "no-sum"

    def __init__(self, round_number: int, why: Why, evidence: bytes = b"", said: str = "") -> None:
        detail = f" ({said.rstrip('.')})" if said else ""
        super().__init__(f"round {round_number + 1} has no sum, and the study ends: {_NO_SUM[why].format(detail)}")
        self.round, self.why, self.evidence = round_number, why, evidence


_FOR_READERS = (Damaged, NoRoom, Refused, TellerAway, DatabaseAway)
_NO_SUM = {
    Why.TOO_FEW: "too few packets were accepted{}. Publish it anew, with longer to send or for a larger group",
    Why.DISAGREED: (
        "its tellers signed two lists{}. The evidence is published; show it to everybody who took part, and publish "
        "the study anew with other tellers"
    ),
    Why.AWAY: "a teller did not come back in time{}. Publish it anew with tellers that stay on",
    Why.REFUSED: "a teller refused to the end{}. Publish it anew once its reason is gone",
}


@frozen
class Fault:
    """Why a study does not go on. `again` (unix seconds) and `steady` (a clock that nobody sets) say when it is tried
    again, whichever comes first; both are infinite when repeating is of no use. `since` (unix seconds): when it was
    first met. `teller`: for whom a round waits; empty for any other fault."""

    said: str
    again: float = inf
    steady: float = inf
    tries: int = 1
    since: float = 0.0
    teller: str = ""

    def is_due(self, now: float, steady: float) -> bool:
        """The rule for trying again."""
        return now >= self.again or steady >= self.steady


def repeated(before: Fault | None, error: Exception, now: float, steady: float) -> Fault:
    """The fault after one more failure."""
    tries = before.tries + 1 if before is not None else 1
    pause = inf if isinstance(error, TooLong) else pause_after(tries)
    said, teller = in_words(error), error.name if isinstance(error, (TellerAway, TellerRefuses)) else ""
    same = before is not None and (before.teller == teller if teller else before.said == said)
    since = before.since if before is not None and same else now
    return Fault(said, now + pause, steady + pause, tries, since, teller)


def pause_after(tries: int) -> float:
    """Seconds until the next try, twice as many each time."""
    return guard.pause_after(tries, longest=LONGEST_PAUSE)


def tell(who: str, fault: Fault, error: Exception) -> None:
    """One line for the log; for a fault of our own, the first time, its places too."""
    ours = fault.tries == 1 and not isinstance(error, (*_FOR_READERS, OSError))
    again = "" if fault.again == inf else f" It is tried again in {pause_after(fault.tries):.0f} s."
    _LOG.error("%s cannot go on: %s.%s", who, fault.said.rstrip("."), again, exc_info=error if ours else None)


def tell_end(who: str) -> None:
    """One line for the log: what `tell` told is over."""
    _LOG.warning("%s goes on again", who)


def in_words(error: BaseException) -> str:
    """A sentence for staff. Only errors written for a reader are quoted: the text of others may quote what was sent."""
    if isinstance(error, _FOR_READERS):
        return str(error)
    if isinstance(error, OSError) and (said := guard.told(error)) != FAULT_IN_THIS_PROGRAM:
        return said
    return (
        f"{FAULT_IN_THIS_PROGRAM}; what was published stands and nothing that was stored is "
        "lost. Report the places in the log, keep a backup of this home, and start the aggregator again "
        "with a newer version"
    )
