"""The protocol `oblivious` on the owner's machine: its letters, of which those of one round stand on the records.

Pure. Keys, masks and noise follow from random bytes of earlier letters (`Correspondence.own`), so none is stored. The
size that noise is drawn for comes back to a party in a letter of its own: one that was late stays what it was.
A party that lacks something, since another wrote what cannot be read, writes zeros, and the study ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import gcd

from anon.errors import Malformed
from anon.ldp import RandomBytes
from anon.protocols.board import Pages, read_pages
from anon.protocols.contract import DocumentArrived, Record
from anon.protocols.outgoing import OpenShares
from anon.protocols.sum.oblivious import comparing, messages
from anon.protocols.sum.oblivious.l2_laplace import L2Laplace
from anon.protocols.sum.oblivious.messages import DONE, SEATS, SEED, SHORT, numbers, spelled, stream
from anon.protocols.sum.oblivious.paillier import PaillierKey, PaillierSecret, below, generated
from anon.protocols.sum.oblivious.sections import MOST
from anon.protocols.sum.vector import vector_of
from anon.study.manifest import Manifest, Survey
from anon.values import frozen
from peer.protocols.contract import Correspondence, LettersAlone

_SIZES = {
    messages.KEYS: messages.NAME,
    messages.AGREED: 2 * SEED,
    messages.SHARES: SEED,
    messages.PERMUTED: SEED,
    messages.COMPARED: SEED,
    messages.NOISE: 2 * SEED,
}


@frozen
class ObliviousPart(LettersAlone):
    """See `peer.protocols.contract`."""

    def check_documents(self, manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
        """The seat's documents have their lengths, and its modulus the study's bits."""
        frame, many = messages.frame_of(manifest), len(messages.parties(read_pages(manifest, documents)))
        for number, body in _said(documents).items():
            modulus = int.from_bytes(body[: frame.modulus], "big")
            fits = number != 1 or (modulus % 2 and modulus.bit_length() == 8 * frame.modulus)
            if len(body) != frame.seat(number, many) or not fits:
                raise Malformed("seat: expected another length, or other keys; nothing is sent")

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        """See `PeerPart`."""
        return _SIZES.get(survey.survey, 0)

    def reads(self, manifest: Manifest, survey: Survey, tag: bytes, pages: Pages) -> bool:
        """See `CorrespondingPart`."""
        everybody = messages.texts_of(pages, messages.AGREED)
        return survey.survey == messages.SHARES and everybody is not None and tag in messages.parties(pages)

    def letters(
        self,
        manifest: Manifest,
        survey: Survey,
        record: Record | None,
        known: Correspondence,
        documents: Sequence[DocumentArrived],
        random_bytes: RandomBytes,
    ) -> OpenShares:
        """See `CorrespondingPart`. Zeros where something is missing."""
        if survey.survey == messages.KEYS:
            return OpenShares(random_bytes(messages.NAME), ())
        text, letters = b"", list[bytes]()
        with suppress(LookupError):
            if survey.survey == messages.AGREED:
                text, letters = _agreed(survey, known, random_bytes)
            else:
                party = _Party(manifest, known, _said(documents))
                match survey.survey:
                    case messages.SHARES if record is not None:
                        text, letters = DONE, party.shares(record, random_bytes)
                    case messages.POSTED if record is not None:
                        text, letters = DONE, [party.posted(record)]
                    case messages.PERMUTED:
                        text = party.permuted(random_bytes)
                    case messages.COMPARED:
                        text = party.compared(random_bytes)
                    case messages.NOISE:
                        text, letters = DONE, [party.noise(random_bytes)]
                    case messages.OPENING:
                        text = party.opening()
        empty = [bytes(survey.letter_size)] * (survey.m - len(letters))
        return OpenShares(text.ljust(survey.size, b"\0"), (*letters, *empty))


def _said(documents: Sequence[DocumentArrived]) -> dict[int, bytes]:
    return {one.part: one.body for one in documents if (one.kind, one.part) in SEATS.values()}


def _agreed(survey: Survey, known: Correspondence, random_bytes: RandomBytes) -> tuple[bytes, list[bytes]]:
    """The first party's key, and to each party its secret and the permutation; of all others nothing."""
    seed, everybody = random_bytes(2 * SEED)[:SEED], messages.parties(known.pages)
    if everybody[known.tag]:
        return b"", []
    key = generated(8 * survey.size, stream("key", seed))
    order = bytes(messages.permutation(len(everybody), stream("order", seed))).ljust(MOST, b"\0")
    return spelled([key.public.n], survey.size), [order + spelled([key.p], survey.size // 2)] * len(everybody)


class _Party:
    """A party from the third round on. Raises `LookupError` wherever it lacks something."""

    def __init__(self, manifest: Manifest, known: Correspondence, said: Mapping[int, bytes]) -> None:
        self.manifest, self.mail, self.said = manifest, known.mail, said
        self.tags, self.seed = [*messages.parties(known.pages)], known.own[messages.AGREED]
        self.survey, self.frame = messages.weights_survey(manifest), messages.frame_of(manifest)
        self.shape, self.modulus = messages.weights_of(self.survey), 1 << self.frame.bits
        self.number = messages.names(known.pages)[known.own[messages.KEYS]]
        letter, n = self.mail[messages.AGREED, self.tags[0]], messages.parties_key(known.pages).n
        self.order, p = list(letter[: len(self.tags)]), int.from_bytes(letter[MOST:], "big")
        if sorted(self.order) != [*range(len(self.tags))] or p < 2 or n % p or gcd(p, n // p) != 1:
            raise LookupError("the first party told no key that fits")
        self.key, self.at = PaillierSecret(p, n // p), self.order[self.number]
        self.seat = PaillierKey(int.from_bytes(said[1][: self.frame.modulus], "big"))

    def _size(self, record: Record) -> tuple[int, int]:
        """The size, of few records the fewest that are averaged over, and a."""
        size = max(len(record.rows), self.shape.fewest)
        return size, below(self.modulus, stream("size", self.seed, spelled([size], SHORT)))

    def _mask(self) -> list[int]:
        """Of the first party: it hides the noise from the seat."""
        drawn = stream("mask", self.seed)
        return [below(self.seat.n, drawn) for _ in range(self.frame.plaintexts)]

    def posted(self, record: Record) -> bytes:
        """The permuted number, counted from 1, and b. A member that is no party posts zeros."""
        size, share = self._size(record)
        return bytes([self.at + 1]) + spelled([(size - share) % self.modulus], SHORT)

    def shares(self, record: Record, random_bytes: RandomBytes) -> list[bytes]:
        """To each party and the seat a share of the weights, of the first party less its mask. To one of them a."""
        (size, share), drawn, letters = self._size(record), stream("shares", random_bytes(SEED)), list[bytes]()
        left = self.frame.packed(vector_of(self.manifest, self.survey, record))
        if self.number == 0:
            left = [value - hidden for value, hidden in zip(left, self._mask(), strict=True)]
        for number in range(len(self.tags)):
            part = [below(self.seat.n, drawn) for _ in left]
            left = [value - taken for value, taken in zip(left, part, strict=True)]
            told = (share if number == self.at else 0, size if number == self.number else 0)
            letters.append(spelled(told, SHORT) + spelled(part, self.frame.modulus))
        rest = [value % self.seat.n for value in left]
        return [*letters, bytes(2 * SHORT) + spelled(rest, self.frame.modulus)]

    def permuted(self, random_bytes: RandomBytes) -> bytes:
        """The ciphertext of the a that this party was sent."""
        letter = self.mail[messages.SHARES, self.tags[self.order.index(self.number)]]
        cipher = self.key.public.encrypt(numbers(letter, SHORT)[0], stream("cipher", random_bytes(SEED)))
        return spelled([cipher], 2 * self.frame.modulus)

    def compared(self, random_bytes: RandomBytes) -> bytes:
        """The replies to this party's comparisons."""
        many, drawn = len(self.tags), stream("replies", random_bytes(SEED))
        end = 2 * self.frame.modulus * many
        ciphers, length, replies = numbers(self.said[3][:end], 2 * self.frame.modulus), self.frame.question, b""
        for at, pair in [*enumerate(messages.pairs(many))][self.number :: many]:
            first, second = (self.key.decrypt(ciphers[place]) for place in pair)
            question, point = self.said[3][end + at * length :][:length], self.said[1][self.frame.modulus :]
            replies += comparing.replied(point, question, (first - second) % self.modulus, self.frame.bits, drawn)
        return replies

    def noise(self, random_bytes: RandomBytes) -> bytes:
        """Noise for the own size under the seat's key, or nothing, as the seat chose."""
        size = numbers(self.mail[messages.SHARES, self.tags[self.number]], SHORT)[1]
        if size < self.shape.fewest:
            raise LookupError("this party wrote no shares")
        scale = messages.spread(self.shape, size, messages.epsilon_of(self.manifest.surveys))
        values = L2Laplace(scale).vector(self.frame.entries, stream("noise", random_bytes(SEED)))
        chosen, drawn = numbers(self.said[4], 2 * self.frame.modulus)[self.at], stream("cipher", random_bytes(SEED))
        ciphers = [self.seat.times(chosen, plain, drawn) for plain in self.frame.packed(values)]
        return spelled(ciphers, 2 * self.frame.modulus)

    def opening(self) -> bytes:
        """The sum of the shares that this party was sent; of the first party the masked noise besides."""
        shares = [self.mail[messages.SHARES, tag][2 * SHORT :] for tag in self.tags]
        text = spelled(messages.added(shares, self.frame.modulus, self.seat.n), self.frame.modulus)
        if self.number:
            return text
        total = [self.seat.plus(1, hidden) for hidden in self._mask()]
        for tag in self.tags:
            ciphers = numbers(self.mail[messages.NOISE, tag], 2 * self.frame.modulus)
            total = [one * other % self.seat.n**2 for one, other in zip(total, ciphers, strict=True)]
        return text + spelled(total, 2 * self.frame.modulus)
