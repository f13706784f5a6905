"""The protocol `oblivious` at the aggregator: its own seat, which is the paper's Charlie, and what everybody can check.

The seat's keys, blinding and permutation follow from its lasting secret, since the random bytes of one of its rounds
never come again. Where a page is not as the protocol has it, the seat says nothing, and the study ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from attrs import frozen

from aggregator.protocols.contract import LearningResult
from aggregator.protocols.sum.part import OpenedSum, learned_of
from aggregator.protocols.sum.published import NoisySum
from aggregator.protocols.tally import Tally
from anon.errors import Malformed
from anon.protocols.board import Mail, Pages, pages_in
from anon.protocols.contract import Place
from anon.protocols.sum.oblivious import comparing, messages
from anon.protocols.sum.oblivious.messages import DONE, SEATS, SHORT, numbers, pairs, spelled, stream
from anon.protocols.sum.oblivious.paillier import PaillierKey, PaillierSecret, below, generated
from anon.study.manifest import Manifest

NOTHING: Final = b"\0"
"""In place of what the seat says."""
_BLIND: Final = 128
"""Bits by which a blind is longer than what it hides."""
_ASKED: Final = {
    1: messages.AGREED,
    2: messages.SHARES,
    3: messages.PERMUTED,
    4: messages.COMPARED,
    5: messages.NOISE,
    6: messages.OPENING,
}
Draw = Callable[[int], bytes]


@frozen
class CharliePart(OpenedSum):
    """See `aggregator.protocols.contract`."""

    def ends(self, study: Manifest, number: int, documents: Mapping[Place, bytes]) -> bool:
        """True unless every party wrote what its round asks, and the seat too."""
        silent = number in SEATS and documents.get(SEATS[number]) == NOTHING
        return silent or _fails(study, number, pages_in(study, documents))

    def answered(
        self,
        study: Manifest,
        number: int,
        documents: Mapping[Place, bytes],
        mail: Mail,
        secret: bytes,
        random_bytes: Draw,
    ) -> bytes:
        """Keys, blinded sizes with comparisons, the encrypted choice, and the sum of the seat's shares."""
        pages = pages_in(study, documents)
        seat, drawn = _Seat(study, secret, pages, mail), stream("seat", random_bytes(32))
        with suppress(LookupError):
            if not _fails(study, number, pages):
                match number:
                    case 1:
                        return spelled([seat.key.public.n], seat.frame.modulus) + comparing.public_of(seat.point)
                    case 3:
                        return seat.asked(drawn)
                    case 4:
                        return seat.chosen(PaillierKey(_modulus(study, documents)), drawn)
                return seat.summed()
        return NOTHING

    def learn(self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]) -> LearningResult:
        """The mean of all weights, with one noise."""
        survey, frame, n = messages.weights_survey(study), messages.frame_of(study), _modulus(study, documents)
        texts, told = messages.texts_of(pages_in(study, documents), messages.OPENING), documents[SEATS[6]]
        if texts is None or len(told) != frame.vector:
            raise Malformed("oblivious: a party, or the seat, told no sum")
        total = messages.added([told, *(text[: frame.vector] for text in texts)], frame.modulus, n)
        shape = messages.weights_of(survey)
        widest = messages.spread(shape, shape.fewest, messages.epsilon_of(study.surveys))
        noisy = NoisySum(frame.unpacked(total, n), len(texts), widest**2 * (shape.length + 1), 1)
        return learned_of(study, survey, noisy)


class _Seat:
    """The seat in one study. Raises `LookupError` wherever it lacks something."""

    def __init__(self, study: Manifest, secret: bytes, pages: Pages, mail: Mail) -> None:
        self.frame, self._secret, self._pages, self._mail = messages.frame_of(study), secret, pages, mail
        self.point = comparing.secret_of(stream("seat-point", secret))

    @property
    def key(self) -> PaillierSecret:
        """Made again wherever it is needed: a second or two."""
        return generated(8 * self.frame.modulus, stream("seat-key", self._secret))

    def _told(self, survey: int) -> list[bytes]:
        """The texts of a page that does not fail."""
        return messages.texts_of(self._pages, survey) or []

    def _blinded(self) -> tuple[list[int], list[int], list[int]]:
        """The seat's permutation, blinds by the permuted number, and the differences of its shares for each pair."""
        modulus, many = 1 << self.frame.bits, len(messages.parties(self._pages))
        posted = [letter for (survey, _), letter in self._mail.items() if survey == messages.POSTED and letter[0]]
        held = {letter[0] - 1: numbers(letter[1:], SHORT)[0] for letter in posted}
        if len(posted) != len(held):
            raise LookupError("a permuted number was posted twice")
        drawn = stream("seat-blinds", self._secret)
        blinds = [below(modulus << _BLIND, drawn) for _ in range(many)]
        order = messages.permutation(many, drawn)
        shares = [held[at] - blinds[at] for at in order]
        return order, blinds, [(shares[first] - shares[second]) % modulus for first, second in pairs(len(order))]

    def asked(self, drawn: Draw) -> bytes:
        """The parties' shares, blinded and in the seat's order, under their key; a question for each pair."""
        (order, blinds, shares), key = self._blinded(), messages.parties_key(self._pages)
        told, public = self._told(messages.PERMUTED), comparing.public_of(self.point)
        hidden = [key.plus(int.from_bytes(told[at], "big") * key.encrypt(0, drawn), blinds[at]) for at in order]
        questions = [comparing.asked(public, share, self.frame.bits, drawn) for share in shares]
        return spelled(hidden, 2 * self.frame.modulus) + b"".join(questions)

    def chosen(self, key: PaillierKey, drawn: Draw) -> bytes:
        """For each permuted number an encrypted 0, and an encrypted 1 for the smallest."""
        (order, _, shares), replies = self._blinded(), self._told(messages.COMPARED)
        larger, length = [0] * len(order), self.frame.question
        for at, ((first, second), share) in enumerate(zip(pairs(len(order)), shares, strict=True)):
            reply = replies[at % len(order)][at // len(order) * length :][:length]
            larger[second if comparing.smaller(self.point, reply, share, self.frame.bits) else first] += 1
        smallest = order[larger.index(min(larger))]
        ciphers = [key.encrypt(int(at == smallest), drawn) for at in range(len(order))]
        return spelled(ciphers, 2 * self.frame.modulus)

    def summed(self) -> bytes:
        """The masked noise, and the seat's shares of all weights."""
        key, frame, tags = self.key, self.frame, messages.parties(self._pages)
        ciphers = numbers(self._told(messages.OPENING)[0][frame.vector :], 2 * frame.modulus)
        letters = [self._mail[messages.SHARES, tag][2 * SHORT :] for tag in tags]
        noise = spelled([key.decrypt(cipher) for cipher in ciphers], frame.modulus)
        return spelled(messages.added([noise, *letters], frame.modulus, key.public.n), frame.modulus)


def _modulus(study: Manifest, documents: Mapping[Place, bytes]) -> int:
    return int.from_bytes(documents[SEATS[1]][: messages.frame_of(study).modulus], "big")


def _fails(study: Manifest, number: int, pages: Pages) -> bool:
    """True where a page has another number of texts than its round asks, or a text that says nothing."""
    if number == 0:
        return len(messages.parties(pages)) < study.cohort.minimum
    texts, frame = messages.texts_of(pages, _ASKED[number]), messages.frame_of(study)
    if texts is None or number == 1:
        n = 0 if texts is None else messages.parties_key(pages).n
        return n.bit_length() != 8 * frame.modulus or not n % 2
    if number == 2:
        return {*texts} != {DONE} or len(pages[2].texts(messages.POSTED)) < len(texts)
    if number == 3:
        return not all(messages.parties_key(pages).valid(int.from_bytes(text, "big")) for text in texts)
    if number == 4:
        return not all(_replied(texts, at, frame.question) for at in range(len(pairs(len(texts)))))
    return not all(any(text[: frame.vector]) for text in texts)


def _replied(texts: list[bytes], at: int, length: int) -> bool:
    with suppress(Malformed):
        return bool(comparing.parsed(texts[at % len(texts)][at // len(texts) * length :][:length]))
    return False
