"""Errors, each written for its reader.

`Malformed` is the sender's fault, `Refused` is policy and says what to do next, `RejectedProof` says nothing more, so
that it is no oracle. Anything else that escapes is our own bug and crashes. No message quotes a value out of
somebody's data.
"""

from __future__ import annotations

import os
from typing import ClassVar, Final

from anon.text.foreign import Quoted
from anon.text.sentences import NOTHING, JoinedSentence, Ours, Term, joined, say

FAULT_IN_THIS_PROGRAM: Final = say("a fault in this program; its log names the place")
"""Of an error that is not ours. Its text may quote data, and the name of its class says nothing to a reader."""


class AnonmlError(Exception):
    """Any expected failure. `code` names the reason (a counter's name), `exit_code` is what the command returns."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1


class Malformed(AnonmlError):
    """The bytes or text that came are not what the format demands. Correct them and send again."""

    code = "malformed"
    exit_code = 3


class InvalidValue(Malformed, ValueError):
    """A value that does not fit its key. The message says what was expected and what came."""


class Refused(AnonmlError):
    """Policy says no. The message says why and what to do next. Nothing was changed or sent."""

    code = "refused"
    exit_code = 4


class RejectedProof(AnonmlError):
    """A signature, token or credential does not verify. Deliberately without detail."""

    code = "rejected-proof"
    exit_code = 5


class Conflict(AnonmlError):
    """The same identifier was already used for something else."""

    code = "conflict"
    exit_code = 6


class Unreachable(AnonmlError):
    """The other side did not answer. Nothing is lost; try again later."""

    code = "unreachable"
    exit_code = 7


class NotConnected(Unreachable):
    """Nothing on this machine took the connection: no byte can have left it."""


class Damaged(AnonmlError):
    """A file of a home, or a backup, is damaged. The message names it, what was lost and not, and how to restore."""

    code = "damaged"
    exit_code = 8


class NoRoom(AnonmlError):
    """A disk takes nothing more. The message names the file. Nothing that was stored is lost; make room and go on."""

    code = "no-room"
    exit_code = 1


def because(error: BaseException) -> JoinedSentence:
    """Why a file or a connection failed, in the system's words and in brackets; empty where it gives none.

    Never another error's text, which may quote data, and never the name of a class.
    """
    if isinstance(error, UnicodeError):
        return in_brackets(say("it is not UTF-8 text"))
    if not isinstance(error, OSError):
        return NOTHING
    if known := of_the_system(error):
        return in_brackets(known)
    return in_brackets(say("it took too long")) if isinstance(error, TimeoutError) else NOTHING


def of_the_system(error: OSError) -> Ours:
    """The system's own words for a number of its own; those of another resolver or library as a stranger's."""
    if error.errno and error.errno > 0:
        return Term(os.strerror(error.errno))
    return Quoted(error.strerror) if error.strerror else NOTHING


def in_brackets(why: Ours) -> JoinedSentence:
    """The words in brackets, with a space before them."""
    return joined((Term(" ("), why, Term(")")), "")
