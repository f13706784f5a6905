"""The wire between a study's aggregator and one of its tellers, for both of them: pure functions on bytes.

A call is a POST to `/v1/<name>`. Its body is an opening of 128 bytes, then the request, canonical CBOR. The opening is
the aggregator's key, the request's SHA-256, and a signature of SHA-256(label, teller's key, name, digest, length). So
a teller knows who asks before it reads a request, and what will come. Strangers, who can read a teller's address in
any manifest, can ask for nothing but an offer. `entry` is that offer: there is no study yet, and the teller's key is
not known, so it is signed for an empty one. A teller that names no aggregators takes one that anybody signed. GET
`/v1/words` is anybody's.

| name | request | reply |
|---|---|---|
| words | | [name, words] |
| entry | [name, address] | the entry, canonical bytes |
| countersign | [manifest] | `Countersignature` |
| key-shares | [study] | {fellow: sealed part of the verification key} |
| key-share | [study, sender, sealed part] | [] |
| roll | [study, heads, roster, seed, credentials, [bucket, ...]] | [] |
| admit | [study, round, slot, [relayed packet, ...]] | [`VerifierShares`, {code: how many were refused}] |
| settle | [study, round, slot, [each fellow's `VerifierShares`, ...]] | [every tag of theirs that is accepted, ...] |
| accepted | [study, round, slot] | [every tag accepted so far, ...] |
| list | [study, round, slot, list] | `ListSignature` |
| noise | [study, round, slot, [each fellow's `ListSignature`, ...]] | `NoisyShare` |
| finish | [study] | [] |

All calls may be repeated, and then say the same again. Packets go in `batches`, and each batch is settled with the
fellows' statements about that same batch: `settle` decides about the packets that those statements name. A refusal is
JSON, {"error": code, "message": text}, and a disagreement adds "evidence" in hexadecimal.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from attrs import field

from anon.crypto import labels
from anon.crypto.nacl import BadSignatureError, SigningKey, VerifyKey
from anon.errors import (
    FAULT_IN_THIS_PROGRAM,
    AnonmlError,
    Conflict,
    Damaged,
    Malformed,
    NoRoom,
    Refused,
    RejectedProof,
    Unreachable,
)
from anon.sharing.arrangement import Arrangement, TellerEntry, parse_entry
from anon.sharing.statements import Disagreed, read_disagreement
from anon.text.foreign import LONGEST_TOLD, Quoted
from anon.text.sentences import Term, joined
from anon.values import frozen
from anon.wire.cbor import decode, encode, sha256
from anon.wire.packets import MOST_TELLERS, STUDY_BYTES, TAG_BYTES, Occasion
from anon.wire.strict_json import read_json

T = TypeVar("T")
PREFIX = "/v1/"
WORDS_PATH = PREFIX + "words"
OPENING_BYTES = 32 + 32 + 64
SHORT, LARGEST_FAULT = 2**14, 2**16
"""Bytes of a call that carries no packets; of a refusal."""
_CODE = re.compile(r"[a-z][a-z-]{0,39}")
"""Of a reason: a word that the reader's own program has, and no sentence."""
MOST_IN_A_BATCH, BATCH_BYTES = 128, 2**22
"""Packets, and bytes: a teller takes such a batch in a few seconds, well within the time of a slow route."""


@frozen
class CallForm:
    """One of the calls: the kinds of its request's fields, and the most bytes of its body and of its reply."""

    kinds: tuple[type, ...]
    most_body: int = SHORT
    most_reply: int = SHORT


CALLS: Mapping[str, CallForm] = {
    "entry": CallForm((str, str)),
    "countersign": CallForm((bytes,), most_body=2**22),
    "key-shares": CallForm((bytes,)),
    "key-share": CallForm((bytes, int, bytes)),
    "roll": CallForm((bytes, bytes, bytes, bytes, bytes, list), most_body=2**25),
    "admit": CallForm((bytes, int, int, list), most_body=2**24, most_reply=2**24),
    "settle": CallForm((bytes, int, int, list), most_body=2**25),
    "accepted": CallForm((bytes, int, int), most_reply=2**23),
    "list": CallForm((bytes, int, int, bytes), most_body=2**23),
    "noise": CallForm((bytes, int, int, list), most_reply=2**21),
    "finish": CallForm((bytes,)),
}


@frozen
class TellerCall(Generic[T]):
    """A call as an aggregator makes it: post `body` to `path`, then give the answer to `answered`."""

    name: str
    request: bytes = field(repr=False)
    read: Callable[[bytes], T] = field(repr=False)

    @property
    def path(self) -> str:
        """The path that it is posted to."""
        return PREFIX + self.name

    @property
    def most_reply(self) -> int:
        """The longest answer to read, in bytes."""
        return max(CALLS[self.name].most_reply, LARGEST_FAULT)

    def body(self, key: SigningKey, teller: bytes) -> bytes:
        """The bytes to post, signed by the aggregator's `key` for the teller with this lasting key. For `entry` it is
        not known yet."""
        digest = hashlib.sha256(self.request).digest()
        signed = opening_digest(b"" if self.name == "entry" else teller, self.name, digest, len(self.request))
        return bytes(key.verify_key) + digest + key.sign(signed).signature + self.request

    def answered(self, status: int, body_untrusted: bytes, arrangement: Arrangement | None = None) -> T:
        """The reply. Raises the typed error that the teller told, `Malformed` for a reply of another form, and
        `Unreachable` for an answer that is no teller's. `arrangement`: of the study, to check evidence with."""
        if status != 200:
            raise read_fault(body_untrusted, arrangement)
        return self.read(body_untrusted)


def opening_digest(teller: bytes, name: str, digest: bytes, length: int) -> bytes:
    """The digest that an aggregator signs: for this teller and this call alone, and for a request of this digest and
    length."""
    return sha256(labels.TELLER_REQUEST, teller, name.encode(), digest, length.to_bytes(8, "big"))


# The aggregator's side


def ask_entry(name: str, address: str) -> TellerCall[TellerEntry]:
    """A fresh entry for one study. The teller refuses another name or address than its own."""
    return TellerCall("entry", encode([name, address]), parse_entry)


def ask_countersign(manifest: bytes) -> TellerCall[bytes]:
    """This teller's countersignature."""
    return TellerCall("countersign", encode([manifest]), _statement)


def ask_key_shares(study: bytes) -> TellerCall[Mapping[int, bytes]]:
    """By fellow, a part of the verification key, sealed to it."""
    return TellerCall("key-shares", encode([study]), _key_shares)


def ask_key_share(study: bytes, sender: int, sealed: bytes) -> TellerCall[None]:
    """Pass a fellow's part on."""
    return TellerCall("key-share", encode([study, sender, sealed]), _nothing)


def ask_roll(
    study: bytes, heads: bytes, roster: bytes, seed: bytes, credentials: bytes, beside: Sequence[bytes]
) -> TellerCall[None]:
    """Pass on the documents that closed the enrolment, with the chain of heads. `beside`: where the documents have
    several buckets, those of the roster and the credentials in turn."""
    return TellerCall("roll", encode([study, heads, roster, seed, credentials, list(beside)]), _nothing)


def ask_admit(occasion: Occasion, items: Sequence[bytes]) -> TellerCall[tuple[bytes, Mapping[str, int]]]:
    """Relayed packets, one of `batches`: verifier shares of those that were taken, and counts of the refused."""
    return TellerCall("admit", encode([*_place(occasion), list(items)]), _admitted)


def ask_settle(occasion: Occasion, statements: Sequence[bytes]) -> TellerCall[frozenset[bytes]]:
    """The verifier shares of each fellow, in the fellows' order, about one batch: the tags in it that are accepted."""
    return TellerCall("settle", encode([*_place(occasion), list(statements)]), _tags)


def ask_accepted(occasion: Occasion) -> TellerCall[frozenset[bytes]]:
    """Every tag accepted so far."""
    return TellerCall("accepted", encode(_place(occasion)), _tags)


def ask_list(occasion: Occasion, body: bytes) -> TellerCall[bytes]:
    """The signature of the one list."""
    return TellerCall("list", encode([*_place(occasion), body]), _statement)


def ask_noise(occasion: Occasion, signatures: Sequence[bytes]) -> TellerCall[bytes]:
    """The noisy share, once each fellow's signature of the list is there."""
    return TellerCall("noise", encode([*_place(occasion), list(signatures)]), _statement)


def ask_finish(study: bytes) -> TellerCall[None]:
    """The study is over; the teller erases its secrets."""
    return TellerCall("finish", encode([study]), _nothing)


def read_words(body_untrusted: bytes) -> tuple[str, str]:
    """A teller's name and words, as GET `/v1/words` answers. Raises `Malformed`."""
    name, words = _listed(decode(body_untrusted, "words"), (str, str), "words")
    return name, words


def batches(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Relayed packets in batches of bounded size, in their order; one packet at least in each."""
    batch: list[bytes] = []
    size = 0
    for item in items:
        if batch and (len(batch) == MOST_IN_A_BATCH or size + len(item) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item)
    if batch:
        yield batch


def _statement(body: bytes) -> bytes:
    return body


def _nothing(body_untrusted: bytes) -> None:
    if body_untrusted != encode([]):
        raise Malformed("teller's reply: expected an empty list")


def _key_shares(body_untrusted: bytes) -> Mapping[int, bytes]:
    plain = decode(body_untrusted, "teller's reply")
    if type(plain) is not dict or not all(type(key) is int and type(share) is bytes for key, share in plain.items()):
        raise Malformed("teller's reply: expected a sealed part for each fellow")
    if not all(0 <= key < MOST_TELLERS for key in plain):
        raise Malformed(f"teller's reply: expected fellows below {MOST_TELLERS}")
    return plain


def _admitted(body_untrusted: bytes) -> tuple[bytes, Mapping[str, int]]:
    statement, counts = _listed(decode(body_untrusted, "teller's reply"), (bytes, dict), "teller's reply")
    if not all(type(code) is str and _CODE.fullmatch(code) for code in counts):
        raise Malformed("teller's reply: expected reasons of small letters and hyphens")
    if not all(type(count) is int and 0 < count <= MOST_IN_A_BATCH for count in counts.values()):
        raise Malformed("teller's reply: expected a count for each reason, of no more than a batch")
    return statement, counts


def _tags(body_untrusted: bytes) -> frozenset[bytes]:
    tags = decode(body_untrusted, "teller's reply")
    if type(tags) is not list or not all(type(tag) is bytes and len(tag) == TAG_BYTES for tag in tags):
        raise Malformed("teller's reply: expected tags")
    return frozenset(tags)


def _place(occasion: Occasion) -> list[Any]:
    return [occasion.study, occasion.round, occasion.slot]


def _listed(plain_untrusted: object, kinds: Sequence[type], what: str) -> list[Any]:
    if type(plain_untrusted) is not list or [type(value) for value in plain_untrusted] != list(kinds):
        raise Malformed(f"{what}: expected {len(kinds)} fields of the documented kinds")
    return plain_untrusted


# The teller's side


@frozen
class CallOpening:
    """The beginning of a call's body: who asks, for a request of this digest and length in bytes."""

    name: str
    signer: bytes
    digest: bytes
    length: int
    signature: bytes = field(repr=False)

    def is_for(self, teller: bytes) -> bool:
        """True if the signer signed it for this teller."""
        teller = b"" if self.name == "entry" else teller
        try:
            VerifyKey(self.signer).verify(opening_digest(teller, self.name, self.digest, self.length), self.signature)
        except (BadSignatureError, ValueError, TypeError):
            return False
        return True


@frozen
class SignedCall:
    """A call's request as it came, before it is decoded: nothing large is built for a stranger."""

    opening: CallOpening
    request: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """Of the call."""
        return self.opening.name

    @property
    def study(self) -> bytes:
        """The study that it is about, the first field of every such request. Raises `Malformed`."""
        head = encode(bytes(STUDY_BYTES))[:-STUDY_BYTES]
        # Byte 0 is the head of the list, one byte for every call's few fields.
        if self.request[1 : 1 + len(head)] != head or len(self.request) < 1 + len(head) + STUDY_BYTES:
            raise Malformed("request: expected the id of a study first")
        return self.request[1 + len(head) : 1 + len(head) + STUDY_BYTES]

    def fields(self, aggregator: bytes, teller: bytes) -> list[Any]:
        """The request's fields. Raises `RejectedProof` unless this aggregator signed it for this teller, `Malformed`.
        """
        if not self.is_by(aggregator, teller):
            raise RejectedProof("a request is not signed by the study's aggregator")
        return read_request(self.name, self.request)

    def is_by(self, aggregator: bytes, teller: bytes) -> bool:
        """True if this aggregator signed it for this teller."""
        if self.opening.signer != aggregator or not self.opening.is_for(teller):
            return False
        return hashlib.sha256(self.request).digest() == self.opening.digest and len(self.request) == self.opening.length


def read_opening(name: str, came_untrusted: bytes, length: int) -> CallOpening:
    """The opening of a body of this length. Raises `Malformed`."""
    if length <= OPENING_BYTES or len(came_untrusted) < OPENING_BYTES:
        raise Malformed(f"{name}: expected {OPENING_BYTES} bytes that say who asks, and a request")
    signer, digest, signature = came_untrusted[:32], came_untrusted[32:64], came_untrusted[64:OPENING_BYTES]
    return CallOpening(name, signer, digest, length - OPENING_BYTES, signature)


def read_signed(name: str, body_untrusted: bytes) -> SignedCall:
    """A signed body. Raises `Malformed`."""
    opening = read_opening(name, body_untrusted[:OPENING_BYTES], len(body_untrusted))
    return SignedCall(opening, body_untrusted[OPENING_BYTES:])


def read_request(name: str, request_untrusted: bytes) -> list[Any]:
    """The fields of a request, of the kinds of its call. Raises `Malformed`."""
    fields = _listed(decode(request_untrusted, "request"), CALLS[name].kinds, "request")
    if CALLS[name].kinds[-1] is list and not all(type(item) is bytes for item in fields[-1]):
        raise Malformed("request: expected a list of byte strings")
    return fields


def reply(value: Any) -> bytes:
    """A reply's bytes: a statement as it is, anything else as canonical CBOR."""
    return value if isinstance(value, bytes) else encode(value)


# Errors

_TYPED: Mapping[str, tuple[type[AnonmlError], int]] = {
    error.code: (error, status)
    for error, status in (
        (Malformed, 400), (RejectedProof, 401), (Refused, 403), (Conflict, 409), (Damaged, 500), (Unreachable, 503),
        (NoRoom, 507),
    )
}
_OWN = {
    Damaged.code: "a file of the teller is damaged, and it stops; the person who runs it must look",
    NoRoom.code: "the teller's disk is full; nothing is lost, ask the person who runs it to make room",
}
"""In place of messages that name files of the teller's machine."""
_NO_TELLER = "no teller answers at this address, or one of another version; check the address"


CANNOT_ANSWER = Term("the teller cannot answer")


def fault(error: Exception) -> tuple[int, bytes]:
    """Status and body of a refusal. A fault of the program tells nothing of itself."""
    if isinstance(error, Disagreed):
        return 409, _json(error.code, str(error), evidence=error.evidence.to_bytes().hex())
    kind = next((kind for kind, _ in _TYPED.values() if isinstance(error, kind)), None)
    if kind is None:
        return 500, _json(AnonmlError.code, FAULT_IN_THIS_PROGRAM)
    return _TYPED[kind.code][1], _json(kind.code, _OWN.get(kind.code, str(error)))


def read_fault(body_untrusted: bytes, arrangement: Arrangement | None = None) -> AnonmlError:
    """The typed error that a teller told: its evidence is checked, and its words are marked as somebody else's."""
    try:
        told = read_json(body_untrusted[:LARGEST_FAULT])
        code, message = str(told["error"]), Quoted(str(told["message"]), LONGEST_TOLD)
        if code == Disagreed.code and arrangement is not None:
            return Disagreed(read_disagreement(bytes.fromhex(told["evidence"]), arrangement))
    except (ValueError, TypeError, LookupError):
        return Unreachable(_NO_TELLER)
    except AnonmlError:
        return RejectedProof("a teller tells of a disagreement, and its evidence proves nothing")
    if code == Disagreed.code:
        return Conflict(message)
    known = _TYPED.get(code)
    return known[0](message) if known is not None else Unreachable(joined((CANNOT_ANSWER, message), ": "))


def _json(code: str, message: str, **more: str) -> bytes:
    return json.dumps({"error": code, "message": message, **more}).encode()
