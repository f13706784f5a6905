"""The raises of limits that an owner is asked about once more: those that let odds move ten times as far as before."""

from __future__ import annotations

from collections.abc import Iterator

from anon.ldp import odds_moved
from anon.protocols.charge import LOCAL
from anon.protocols.cost_words import TENFOLD, in_epsilon
from anon.text.sentences import Sentence
from anon.values import frozen
from peer.rules.consent import Policy


@frozen
class Rise:
    """A limit before and after, as epsilons (1e-9)."""

    before: int
    after: int

    @property
    def moved(self) -> Sentence:
        """How much farther odds may move."""
        return odds_moved(self.after - self.before)


def steep_rises(before: Policy, after: Policy) -> tuple[Rise, ...]:
    """The limits that `after` raises by more than `TENFOLD`; none where they are lowered."""
    return tuple(rise for rise in _changes(before, after) if rise.after - rise.before > TENFOLD)


def _changes(before: Policy, after: Policy) -> Iterator[Rise]:
    for budget in (LOCAL, *(limit.budget for limit in after.limits)):
        old, new = before.limit(budget), after.limit(budget)
        yield Rise(in_epsilon(budget, old.lifetime), in_epsilon(budget, new.lifetime))
        yield Rise(in_epsilon(budget, old.per_study), in_epsilon(budget, new.per_study))
