"""Packets: sealed by HPKE, with one share inside for each teller, and cover traffic. Pure functions on bytes.

    [2, study, round, slot, survey, report, [share, ...], token]

`report` is the part that the aggregator reads: a perturbed report, or the public share of a secret sharing. With a
spare teller each pair has a sharing of its own, one after the other (`anon.sharing.quorum`). Each share is sealed to
one teller, for this study, round, slot, tag and teller alone, so that it opens nowhere else: an aggregator with tokens
of its own cannot send a member's share again under another tag. The token signs a digest of every share in place of the
shares. So a teller can check it with its own share and 32 bytes for each other one.

All packets of a study have one size. The token, the draw and the window are decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
from attrs import field

from anon.crypto import labels
from anon.crypto.sealing import OVERHEAD, seal
from anon.errors import Malformed
from anon.values import frozen
from anon.wire.cbor import decode, encode, sha256

VERSION = 2
"""Of packets, their seals, and all that tellers sign. There is no other."""
STUDY_BYTES, TAG_BYTES, DIGEST_BYTES = 32, 48, 32
MOST_ROUNDS, MOST_SLOTS, MOST_SURVEYS = 2**16, 2**8, 2**16
MOST_TELLERS = 4
MOST_SHARES = 6
"""Of a packet: with a spare two for each of three pairs."""


@attrs.frozen(order=True)
class Occasion:
    """One slot of one round of a study: a member answers it once, and its shares are added up once.

    Raises `Malformed` for numbers out of range or a study's id of another length.

    Each occasion has a context, and so each member a tag, of its own:

    >>> contexts = {Occasion(bytes(32), number, slot).tag_context() for number in (0, 1) for slot in (0, 1)}
    >>> len(contexts)
    4
    """

    study: bytes
    round: int
    slot: int

    def __attrs_post_init__(self) -> None:
        if len(self.study) != STUDY_BYTES:
            raise Malformed(f"study: expected {STUDY_BYTES} bytes, got {len(self.study)}")
        if not 0 <= self.round < MOST_ROUNDS or not 0 <= self.slot < MOST_SLOTS:
            raise Malformed(f"expected a round below {MOST_ROUNDS} and a slot below {MOST_SLOTS}")

    def heading(self) -> list[Any]:
        """The first fields of everything that is about this occasion."""
        return [VERSION, self.study, self.round, self.slot]

    def tag_context(self) -> bytes:
        """The pseudonym context: a member has one tag for each occasion, and nobody can link two of them."""
        return sha256(labels.OCCASION, encode(self.heading()))


def packet_info(study: bytes) -> bytes:
    """The purpose that a packet is sealed for: label, version, study."""
    return encode([labels.PACKET_SEAL, VERSION, study])


def enrolment_info(study: bytes) -> bytes:
    """The purpose that an enrolment is sealed for."""
    return encode([labels.ENROLMENT_SEAL, VERSION, study])


def withdrawal_info(study: bytes) -> bytes:
    """The purpose that a withdrawal is sealed for."""
    return encode([labels.WITHDRAWAL_SEAL, VERSION, study])


def share_info(occasion: Occasion, tag: bytes, teller: int) -> bytes:
    """The purpose that a share is sealed for: label, version, study, round, slot, tag and the teller's number."""
    return encode([labels.SHARE_SEAL, *occasion.heading(), tag, teller])


def seal_shares(
    occasion: Occasion, tag: bytes, shares: Sequence[bytes], sealing_keys: Sequence[bytes]
) -> tuple[bytes, ...]:
    """Each share sealed to the teller of its number. Raises `Malformed` for a key that cannot be sealed to."""
    return tuple(
        seal(share, key, share_info(occasion, tag, teller))
        for teller, (share, key) in enumerate(zip(shares, sealing_keys, strict=True))
    )


def presentation_header(occasion: Occasion, survey: int, report: bytes, digests: Sequence[bytes]) -> bytes:
    """The header that the token signs: SHA-256(label, canonical packet with digests of its shares, without token)."""
    return sha256(labels.PRESENTATION, encode([*occasion.heading(), survey, report, list(digests)]))


@frozen
class Packet:
    """One packet's content. `shares` are sealed; none for a protocol without tellers."""

    occasion: Occasion
    survey: int
    report: bytes = field(repr=False)
    shares: tuple[bytes, ...] = field(repr=False)
    token: bytes = field(repr=False)

    @property
    def tag(self) -> bytes:
        """The token's first 48 bytes; proven only once the token verifies."""
        return self.token[:TAG_BYTES]

    @property
    def digests(self) -> tuple[bytes, ...]:
        """One for each share."""
        return tuple(sha256(labels.SEALED_SHARE, share) for share in self.shares)

    def presentation_header(self) -> bytes:
        """The header that the token signs."""
        return presentation_header(self.occasion, self.survey, self.report, self.digests)

    def to_bytes(self) -> bytes:
        """The canonical plaintext."""
        return encode([*self.occasion.heading(), self.survey, self.report, list(self.shares), self.token])

    def published(self) -> PublishedPacket:
        """The form in which it is published, and in which the aggregator keeps it."""
        return PublishedPacket(self.occasion, self.survey, self.report, self.digests, self.token)

    def relayed(self, teller: int) -> Relayed:
        """The part that this teller is shown."""
        return self.published().relayed(teller, self.shares[teller])


@frozen
class PublishedPacket:
    """A packet as a transcript has it: in place of every sealed share its digest. No sealed share is ever published.

        [2, study, round, slot, survey, report, [digest, ...], token]
    """

    occasion: Occasion
    survey: int
    report: bytes = field(repr=False)
    digests: tuple[bytes, ...] = field(repr=False)
    token: bytes = field(repr=False)

    @property
    def study(self) -> bytes:
        """The study's id."""
        return self.occasion.study

    @property
    def slot(self) -> int:
        """The slot's number."""
        return self.occasion.slot

    @property
    def tag(self) -> bytes:
        """The token's first 48 bytes; proven only once the token verifies."""
        return self.token[:TAG_BYTES]

    def presentation_header(self) -> bytes:
        """The header that the token signs."""
        return presentation_header(self.occasion, self.survey, self.report, self.digests)

    def to_bytes(self) -> bytes:
        """The canonical bytes."""
        return encode([*self.occasion.heading(), self.survey, self.report, list(self.digests), self.token])

    def relayed(self, teller: int, share: bytes) -> Relayed:
        """The part that this teller is shown, with its share."""
        return Relayed(self.occasion, self.survey, self.report, self.digests, teller, share, self.token)


def parse_published(data_untrusted: bytes) -> PublishedPacket:
    """A packet as transcripts and stores have it. Its lengths are the study's to check. Raises `Malformed`."""
    fields = _fields(data_untrusted, "packet")
    _demand_kinds(fields, (int, bytes, int, int, int, bytes, list, bytes))
    _, study, round_number, slot, survey, report, digests, token = fields
    _demand_kinds(digests, (bytes,) * len(digests))
    if not 0 <= survey < MOST_SURVEYS or len(digests) > MOST_SHARES:
        raise Malformed(f"packet: expected a survey below {MOST_SURVEYS} and at most {MOST_SHARES} shares")
    if any(len(digest) != DIGEST_BYTES for digest in digests):
        raise Malformed(f"packet: expected digests of {DIGEST_BYTES} bytes")
    return PublishedPacket(Occasion(study, round_number, slot), survey, report, tuple(digests), token)


def is_of(share_untrusted: bytes, digest: bytes) -> bool:
    """True if a sealed share is the one with this digest."""
    return sha256(labels.SEALED_SHARE, share_untrusted) == digest


@frozen
class Layout:
    """The lengths of a study's packets, in bytes: longest report, each teller's share before it is sealed, token.

    A short report makes no shorter packet:

    >>> layout = Layout(report=16, shares=(), token=496)
    >>> packets = [Packet(Occasion(bytes(32), 0, 0), 0, bytes(size), (), bytes(496)) for size in (1, 16)]
    >>> {len(pad(packet.to_bytes(), layout.plain_size)) for packet in packets} == {layout.plain_size}
    True
    """

    report: int
    shares: tuple[int, ...]
    token: int

    @cached_property
    def plain_size(self) -> int:
        """The constant size of the plaintext: the longest canonical packet and its length prefix."""
        # The largest numbers: CBOR writes small ones in fewer bytes.
        occasion = Occasion(bytes(STUDY_BYTES), MOST_ROUNDS - 1, MOST_SLOTS - 1)
        shares = tuple(bytes(size) for size in self.sealed_shares)
        return 4 + len(Packet(occasion, MOST_SURVEYS - 1, bytes(self.report), shares, bytes(self.token)).to_bytes())

    @property
    def sealed_size(self) -> int:
        """The constant size on the wire."""
        return self.plain_size + OVERHEAD

    @property
    def sealed_shares(self) -> tuple[int, ...]:
        """The length of each share once it is sealed."""
        return tuple(size + OVERHEAD for size in self.shares)

    def demand_shares(self, shares: Sequence[bytes]) -> None:
        """Raises `Malformed` unless there is a sealed share of its length for each teller."""
        if tuple(len(share) for share in shares) != self.sealed_shares:
            raise Malformed(f"packet: expected {len(self.shares)} shares of the study's lengths")


COVER = "cover"
"""Where a packet has its study: so that neither can be read as the other."""


@frozen
class Dummy:
    """Cover traffic for one window: of the same size as a packet and answered alike, and about nobody. The same
    plaintext from every peer; only its seal differs."""

    study: bytes
    opens: int
    closes: int

    def to_bytes(self) -> bytes:
        """The canonical plaintext: `[2, "cover", study, opens, closes]`."""
        return encode([VERSION, COVER, self.study, self.opens, self.closes])


def pad(plaintext: bytes, size: int) -> bytes:
    """Length prefix, content, zeros: always `size` bytes.

    >>> pad(b"yes", 10).hex(), len(pad(b"no", 10))
    ('00000003796573000000', 10)
    """
    if len(plaintext) + 4 > size:
        raise Malformed(f"packet: {len(plaintext)} bytes do not fit the study's size {size}")
    return len(plaintext).to_bytes(4, "big") + plaintext + bytes(size - 4 - len(plaintext))


def unpad(padded_untrusted: bytes, size: int) -> bytes:
    """The content of `pad`; any other filling is refused, so that a packet has one spelling. Raises `Malformed`."""
    if len(padded_untrusted) != size:
        raise Malformed(f"packet: expected {size} bytes, got {len(padded_untrusted)}")
    length = int.from_bytes(padded_untrusted[:4], "big")
    if length > size - 4 or any(padded_untrusted[4 + length :]):
        raise Malformed("packet: wrong padding")
    return padded_untrusted[4 : 4 + length]


@frozen
class SealedPacket:
    """Ciphertext to the study's key: what the outbox stores and the route carries, the same bytes on every retry."""

    ciphertext: bytes = field(repr=False)


def seal_packet(packet: Packet, layout: Layout, sealing_key: bytes) -> SealedPacket:
    """The packet for the wire: padded to the study's size, sealed to its key. Raises `Malformed`."""
    return _sealed(packet.to_bytes(), packet.occasion.study, layout, sealing_key)


def seal_dummy(dummy: Dummy, layout: Layout, sealing_key: bytes) -> SealedPacket:
    """Cover traffic of the same size under the same seal. Raises `Malformed`."""
    return _sealed(dummy.to_bytes(), dummy.study, layout, sealing_key)


def _sealed(plaintext: bytes, study: bytes, layout: Layout, sealing_key: bytes) -> SealedPacket:
    return SealedPacket(seal(pad(plaintext, layout.plain_size), sealing_key, packet_info(study)))


def parse_packet(padded_untrusted: bytes, layout: Layout) -> Packet | Dummy:
    """A packet or a dummy of the study's lengths, after its seal was opened. Raises `Malformed`.

    A report is no longer than the longest; its own length is that of its survey, which is checked elsewhere.
    """
    plaintext = unpad(padded_untrusted, layout.plain_size)
    fields = _fields(plaintext, "packet")
    if len(fields) == 5 and fields[1] == COVER:
        _demand_kinds(fields, (int, str, bytes, int, int))
        return Dummy(*fields[2:])
    _demand_kinds(fields, (int, bytes, int, int, int, bytes, list, bytes))
    _, study, round_number, slot, survey, report, shares, token = fields
    _demand_kinds(shares, (bytes,) * len(layout.shares))
    _demand_lengths(survey, report, token, layout, shortest=0)
    layout.demand_shares(shares)
    return Packet(Occasion(study, round_number, slot), survey, report, tuple(shares), token)


@frozen
class Relayed:
    """A packet as one teller is shown it: its own share, and for every share a digest.

        [2, study, round, slot, survey, report, [digest, ...], teller, share, token]
    """

    occasion: Occasion
    survey: int
    report: bytes = field(repr=False)
    digests: tuple[bytes, ...] = field(repr=False)
    teller: int
    share: bytes = field(repr=False)
    token: bytes = field(repr=False)

    @property
    def tag(self) -> bytes:
        """The token's first 48 bytes; proven only once the token verifies."""
        return self.token[:TAG_BYTES]

    def token_item(self) -> tuple[bytes, bytes, bytes]:
        """Token, pseudonym context and presentation header: what its verification needs."""
        header = presentation_header(self.occasion, self.survey, self.report, self.digests)
        return self.token, self.occasion.tag_context(), header

    def to_bytes(self) -> bytes:
        """The canonical bytes."""
        content = [self.survey, self.report, list(self.digests), self.teller, self.share, self.token]
        return encode([*self.occasion.heading(), *content])


def parse_relayed(data_untrusted: bytes, layout: Layout) -> Relayed:
    """A relayed packet of the study's lengths, whose share has the digest of its place. Raises `Malformed`."""
    fields = _fields(data_untrusted, "relayed packet")
    _demand_kinds(fields, (int, bytes, int, int, int, bytes, list, int, bytes, bytes))
    _, study, round_number, slot, survey, report, digests, teller, share, token = fields
    _demand_kinds(digests, (bytes,) * len(layout.shares))
    _demand_lengths(survey, report, token, layout, shortest=layout.report)
    if not 0 <= teller < len(layout.shares) or len(share) != layout.shares[teller] + OVERHEAD:
        raise Malformed("relayed packet: expected a share of the study's length for one of its tellers")
    if not is_of(share, digests[teller]):
        raise Malformed("relayed packet: the share is not the one of the packet")
    return Relayed(Occasion(study, round_number, slot), survey, report, tuple(digests), teller, share, token)


def _fields(data_untrusted: bytes, what: str) -> list[Any]:
    fields = decode(data_untrusted, what)
    if not isinstance(fields, list) or not fields or type(fields[0]) is not int or fields[0] != VERSION:
        raise Malformed(f"{what}: expected version {VERSION}")
    return fields


def _demand_kinds(fields: Sequence[Any], kinds: Sequence[type]) -> None:
    if len(fields) != len(kinds) or not all(type(value) is kind for value, kind in zip(fields, kinds, strict=True)):
        raise Malformed(f"packet: expected {len(kinds)} fields of the documented kinds")


def _demand_lengths(survey: int, report: bytes, token: bytes, layout: Layout, shortest: int) -> None:
    if not 0 <= survey < MOST_SURVEYS:
        raise Malformed(f"packet: expected a survey below {MOST_SURVEYS}")
    if not shortest <= len(report) <= layout.report or len(token) != layout.token:
        raise Malformed(f"packet: expected at most {layout.report} bytes of report, and {layout.token} of token")
