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
