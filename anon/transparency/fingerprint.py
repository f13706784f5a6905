"""Fingerprints: a study's id, or all that its aggregator has signed so far, as pronounceable words, to compare by ear
or eye with a public place.

The study's fingerprint pins the manifest and nothing later. Roster, seed, credentials, thresholds and edges are pinned
by the fingerprint of a head: it covers, link by link, every document up to its number. Two people whose words for one
number agree were told the same story up to there; an aggregator that tells one victim another one, however
consistently, cannot make them agree.

The words are proquints (Wilkerson 2009, arXiv:0901.4016): five letters for 16 bits, consonant-vowel-consonant-vowel-
consonant. Twelve of them carry 192 bits. To match given words takes 2^192 trials. An author of both documents,
one to show in public and one for a victim, needs two of their own that agree: 2^96 trials, by the birthday bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from anon.crypto import labels
from anon.transparency.documents import SignedHead
from anon.values import frozen
from anon.wire.cbor import sha256

_CONSONANTS = "bdfghjklmnprstvz"
_VOWELS = "aiou"
WORDS = 12
_TOLD_APART = {"tellers": "the tellers' signatures"}
"""The words of this document are of all documents up to it; each teller has words of its own (`teller_words`)."""


def words(study_id: bytes) -> str:
    """Twelve words joined by "-" that stand for the study id.

    >>> words(bytes(32))[:29]
    'jotod-zanad-togin-jibad-kivul'
    """
    return _words(sha256(labels.FINGERPRINT, study_id))


def head_words(signed: SignedHead) -> str:
    """Twelve words joined by "-" that stand for a head and, through its links, for every document before it."""
    return _words(sha256(labels.CHAIN_FINGERPRINT, signed.digest()))


def teller_words(key: bytes) -> str:
    """Twelve words joined by "-" that stand for a teller's lasting key: to compare with the teller's own place."""
    return _words(sha256(labels.TELLER_FINGERPRINT, key))


def study_code(study_id: bytes) -> str:
    """The content of a study's QR code: the words and what they are of. Never an invite's code."""
    return f"ANONML-STUDY:{words(study_id).upper()}"


@frozen
class HeadPrint:
    """The fingerprint of everything published up to a document."""

    number: int
    kind: str
    part: int
    words: str

    @property
    def name(self) -> str:
        """The document's kind, with its part where there can be several."""
        kind = _TOLD_APART.get(self.kind, self.kind)
        return f"{kind} {self.part}" if self.part else kind

    @property
    def code(self) -> str:
        """The content of its QR code."""
        return f"ANONML-HEAD:{self.number}:{self.words.upper()}"

    def figures(self) -> dict[str, object]:
        """For `--json`."""
        return {"number": self.number, "kind": self.kind, "part": self.part, "words": self.words, "qr": self.code}


def head_prints(chain: Sequence[SignedHead]) -> tuple[HeadPrint, ...]:
    """The fingerprint at every number of a chain."""
    return tuple(
        HeadPrint(signed.head.number, signed.head.kind, signed.head.part, head_words(signed)) for signed in chain
    )


def listing(study_id: bytes, chain: Sequence[SignedHead]) -> str:
    """All fingerprints of a study as a text for a public place, one line each."""
    lines = [f"study {words(study_id)}"]
    lines += [f"{head_print.number} {head_print.name}: {head_print.words}" for head_print in head_prints(chain)]
    return "\n".join(lines) + "\n"


def _words(digest: bytes) -> str:
    return "-".join(_word(int.from_bytes(digest[2 * k : 2 * k + 2], "big")) for k in range(WORDS))


def _word(bits: int) -> str:
    return (
        _CONSONANTS[bits >> 12 & 15]
        + _VOWELS[bits >> 10 & 3]
        + _CONSONANTS[bits >> 6 & 15]
        + _VOWELS[bits >> 4 & 3]
        + _CONSONANTS[bits & 15]
    )
