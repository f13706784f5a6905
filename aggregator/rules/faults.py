"""Faults that keep a study from going on: how each is said, and when it is tried again.

Every fault has a sentence that says what to do, which is logged and shown to staff for as long as it lasts. It
is tried again ever more rarely. Other studies are not held up by it.
"""

from __future__ import annotations

import errno
import logging
from math import inf

from attrs import frozen

from aggregator.rules.lengths import TooLong, advice
from anon.errors import FAULT_IN_THIS_PROGRAM, Damaged, NoRoom, Refused
from anon.study.manifest import Manifest
from anon.transparency.documents import MAX_BODY, Head

FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0
_LOG = logging.getLogger(__name__)


@frozen
class Fault:
    """Why a study does not go on. `again` (unix seconds) and `steady` (a clock that nobody sets) say when it is tried
    again, whichever comes first; both are infinite when repeating is of no use."""

    said: str
    again: float = inf
    steady: float = inf
    tries: int = 1

    def is_due(self, now: float, steady: float) -> bool:
        """The rule for trying again."""
        return now >= self.again or steady >= self.steady


def repeated(before: Fault | None, error: Exception, now: float, steady: float) -> Fault:
    """The fault after one more failure."""
    tries = before.tries + 1 if before is not None else 1
    pause = inf if isinstance(error, TooLong) else pause_after(tries)
    return Fault(in_words(error), now + pause, steady + pause, tries)


def pause_after(tries: int) -> float:
    """Seconds until the next try, twice as many each time."""
    return min(FIRST_PAUSE * (1 << min(tries - 1, 10)), LONGEST_PAUSE)


def tell(who: str, fault: Fault, error: Exception) -> None:
    """One line for the log; for a fault of our own, the first time, its places too."""
    ours = fault.tries == 1 and not isinstance(error, (Damaged, NoRoom, Refused, OSError))
    again = "" if fault.again == inf else f" It is tried again in {pause_after(fault.tries):.0f} s."
    _LOG.error("%s cannot go on: %s.%s", who, fault.said.rstrip("."), again, exc_info=error if ours else None)


def too_long(manifest: Manifest, head: Head) -> str:
    """Of a document that was signed, by an earlier version, though no reader takes one so long."""
    return (
        f"{head.kind} {head.part} has {head.length} bytes, and no reader takes more than {MAX_BODY}: the study cannot "
        f"go on. What was published stands and can be exported. {advice(manifest)}"
    )


def in_words(error: BaseException) -> str:
    """A sentence for staff. Only errors written for a reader are quoted: the text of others may quote what was sent."""
    if isinstance(error, (Damaged, NoRoom, Refused)):
        return str(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}the disk is full; nothing that was stored is lost. Make room on it: the study goes on by itself"
    return (
        f"{FAULT_IN_THIS_PROGRAM}; what was published stands and nothing that was stored is "
        "lost. Report the places in the log, keep a backup of this home, and start the aggregator again "
        "with a newer version"
    )
