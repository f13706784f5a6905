"""A refusal by one of the wire's words, raised inside the rules and answered at the door."""

from __future__ import annotations

from anon.answers import WORDS
from anon.errors import Refused


class Turned(Refused):
    """Not accepted. `word` is what the sender is told and what the counters count; it never describes anybody."""

    def __init__(self, word: str) -> None:
        if word not in WORDS:
            raise AssertionError(f"not an answer: {word}")
        super().__init__(word)
        self.word = word
