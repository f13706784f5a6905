"""A peer holds all pages at once, as long as the manifest implies: a study that is too large is refused."""

from __future__ import annotations

import pytest

from aggregator.rules.lengths import TooLong, demand_readable
from anon.ldp import NANO
from anon.protocols.board import page_of
from anon.protocols.contract import MOST_BOARD
from anon.protocols.sizes import longest_board, longest_body
from anon.transparency.documents import MAX_BODY
from peer.rules.consent import Policy, objections
from peer.rules.ledger import Ledger
from tests.support.letters_study import resolved


def test_all_pages_are_held_at_once() -> None:
    """The last one is read together with those before."""
    pages = [longest_body(resolved(), *page_of(number)) for number in range(5)]
    assert longest_board(resolved()) == sum(pages) + longest_body(resolved(), "seat", 3) and min(pages) > 0


def test_a_study_whose_pages_fit_no_reader_is_refused_by_both_sides() -> None:
    """One page of 1,000 members who each write to all others has 1.1 GB."""
    demand_readable(resolved(200))
    with pytest.raises(TooLong, match="a document of this study could have 11"):
        demand_readable(resolved(1000))
    reasons = [str(reason) for reason in objections(resolved(1000), Policy(), Ledger(10 * NANO), now=0)]
    assert any("more than 64; decline" in reason for reason in reasons)


def test_pages_that_fit_one_by_one_may_not_fit_together() -> None:
    """At this size each page alone is read, and all of them are too many."""
    study = resolved(239)
    assert max(longest_body(study, *page_of(number)) for number in range(5)) <= MAX_BODY
    assert longest_board(study) > MOST_BOARD
    with pytest.raises(TooLong, match="hold"):
        demand_readable(study)
