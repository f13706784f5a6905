"""The other end of a route in words: an aggregator to owners, a teller to the aggregator that asks it."""

from __future__ import annotations

from enum import Enum

from anon.errors import because
from anon.text.sentences import Ours, Sentence, say


class FarSide(Enum):
    """Who is reached. Each method makes a whole sentence, with the next step."""

    AGGREGATOR = "aggregator"
    TELLER = "teller"

    def silent(self, error: Exception) -> Sentence:
        """No answer came."""
        if self is FarSide.TELLER:
            return say("the teller did not answer{error}; nothing is lost, try again later", error=because(error))
        return say("the aggregator did not answer{error}; nothing is lost, try again later", error=because(error))

    def behind_proxy(self, error: Exception) -> Sentence:
        """A proxy says that it could not get there."""
        if self is FarSide.TELLER:
            return say(
                "the proxy could not reach the teller{error}; nothing is lost, check that the proxy runs and "
                "is online, and try again later",
                error=because(error),
            )
        return say(
            "the proxy could not reach the aggregator{error}; nothing is lost, check that the proxy runs and "
            "is online, and try again later",
            error=because(error),
        )

    def beyond_tor(self, what: Ours, action: Ours) -> Sentence:
        """Tor says why it could not get there."""
        if self is FarSide.TELLER:
            return say("the teller cannot be reached: {what}; nothing is lost, {action}", what=what, action=action)
        return say("the aggregator cannot be reached: {what}; nothing is lost, {action}", what=what, action=action)

    def no_onion(self) -> Sentence:
        """The address is no onion address."""
        if self is FarSide.TELLER:
            return say("tor route: the address is not an onion address; ask who runs the teller for its address")
        return say("tor route: the address is not an onion address; ask for the aggregator's onion invite link")
