"""Signatures, credentials, tokens and packets: points and scalars of both curves, and what a token proves."""

from __future__ import annotations

import hashlib

from attrs import evolve

from anon.credential import signer_nym_entropy
from anon.credential.proof import RANDOM_SCALARS
from anon.crypto.bls12381 import FIELD_ORDER, ORDER
from anon.crypto.curve import Scalar, scalar_from_uniform
from anon.crypto.nacl import SigningKey
from anon.crypto.pure.nacl import edwards
from anon.ldp import RawCategory
from anon.protocols.sortition import draw, tag_context
from anon.wire.packets import Packet, PublishedPacket
from benchmarks.vectors.made import Case, Kind, Stream, changed, flipped, replaced
from benchmarks.vectors.small_orders import AFFINE as AFFINE_POINTS
from benchmarks.vectors.small_orders import COFACTOR_PRIMES, forged_token, shifted_token, torsion
from benchmarks.vectors.study import Member, Study, begun, enrolled, finished

POINT, WIDE, SCALAR = 48, 96, 32
_INFINITY = bytes([0xC0]) + bytes(POINT - 1)
_OF_ORDER_3 = bytes([0x80]) + bytes(POINT - 1)
"""(0, 2): a point of the curve outside the subgroup, of order 3."""
_NO_POINT = bytes([0x80]) + bytes(POINT - 2) + b"\x01"
_NAMES = ("pseudonym", "Abar", "Bbar", "D", "T1", "T2", "Ut")
_POINTS = {
    "the identity": (_INFINITY, "no point is the identity"),
    "of order 3": (_OF_ORDER_3, "points are in the subgroup"),
    "off the curve": (_NO_POINT, "points are on the curve"),
    "of zeros": (bytes(POINT), "points are compressed"),
    "beyond the field": (bytes([0x80 | 0x1A]) + (FIELD_ORDER + 1).to_bytes(POINT, "big")[1:],
        "points have their one spelling"),
    "with all flags set": (bytes([0xE0]) + bytes(POINT - 1), "points have their one spelling"),
}
_WIDE = {
    "the identity": (_INFINITY + bytes(POINT), "no point is the identity"),
    "off the curve": (_NO_POINT + bytes(POINT), "points are on the curve"),
    "of zeros": (bytes(WIDE), "points are compressed"),
    "with x beyond the field":
        (_POINTS["beyond the field"][0] + bytes(POINT), "coordinates are below the field's order"),
    "with y beyond the field": (_OF_ORDER_3 + (FIELD_ORDER + 2).to_bytes(POINT, "big"),
        "coordinates are below the field's order"),
    "with another y": (_OF_ORDER_3 + (FIELD_ORDER - 2).to_bytes(POINT, "big"), "y is that of the compressed point"),
    "with all flags set": (bytes([0xE0]) + bytes(WIDE - 1), "points have their one spelling"),
    "of order 3": (_OF_ORDER_3 + bytes(POINT - 1) + b"\2", "the token proves this, under key and header"),
}
"""The last is on the curve. In the pseudonym it is outside the subgroup; elsewhere the challenge is another with it."""


def kinds() -> list[Kind]:
    """All of this module."""
    return [_signatures(), _credentials(), _tokens(), _packets()]


def _signatures() -> Kind:
    """Ed25519 where verifiers differ: another equation, or no test of small orders, takes what others refuse."""
    drawn = Stream("signatures")
    key, other, message = SigningKey(drawn(32)), SigningKey(drawn(32)), drawn(32)
    public, good = bytes(key.verify_key), key.sign(message).signature
    secret = int.from_bytes(hashlib.sha512(bytes(key)).digest()[:32], "little") & (1 << 254) - 8 | 1 << 254
    once, identity = int.from_bytes(drawn(64), "little") % edwards.ORDER, edwards.encode(edwards.IDENTITY)
    turned = edwards.decode(bytes(32))  # (a root of -1, 0), of order 4
    assert turned is not None
    mixed = edwards.encode(edwards.add(edwards.multiply(edwards.BASE, once), turned))

    def answered(shown: bytes, nonce: int, exponent: int, under: bytes) -> bytes:
        challenge = int.from_bytes(hashlib.sha512(shown + under + message).digest(), "little")
        return shown + ((nonce + challenge * exponent) % edwards.ORDER).to_bytes(32, "little")

    more = int.from_bytes(good[32:], "little") + edwards.ORDER
    broken = {
        "of another key": (bytes(other.verify_key), good, "a signature is by the key"),
        "with a bit of R": (public, flipped(good, 0), "a signature is of the message"),
        "with a bit of S": (public, flipped(good, 40), "a signature is of the message"),
        "with S and the order more": (public, good[:32] + more.to_bytes(32, "little"), "S is below the order"),
        "with a part of small order in R": (public, answered(mixed, once, secret, public),
            "the equation holds without a cofactor"),
        "with an R of order 4": (public, answered(bytes(32), 0, secret, public), "R is not of small order"),
        "with the identity as R": (public, answered(identity, 0, secret, public), "R is not of small order"),
        "with the identity as key": (identity,
            answered(edwards.encode(edwards.multiply(edwards.BASE, once)), once, 0, identity),
                                     "a key is not of small order"),
        "under zeros as key": (bytes(32), good, "a key is not of small order"),
        "of 63 bytes": (public, good[:-1], "a signature has 64 bytes"),
        "under a key of 31 bytes": (public[:-1], good, "a key has 32 bytes"),
    }
    cases = [Case("a signature", {"key": public, "message": message, "signature": good})]
    cases.append(Case("another",
        {"key": bytes(other.verify_key), "message": message, "signature": other.sign(message).signature}))
    cases += [Case(name, {"key": at, "message": message, "signature": made}, why) for name,
        (at, made, why) in broken.items()]
    return Kind("signatures", "An Ed25519 signature of a digest of 32 bytes.", tuple(cases))


def _credentials() -> Kind:
    study, other = finished("median"), finished("cuts")
    asked = {"key": "@key", "header": "@header", "packets": study.manifest.packets, "seed": "@seed"}
    shared = {"key": study.manifest.credential_key, "header": study.header, "seed": study.seed}
    rows = [(one.entry, _signature(one)) for one in study.members]

    def case(name: str, why: str = "", **more: object) -> Case:
        entry, signature = rows[0]
        given = {"member": entry.key, "commitment": entry.commitment_point, "signature": signature, **asked, **more}
        gives = {} if why else {"entropy": signer_nym_entropy(study.seed, entry.key)}
        return Case(name, given, why, gives)

    cases = [
        Case(
            f"member {number}",
            {"member": entry.key, "commitment": entry.commitment_point, "signature": signature, **asked}, "",
            {"entropy": signer_nym_entropy(study.seed, entry.key)},
        )
        for number, (entry, signature) in enumerate(rows)
    ]
    signature, fits = rows[0][1], "the signature is on this commitment, under key and header"
    a, e = signature[:POINT], signature[POINT:]
    cases += [
        case("another member's signature", fits, signature=rows[1][1]),
        case("another member's key", fits, member=rows[1][0].key),
        case("another member's commitment", fits, commitment=rows[1][0].commitment_point),
        case("another header", fits, header=other.header), case("another seed", fits, seed=other.seed),
        case("another number of packets", fits, packets=2),
        case("another issuer", fits, key=other.manifest.credential_key),
        case("another exponent", fits, signature=a + flipped(e)),
        case("a negated A", fits, signature=flipped(a, 0, 0x20) + e),
        case("a negated commitment", fits, commitment=flipped(rows[0][0].commitment_point, 0, 0x20)),
        case("an exponent of 0", "a scalar is at least 1", signature=a + bytes(SCALAR)),
        case("an exponent of r", "a scalar is below r", signature=a + ORDER.to_bytes(SCALAR, "big")),
        case("an exponent and r more", "a scalar is below r", signature=a + _more(e)),
    ]
    for name, (point, why) in _POINTS.items():
        cases.append(case(f"A {name}", why, signature=point + e))
        cases.append(case(f"a commitment {name}", why, commitment=point))
    infinity = bytes([0xC0]) + bytes(95)
    cases += [
        case("an issuer's key that is the identity", "a key is not the identity", key=infinity),
        case("an issuer's key off the curve", "a key is on the curve", key=bytes([0x80]) + bytes(94) + b"\x01"),
        case("an issuer's key of 95 bytes", "a key has 96 bytes", key=study.manifest.credential_key[:-1]),
    ]
    about = "A member's credential as everybody checks it. It gives the entropy in its last nym secret."
    return Kind("credentials", about, tuple(cases), shared)


def _signature(member: Member) -> bytes:
    if member.credential is None:
        raise ValueError("a member without a credential")
    return member.credential.signature


def _more(scalar: bytes) -> bytes:
    """The scalar and the group's order more: the same number, spelled otherwise, where it fits into 32 bytes."""
    return ((int.from_bytes(scalar, "big") + ORDER) % 2**256).to_bytes(SCALAR, "big")


def _tokens() -> Kind:
    cases: list[Case] = []
    shared: dict[str, bytes] = {}
    for name in ("cuts", "median", "tables"):
        study = finished(name)
        shared |= {f"key {name}": study.manifest.credential_key, f"header {name}": study.header}
        known = {"key": f"@key {name}", "header": f"@header {name}", "packets": study.manifest.packets}
        for number, packet in enumerate(study.packets[:6]):
            cases.append(Case(f"{name} {number}", _shown(study, packet) | known, "", {"tag": packet.tag}))
        cases += _bad_tokens(name, study, known)
    return Kind("tokens", "A token under its context and presentation header. It gives the tag.", tuple(cases), shared)


def _shown(study: Study, packet: PublishedPacket) -> dict[str, object]:
    context = tag_context(study.manifest, packet.slot)
    return {"token": packet.token, "context": context, "presentation": packet.presentation_header()}


def _bad_tokens(name: str, study: Study, known: dict[str, object]) -> list[Case]:
    packet = study.packets[0]
    other = _of_another_answer(study, packet)
    good, token = _shown(study, packet) | known, packet.token
    proves = "the token proves this, under key and header"
    broken: dict[str, tuple[dict[str, object], str]] = {
        "with another context": ({"context": bytes(32)}, proves),
        "with another presentation header": ({"presentation": other.presentation_header()}, proves),
        "with no presentation header": ({"presentation": b""}, proves),
        "under another header": ({"header": bytes(64)}, proves),
        "under the issuer of another study": ({"key": begun(name, "other").manifest.credential_key}, proves),
        "with another number of packets": ({"packets": study.manifest.packets + 1},
            "the length is that of the packets"),
        "cut short": ({"token": token[:-1]}, "the length is that of the packets"),
        "a byte longer": ({"token": token + b"\0"}, "the length is that of the packets"),
        "with another's pseudonym": ({"token": other.token[:WIDE] + token[WIDE:]}, proves),
        "with another's proof": ({"token": token[:WIDE] + other.token[WIDE:]}, proves),
        "of zeros": ({"token": bytes(len(token))}, "points are compressed"),
    }
    start = WIDE * len(_NAMES)
    for number, point_of in enumerate(_NAMES):
        begin, middle, end = (WIDE * number + part for part in (0, POINT, WIDE))
        other_y = FIELD_ORDER - int.from_bytes(token[middle:end], "big")
        turned = flipped(token[begin:middle], 0, 0x20) + other_y.to_bytes(POINT, "big")
        broken[f"with a negated {point_of}"] = ({"token": token[:begin] + turned + token[end:]}, proves)
        if name == "cuts":
            for kind, (point, why) in _WIDE.items():
                broken[f"with {point_of} {kind}"] = ({"token": token[:begin] + point + token[end:]}, why)
    for number in range((len(token) - start) // SCALAR):
        begin, end = start + SCALAR * number, start + SCALAR * (number + 1)
        own = token[begin:end]
        for kind, scalar, why in (
            ("another", flipped(own), proves), ("0 as", bytes(SCALAR), "a scalar is at least 1"),
            ("r as", ORDER.to_bytes(SCALAR, "big"), "a scalar is below r"),
        ):
            broken[f"with {kind} scalar {number}"] = ({"token": token[:begin] + scalar + token[end:]}, why)
    cases = [Case(f"{name} {what}", good | change, why) for what, (change, why) in broken.items()]
    return cases + (_small_orders(study, packet, good) if name == "cuts" else [])


def _small_orders(study: Study, packet: PublishedPacket, good: dict[str, object]) -> list[Case]:
    """Parts of small order, which the challenge covers."""
    credential, context = study.members[0].credential, tag_context(study.manifest, packet.slot)
    if credential is None:
        raise ValueError("a member without a credential")
    shown, drawn = packet.presentation_header(), Stream("small orders")
    cases = []

    def draw() -> Scalar:
        return scalar_from_uniform(drawn(48))

    for prime in COFACTOR_PRIMES:
        by = torsion(prime)
        each = {f"in {name}": {name: by} for name in ("pseudonym", *AFFINE_POINTS)}
        for where, shifts in {**each, "in all but the pseudonym": dict.fromkeys(AFFINE_POINTS, by)}.items():
            randomness = [draw() for _ in range(RANDOM_SCALARS + credential.count + 1)]
            token = shifted_token(credential, context, shown, randomness, shifts)
            why = "the pseudonym is in the subgroup" if "pseudonym" in shifts else ""
            gives = {} if why else {"tag": token[:POINT]}
            cases.append(Case(f"a part of order {prime} {where}", good | {"token": token}, why, gives))
        token = forged_token(credential.public_key, study.header, context, shown, by, draw)
        cases.append(
            Case(f"Abar of order {prime}", good | {"token": token}, "Abar has a part in the subgroup")
        )
    return cases


def _of_another_answer(study: Study, packet: PublishedPacket) -> PublishedPacket:
    header = packet.presentation_header()
    return next(one for one in study.packets if one.presentation_header() != header)


# Packets


def _packets() -> Kind:
    cases: list[Case] = []
    shared: dict[str, bytes] = {}
    for name in ("cuts", "quantile", "median", "tables"):
        study = finished(name)
        shared |= {
            f"manifest {name}": study.manifest.to_bytes(), f"roster {name}": study.bodies["roster", 0],
            f"seed {name}": study.bodies["seed", 0],
        }
        known = {"manifest": f"@manifest {name}", "roster": f"@roster {name}", "seed": f"@seed {name}"}
        for number, packet in enumerate(study.packets[:5]):
            told = {"tag": packet.tag, "survey": packet.survey, "slot": packet.slot}
            cases.append(Case(f"{name} {number}", {"packet": packet.to_bytes(), **known}, "", told))
        cases += [
            Case(f"{name} {what}", {"packet": data, **known}, why) for what, (data, why) in _bad_packets(study).items()
        ]
    return Kind("packets", "A published packet in its study. It gives tag, slot and survey.", tuple(cases), shared)


def _bad_packets(study: Study) -> dict[str, tuple[bytes, str]]:
    packet, member = study.packets[0], study.members[0]
    plain = packet.to_bytes()
    shown = "the token proves this packet"

    def other(place: int, value: object) -> bytes:
        return changed(plain, lambda fields: replaced(fields, place, value))

    drawn = Stream("another report")
    report = drawn(len(packet.report)) if study.manifest.protocol == "sum" else _another_report(study, packet)
    broken = {
        "of version 1": (other(0, 1), "the version is 2"),
        "of another study": (other(1, bytes(32)), "it is of this study"),
        "of a study of 31 bytes": (other(1, bytes(31)), "a study's id has 32 bytes"),
        "of another round": (other(2, packet.occasion.round + 1), "a slot has one round"),
        "of a slot that is not there": (other(3, len(study.manifest.slots)), "the slot is there"),
        "of slot 256": (other(3, 256), "a slot is below 256"),
        "of a survey that is not there": (other(4, len(study.manifest.surveys)), "the survey is there"),
        "of a survey below 0": (other(4, -1), "a survey is at least 0"),
        "with another report": (other(5, report), shown),
        "with a report too long": (other(5, packet.report + b"\0"), "a report has its length"),
        "without a report": (other(5, b""), "a report has its length"),
        "with a digest more": (other(6, [*packet.digests, bytes(32)]), "a digest for each share"),
        "with a digest of 31 bytes": (other(6, [bytes(31)]), "a digest has 32 bytes"),
        "with seven digests": (other(6, [bytes(32)] * 7), "a packet has at most six shares"),
        "with another token": (other(7, flipped(packet.token)), shown),
        "with a short token": (other(7, packet.token[:-1]), "a token has its length"),
        "with another's token": (other(7, _of_another_answer(study, packet).token), shown),
        "with a text as report": (other(5, "x"), "fields have their types"),
        "with true as slot": (other(3, False), "fields have their types"),
        "with a field more": (changed(plain, lambda fields: [*fields, 0]), "eight fields"),
        "with a field less": (changed(plain, lambda fields: fields[:-1]), "eight fields"),
        "cut short": (plain[:-1], "the one spelling"), "a byte longer": (plain + b"\0", "the one spelling"),
    }
    if packet.digests:
        broken["with another digest"] = (other(6, [flipped(packet.digests[0]), *packet.digests[1:]]), shown)
        broken["with a digest less"] = (other(6, list(packet.digests[1:])), "a digest for each share")
    if len(study.manifest.slots[0].rows) > 1:
        broken["of a survey that was not drawn"] = (_not_drawn(study, member).to_bytes(), "the tag draws the survey")
    broken["of a member of another roster"] = (_of_a_stranger(study).to_bytes(), "a credential is of this roster")
    return broken


def _another_report(study: Study, packet: PublishedPacket) -> bytes:
    mechanism = study.manifest.surveys[packet.survey].build()
    if mechanism.name == "krr":
        return ((int.from_bytes(packet.report, "big") + 1) % mechanism.m).to_bytes(2, "big")
    bits = "".join(f"{byte:08b}" for byte in packet.report)[: mechanism.m]
    turned = bits[1:] + bits[0]
    return int(turned.ljust(8 * len(packet.report), "0"), 2).to_bytes(len(packet.report), "big")


def _not_drawn(study: Study, member: Member) -> PublishedPacket:
    """A packet whose token is good, about a survey that its tag does not draw."""
    slot = study.manifest.slots[0]
    own = draw(slot, study.seed, study.tag(member, 0))
    survey = study.manifest.surveys[next(row.survey for row in slot.rows if row.survey != own)]
    sent = study.packet(member, 0)
    mechanism = survey.build()
    report = bytes(mechanism.perturb(RawCategory(0, mechanism.m), Stream("not drawn")))
    return study.signed(member, Packet(sent.occasion, survey.survey, report, (), b""))


def _of_a_stranger(study: Study) -> PublishedPacket:
    """A good packet under the credential of a roster that was never published."""
    elsewhere = evolve(study, drawn=Stream("stranger"), members=[], bodies=dict(study.bodies), contents={}, packets=[])
    enrolled(elsewhere, 1)
    return elsewhere.packet(elsewhere.members[0], 0)
