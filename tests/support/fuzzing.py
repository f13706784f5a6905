"""The parsers of bytes that strangers send, and a search for bytes that lead them along lines that none before led them
along.

The inputs that it found are kept in `tests/corpus`, for each parser a list of byte strings in canonical CBOR.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import pytest
from attrs import evolve, field, frozen

from anon.crypto.nacl import SigningKey
from anon.errors import AnonmlError
from anon.sharing import exchange
from anon.sharing.arrangement import parse_arrangement
from anon.sharing.quorum import parse_quorum
from anon.sharing.round_document import RoundSums, SlotSum, UnsummedRound, Why, parse_unsummed, read_round_sums
from anon.sharing.statements import (
    AcceptedList,
    ListSignature,
    NoisyShare,
    VerifierShares,
    disagreement_of,
    parse_disagreement,
    parse_list,
    parse_list_signature,
    parse_noisy_share,
    parse_verifier_shares,
)
from anon.transparency.bucketed import roster_in_buckets, transcript_in_buckets
from anon.transparency.buckets import parse_bucket, parse_bucket_document
from anon.transparency.documents import encode_chain, parse_chain, sign_head
from anon.transparency.equivocation import evidence_of, parse_evidence
from anon.transparency.transcript import parse_digest_list, parse_transcript
from anon.wire.cbor import decode, encode
from anon.wire.invite import parse_invite
from anon.wire.messages import (
    Enrolment,
    parse_credentials,
    parse_enrolment,
    parse_roster,
    parse_seed,
    parse_withdrawal,
    sign_enrolment,
    sign_withdrawal,
)
from anon.wire.packets import Dummy, pad, parse_packet, parse_published, parse_relayed
from anon.wire.replies import ACCEPTED, encode_reply, parse_reply
from tests.support.fake_aggregator import FakeAggregator
from tests.support.protocols import parse_manifest
from tests.support.tellers import make_world

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
LONGEST = 4096
"""Bytes of an input that the search makes or keeps."""
ROOT = str(Path(__file__).resolve().parents[2] / "anon")
Lines = frozenset[tuple[str, int, int]]


@frozen
class Parser:
    """Reads untrusted bytes; `honest`: some that it takes. `spelled`: the one spelling of what it read, where there is
    one."""

    read: Callable[[bytes], Any]
    honest: tuple[bytes, ...] = field(repr=False)
    spelled: Callable[[Any], bytes] | None = None

    def demand_sound(self, data: bytes) -> None:
        """An input is taken, or refused by an error of ours. One that is taken is the one spelling of what it says."""
        try:
            said = self.read(data)
        except AnonmlError:
            return
        assert self.spelled is None or self.spelled(said) == data, "a second spelling was taken"


def _own(said: Any) -> bytes:
    made = said.to_bytes()
    assert isinstance(made, bytes)
    return made


@cache
def parsers() -> dict[str, Parser]:
    """By name."""
    with _repeated(), TemporaryDirectory() as folder:
        world = make_world(Path(folder))
        aggregator, arrangement, occasion = world.aggregator, world.arrangement, world.occasion()
        packets = world.packets()
        keys = [teller._key for teller in world.tellers]
        for journal in world.journals:
            journal.close()
    manifest, study = aggregator.manifest, aggregator.study
    layout = arrangement.layout(manifest.packets)
    shares = VerifierShares(
        occasion, 0, {one.tag: bytes(arrangement.prio3(arrangement.sums[0]).verifier_share_size) for one in packets}
    )
    accepted = AcceptedList(occasion, tuple(sorted(one.tag for one in packets)))
    signed = [ListSignature(occasion, at, bytes([at]) * 32).sign(key) for at, key in enumerate(keys)]
    noisy = NoisyShare(occasion, 0, accepted.digest(), b"share").sign(keys[0])
    evidence = disagreement_of(*signed, arrangement).to_bytes()
    sums = RoundSums(study, 0, (SlotSum(0, accepted.to_bytes(), tuple(signed), (noisy, noisy)),))
    published = [one.published().to_bytes() for one in packets]
    members = aggregator.entries
    bucketed, transcript = roster_in_buckets(study, members), transcript_in_buckets(study, 0, published)
    own = SigningKey(bytes(32))
    ours = Enrolment(
        study, bytes(own.verify_key), bytes(32), next(iter(aggregator.enrolments.values())).commitment, b""
    )
    cover = Dummy(study, 0, 100).to_bytes()
    with _repeated():
        old = FakeAggregator.with_study()
    aggregator_key = SigningKey(bytes(32))
    chain = encode_chain(aggregator.chain)
    other = sign_head(aggregator.key, study, aggregator.chain[:1], "roster", 0, b"another")
    call = exchange.ask_admit(occasion, [b"a"]).body(aggregator_key, bytes(32))
    made = {
        "cbor": Parser(
            decode, (encode([1, b"a", "b", [2, {3: b"c"}]]), encode(-1), encode({"a": [True, None]})), encode
        ),
        "enrolment": Parser(lambda data: parse_enrolment(data, study, manifest.packets), (sign_enrolment(ours, own),)),
        "withdrawal": Parser(lambda data: parse_withdrawal(data, study), (sign_withdrawal(study, own),)),
        "packet": Parser(
            lambda data: parse_packet(data, layout),
            (pad(packets[0].to_bytes(), layout.plain_size), pad(cover, layout.plain_size)),
        ),
        "published": Parser(parse_published, (published[0],), _own),
        "relayed": Parser(
            lambda data: parse_relayed(data, layout),
            (packets[0].relayed(0).to_bytes(), packets[1].relayed(1).to_bytes()),
            _own,
        ),
        "roster": Parser(lambda data: parse_roster(data, study), (bucketed.contents[0],)),
        "seed": Parser(lambda data: parse_seed(data, study, manifest.seed_commitment), (aggregator.bodies[2],)),
        "credentials": Parser(
            lambda data: parse_credentials(data, study, len(members)), (aggregator.made[3].contents[0],)
        ),
        "transcript": Parser(lambda data: parse_transcript(data, study), (transcript.contents[0],)),
        "digest-list": Parser(lambda data: parse_digest_list(data, study, 0), (transcript.bucket(0).body,)),
        "heads": Parser(
            lambda data: parse_chain(data, bytes(aggregator.key.verify_key), study), (chain,), encode_chain
        ),
        "bucket-document": Parser(
            lambda data: parse_bucket_document(data, study, "roster", 0), (bucketed.document.to_bytes(),), _own
        ),
        "bucket": Parser(lambda data: parse_bucket(data, bucketed.document, 0), (bucketed.bucket(0).to_bytes(),)),
        "manifest": Parser(parse_manifest, (manifest.to_bytes(), old.manifest.to_bytes()), _own),
        "evidence": Parser(
            lambda data: parse_evidence(data, None), (evidence_of(manifest, aggregator.chain[1], other).to_bytes(),)
        ),
        "invite": Parser(lambda data: parse_invite(data.decode("utf-8", "replace")), (old.invite.link().encode(),)),
        "reply": Parser(parse_reply, (encode_reply(ACCEPTED),)),
        "arrangement": Parser(parse_arrangement, (arrangement.to_bytes(),), _own),
        "quorum": Parser(lambda data: parse_quorum(study, data), (arrangement.to_bytes(),), _own),
        "verifier-shares": Parser(
            lambda data: parse_verifier_shares(data, occasion, 0, arrangement), (shares.sign(keys[0]),)
        ),
        "accepted-list": Parser(lambda data: parse_list(data, occasion), (accepted.to_bytes(),), _own),
        "list-signature": Parser(lambda data: parse_list_signature(data, arrangement), tuple(signed)),
        "noisy-share": Parser(lambda data: parse_noisy_share(data, arrangement), (noisy,)),
        "disagreement": Parser(lambda data: parse_disagreement(data, study, arrangement), (evidence,), _own),
        "round-sums": Parser(lambda data: read_round_sums(data, study, 0), (sums.to_bytes(),), _own),
        "unsummed": Parser(
            lambda data: parse_unsummed(arrangement, study, data),
            (UnsummedRound(study, 0, Why.AWAY).to_bytes(), UnsummedRound(study, 0, Why.DISAGREED, evidence).to_bytes()),
            _own,
        ),
        "call": Parser(lambda data: exchange.read_signed("admit", data), (call,)),
        "request": Parser(lambda data: exchange.read_request("admit", data), (call[exchange.OPENING_BYTES :],)),
        "words": Parser(exchange.read_words, (encode(["name", "words"]),)),
        "fault": Parser(lambda data: exchange.read_fault(data, arrangement), (exchange.fault(AnonmlError("no"))[1],)),
    }
    return {
        name: evolve(parser, honest=tuple(one for one in parser.honest if len(one) <= LONGEST))
        for name, parser in made.items()
    }


def kept(name: str) -> list[bytes]:
    """The corpus of a parser."""
    file = CORPUS / f"{name}.cbor"
    return list(decode(file.read_bytes())) if file.exists() else []


def keep(name: str, found: Iterable[bytes]) -> None:
    """Add inputs to it."""
    CORPUS.mkdir(exist_ok=True)
    (CORPUS / f"{name}.cbor").write_bytes(encode(sorted({*kept(name), *found})))


@contextmanager
def _repeated() -> Iterator[None]:
    """Keys and draws are the same whenever they are made here, so that what was kept is about the same study."""
    numbers = count()

    def urandom(size: int) -> bytes:
        return hashlib.shake_256(b"%d" % next(numbers)).digest(size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", urandom)
        patch.setattr(SigningKey, "generate", classmethod(lambda kind: kind(urandom(32))))
        yield


@contextmanager
def traced() -> Iterator[set[tuple[str, int, int]]]:
    """The steps from line to line of `anon` that are taken meanwhile."""
    seen: set[tuple[str, int, int]] = set()

    def line(frame: FrameType, event: str, _: object) -> Any:
        seen.add((frame.f_code.co_name, last.get(frame, 0), frame.f_lineno))
        last[frame] = frame.f_lineno
        if event == "return":
            last.pop(frame, None)
        return line

    def call(frame: FrameType, _event: str, _: object) -> Any:
        return line if frame.f_code.co_filename.startswith(ROOT) else None

    last: dict[FrameType, int] = {}
    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield seen
    finally:
        sys.settrace(before)


def mutated(data: bytes, others: list[bytes], drawn: random.Random) -> bytes:
    """A few bytes changed, taken out, doubled or put in, or a part of another input in place of one."""
    made = bytearray(data)
    for _ in range(drawn.choice((1, 1, 1, 2, 4))):
        at = drawn.randrange(len(made) + 1)
        to = min(len(made), at + drawn.choice((1, 1, 2, 8, 32)))
        match drawn.randrange(6):
            case 0 if at < len(made):
                made[at] ^= 1 << drawn.randrange(8)
            case 1:
                made[at:to] = b""
            case 2:
                made[at:at] = made[at:to]
            case 3:
                made[at:at] = bytes(
                    [drawn.choice((0x00, 0x17, 0x18, 0x20, 0x40, 0x5F, 0x80, 0x9F, 0xA0, 0xBF, 0xF6, 0xFB, 0xFF))]
                )
            case 4 if others:
                other = drawn.choice(others)
                start = drawn.randrange(len(other) + 1)
                made[at:to] = other[start : start + drawn.choice((1, 4, 32, 128))]
            case _ if at < len(made):
                made[at] = drawn.randrange(256)
    return bytes(made[:LONGEST])


def searched(name: str, tries: int, drawn: random.Random) -> list[bytes]:
    """Inputs that led the parser where none of the corpus and none before led it. Raises what a fault of it raises."""
    parser, pool, fresh = parsers()[name], [*parsers()[name].honest, *kept(name)] or [b""], list[bytes]()
    with traced() as known:
        for one in pool:
            parser.demand_sound(one)
    for _ in range(tries):
        data = mutated(drawn.choice(pool), pool, drawn)
        with traced() as steps:
            parser.demand_sound(data)
        if not steps <= known:
            known |= steps
            pool.append(data)
            fresh.append(data)
    return fresh
