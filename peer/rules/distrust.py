"""The error of a chain of documents that no honest aggregator publishes."""

from __future__ import annotations

from typing import ClassVar

from anon.errors import Refused


class Distrust(Refused):
    """The aggregator's chain of documents is not what an honest one publishes. Nothing more is sent."""

    code: ClassVar[str] = "distrust"

    def evidence(self) -> bytes | None:
        """A proof for others, to be kept; None where there is none. `peer.run.equivocations` turns it into a file."""
        return None
