"""An aggregator that writes both documents: one for the public place, one for its victim, with the same words."""

from __future__ import annotations

from itertools import count

import pytest

from anon.transparency import fingerprint
from anon.transparency.fingerprint import WORDS, words

BITS_OF_A_WORD = 16


def trials_until_two_agree(length: int) -> int:
    """How many studies of one's own it takes until two begin with the same words."""
    seen: set[str] = set()
    for number in count():
        begin = "-".join(words(number.to_bytes(32, "big")).split("-")[:length])
        if begin in seen:
            return number
        seen.add(begin)
    raise AssertionError


@pytest.mark.slow
def test_two_that_agree_take_the_square_root_of_what_one_that_matches_takes() -> None:
    """With two words (32 bits) some 82,000 trials, not 4,294,967,296. The same studies always: no false alarm."""
    assert 1_000 < trials_until_two_agree(2) < 500_000


def test_all_words_leave_96_bits_against_whoever_writes_both() -> None:
    """Eight words left 64, which money can buy."""
    assert WORDS * BITS_OF_A_WORD / 2 >= 96
    assert len(set(words(bytes(32)).split("-"))) == WORDS, "each word is of other bits of the digest"
    assert "2^96" in str(fingerprint.__doc__)
