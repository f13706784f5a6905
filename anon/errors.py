"""Errors, each written for its reader.

`Malformed` is the sender's fault, `Refused` is policy and says what to do next, `RejectedProof` says nothing more, so
that it is no oracle. Anything else that escapes is our own bug and crashes. No message quotes a value out of
somebody's data.
"""

from __future__ import annotations

from typing import ClassVar


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
