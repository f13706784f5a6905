"""A study that ended without a sum, in words: why, what became of the owner's shares, and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anon.ldp import format_epsilon
from anon.protocols.cost_words import Amount
from anon.text.sentences import Sentence, joined, say

if TYPE_CHECKING:
    from anon.sharing.round_document import UnsummedRound

UNSUMMED = "unsummed"
"""The kind of the document that ends a study without a sum."""
ENDED = say("This study ended without a sum. This program fetches the reason at a time of its own.")
"""While only the signed head is known."""

def told(ended: UnsummedRound | None, spent: Amount, tellers: bool = True) -> str:
    """The whole of it. `ended`: None where its document cannot be read; `spent`: by the ledger, for this study. Without
    `tellers` members wrote to one another."""
    said = _ended(ended) if tellers or ended is None else _too_few_wrote(ended)
    return joined([said, cost(spent)], " ")


def _too_few_wrote(ended: UnsummedRound) -> Sentence:
    return say(
        "This study ended after its round {round}: too few members took part in it. All that they had hidden stays "
        "hidden.",
        round=ended.round + 1,
    )


def cost(spent: Amount) -> Sentence:
    """The charge that stays: all of it for packets that were made, because what has left cannot be called back."""
    if not spent.amount:
        return say("No answer of yours was sent, and it cost you nothing.")
    return say(
        "Its cost stays spent, epsilon {epsilon}, because a packet that has left cannot be called back.",
        epsilon=format_epsilon(spent.epsilon),
    )


def _ended(ended: UnsummedRound | None) -> Sentence:
    if ended is None:
        return say("This study ended without a sum, for a reason that this program cannot read. Ask staff.")
    if ended.round:
        return say(
            "This study ended without the sum of round {round}: {why}. The shares of exact answers of that round were "
            "never added up. The sums of the rounds before it stay published.",
            round=ended.round + 1,
            why=_why(ended),
        )
    return say(
        "This study ended without a sum: {why}. The shares of your exact answers were never added up, and nothing made "
        "of them is published.",
        why=_why(ended),
    )


def _why(ended: UnsummedRound) -> Sentence:
    from anon.sharing.round_document import Why  # here alone: it loads all about shares

    return {
        Why.TOO_FEW: say("its tellers accepted too few packets"),
        Why.DISAGREED: say("its tellers signed two different lists of packets, and the proof of that is published"),
        Why.AWAY: say("a teller did not come back in time"),
        Why.REFUSED: say("a teller refused to go on"),
    }[ended.why]
