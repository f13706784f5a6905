"""A refusal by one of the wire's words, raised inside the rules and answered by the intake."""

from __future__ import annotations

from anon.errors import Refused
from anon.wire.replies import WORDS


class PacketRefused(Refused):
    """Not accepted. `word` is what the sender is told and what the counters count; it never describes anybody."""

    def __init__(self, word: str) -> None:
        if word not in WORDS:
            raise AssertionError(f"not an answer: {word}")
        super().__init__(word)
        self.word = word
