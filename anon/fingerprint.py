"""A study's fingerprint: its id as pronounceable words, to compare by ear or eye with a public place.

The words are proquints (Wilkerson 2009, arXiv:0901.4016): five letters for 16 bits, consonant-vowel-consonant-vowel-
consonant. Eight of them carry 128 bits, beyond what anyone can match by trying.
"""

from __future__ import annotations

from anon import labels
from anon.encoding import sha256

_CONSONANTS = "bdfghjklmnprstvz"
_VOWELS = "aiou"
WORDS = 8


def words(study_id: bytes) -> str:
    """Eight words joined by "-" that stand for the study id."""
    digest = sha256(labels.FINGERPRINT, study_id)
    return "-".join(_word(int.from_bytes(digest[2 * k : 2 * k + 2], "big")) for k in range(WORDS))


def _word(bits: int) -> str:
    return (
        _CONSONANTS[bits >> 12 & 15]
        + _VOWELS[bits >> 10 & 3]
        + _CONSONANTS[bits >> 6 & 15]
        + _VOWELS[bits >> 4 & 3]
        + _CONSONANTS[bits & 15]
    )
