"""Countersignatures, documents of sums, and ends without a sum."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from anon.protocols.sum.standing import arrangement_of, read_sum
from anon.sharing.quorum import quorums
from anon.sharing.round_document import RoundSums, SlotSum, UnsummedRound, Why
from anon.sharing.statements import (
    AcceptedList,
    Countersignature,
    ListSignature,
    NoisyShare,
    arrangement_digest,
    disagreement_of,
)
from anon.wire.cbor import decode, encode
from anon.wire.packets import Occasion
from benchmarks.vectors.made import Case, Kind, Stream, changed, flipped, replaced
from benchmarks.vectors.study import SUMS, Study, countersignatures, finished, listed, round_of, summed, teller_key


def kinds() -> list[Kind]:
    """All of this module."""
    return [_tellers(), _sums(), _ends()]


# Tellers


def _tellers() -> Kind:
    cases: list[Case] = []
    shared: dict[str, bytes] = {}
    for name, tellers in (("tables", 2), ("spare", 3)):
        study = _spare() if tellers == 3 else finished("tables")
        arrangement = arrangement_of(study.manifest)
        shared[f"manifest {name}"] = study.manifest.to_bytes()
        asked, body = {"manifest": f"@manifest {name}"}, study.bodies["tellers", 0]
        said, study_id = countersignatures(study.manifest), study.study
        digest = arrangement_digest(arrangement)
        by_word = "a teller says this study, its own number and the arrangement"

        def of(statements: Sequence[object], named: bytes = study_id) -> bytes:
            return encode([2, named, list(statements)])

        strange = Countersignature(bytes(32), 0, digest).sign(teller_key(0))
        broken = {
            "one less": (of(said[:-1]), "each teller countersigned"),
            "one more": (of([*said, said[0]]), "each teller countersigned"),
            "changed about": (of(said[::-1]), "in the tellers' order"),
            "one twice": (of([said[0], *said[:-1]]), "in the tellers' order"),
            "of another study": (of(said, bytes(32)), "it is of this study"),
            "of a word about another study": (of([strange, *said[1:]]), by_word),
            "of another arrangement": (of([Countersignature(study_id, 0, bytes(32)).sign(teller_key(0)), *said[1:]]),
                by_word),
            "of another's number": (of([Countersignature(study_id, 1, digest).sign(teller_key(0)), *said[1:]]),
                by_word),
            "by another key": (of([Countersignature(study_id, 0, digest).sign(teller_key(2)), *said[1:]]),
                "a signature is by the teller's key"),
            "with a bit turned over": (of([flipped(said[0]), *said[1:]]), "a signature is of the word"),
            "version 1": (changed(body, lambda fields: [1, *fields[1:]]), "the version is 2"),
            "cut short": (body[:-1], "the one spelling"),
        }
        cases.append(Case(name, {**asked, "body": body}))
        cases += [Case(f"{name} {what}", {**asked, "body": made}, why) for what, (made, why) in broken.items()]
    return Kind("tellers", "The countersignatures of a study's tellers.", tuple(cases), shared)


def _spare() -> Study:
    return finished("tables", 4, "", 3)


# Sums


def _sums() -> Kind:
    cases: list[Case] = []
    shared: dict[str, bytes] = {}
    for name, study in {**{design: finished(design) for design in SUMS}, "spare": _spare()}.items():
        shared[f"manifest {name}"] = study.manifest.to_bytes()
        for number in range(len(study.manifest.surveys)):
            tags = sorted(one.tag for one in study.packets if one.slot == number)
            asked = {"manifest": f"@manifest {name}", "round": number, "members": len(study.members), "tags": tags}
            pairs = range(len(quorums(study.study, arrangement_of(study.manifest))))
            for pair in pairs:
                for some in (tags, tags[1:], tags[:2]):
                    body = round_of(study, number, some, pair)
                    told = read_sum(study.manifest, number, body)
                    gives = {"values": [*map(str, told.values)], "summed": told.accepted,
                        "left out": len(tags) - len(some)}
                    cases.append(Case(f"{name} {number}: {len(some)} by pair {pair}", {**asked, "body": body}, "",
                        gives))
            cases += [Case(f"{name} {number} {what}", {**asked, "body": made}, why) for what,
                (made, why) in _bad_sums(study, number).items()]
    return Kind("sums", "A round's document of sums. It gives the sum, how many are in it, and how many it leaves out.",
        tuple(cases), shared)


def _bad_sums(study: Study, number: int) -> dict[str, tuple[bytes, str]]:
    quorum, accepted = listed(study, number)
    row = summed(study, quorum, accepted)
    occasion, digest = accepted.occasion, accepted.digest()
    tags, drawn = accepted.tags, Stream("sums")
    keys = [teller_key(at) for at in quorum.members]

    def of(slot: SlotSum, round_number: int = number, named: bytes = study.study) -> bytes:
        return RoundSums(named, round_number, (slot,)).to_bytes()

    def with_list(some: Sequence[bytes], of_occasion: Occasion = occasion) -> bytes:
        return of(summed(study, quorum, AcceptedList(of_occasion, tuple(some))))

    def word(teller: int, named: bytes) -> tuple[bytes, ...]:
        return ListSignature(occasion, teller, named).sign(keys[0]), *row.signatures[1:]

    def share(content: bytes, named: bytes = digest) -> tuple[bytes, ...]:
        return NoisyShare(occasion, 0, named, content).sign(keys[0]), *row.shares[1:]

    whole = decode(decode(row.shares[0])[0])[-1]
    beyond = b"\xff" * len(whole)
    extra = tuple(drawn(48) for _ in range(2))
    unsorted = evolve(accepted, tags=tags[::-1])
    one_list, one_share = "every teller signed this list", "every teller's share is for this list"
    return {
        "of another study": (of(row, named=bytes(32)), "it is of this study"),
        "of another round": (of(row, number + 1), "it is of this round"),
        "of another slot": (of(evolve(row, slot=row.slot + 1)), "it has the slots of the round"),
        "of no slot": (encode([2, study.study, number, []]), "it has the slots of the round"),
        "of a slot twice": (changed(of(row), lambda fields: replaced(fields, 3, fields[3] * 2)),
            "each slot once, in order"),
        "of too few": (with_list(tags[:1]), "a sum is of the fewest members at least"),
        "of nobody": (with_list([]), "a sum is of the fewest members at least"),
        "of tags out of order": (of(evolve(row, accepted=unsorted.to_bytes())), "tags are strictly sorted"),
        "of a tag twice": (with_list([tags[0], *tags]), "tags are strictly sorted"),
        "of a tag of 47 bytes": (of(evolve(row, accepted=encode([*occasion.heading(), [tag[:-1] for tag in tags]]))),
            "a tag has 48 bytes"),
        "of strangers": (with_list(sorted([*tags[:2], *extra])), "every tag is in the transcript"),
        "of more than the members": (with_list(sorted([*tags, *extra])), "no more vectors than members"),
        "with another list": (of(evolve(row, accepted=evolve(accepted, tags=tags[1:]).to_bytes())), one_list),
        "of a list of another round": (of(evolve(row,
            accepted=evolve(accepted, occasion=evolve(occasion, round=9)).to_bytes())), one_list),
        "without a signature": (of(evolve(row, signatures=row.signatures[:-1])), one_list),
        "with a signature more": (of(evolve(row, signatures=(*row.signatures, row.signatures[0]))), one_list),
        "with signatures changed about": (of(evolve(row, signatures=row.signatures[::-1])), "in the tellers' order"),
        "with a signature of another list": (of(evolve(row, signatures=word(0, bytes(32)))), one_list),
        "with a digest of 31 bytes": (of(evolve(row, signatures=word(0, bytes(31)))), "a digest has 32 bytes"),
        "with a signature by another key": (of(evolve(row,
            signatures=(ListSignature(occasion, 0, digest).sign(keys[1]), *row.signatures[1:]))),
                                            "a signature is by the teller's key"),
        "with a bit of a signature": (of(evolve(row, signatures=(flipped(row.signatures[0]), *row.signatures[1:]))),
            "a signature is of the word"),
        "with a teller that is not there": (of(evolve(row, signatures=word(5, digest))),
            "tellers are those of the sum"),
        "without a share": (of(evolve(row, shares=row.shares[:-1])), one_share),
        "with shares changed about": (of(evolve(row, shares=row.shares[::-1])), "in the tellers' order"),
        "with a share for another list": (of(evolve(row, shares=share(whole, bytes(32)))), one_share),
        "with a bit of a share": (of(evolve(row, shares=(flipped(row.shares[0], 100), *row.shares[1:]))),
            "a signature is of the share"),
        "with a share too short": (of(evolve(row, shares=share(whole[:-1]))), "a share has its length"),
        "with a share too long": (of(evolve(row, shares=share(whole + bytes(16)))), "a share has its length"),
        "with a share beyond the field": (of(evolve(row, shares=share(beyond))), "elements are below the modulus"),
        "version 1": (changed(of(row), lambda fields: [1, *fields[1:]]), "the version is 2"),
        "a field more": (changed(of(row), lambda fields: [*fields, 0]), "four fields"),
        "cut short": (of(row)[:-1], "the one spelling"),
    }


def _ends() -> Kind:
    study = finished("gradient")
    arrangement, evidence = arrangement_of(study.manifest), _two_lists(study, 1)
    asked = {"manifest": "@manifest"}

    def end(round_number: int, why: Why, shown: bytes = b"") -> bytes:
        return UnsummedRound(study.study, round_number, why, shown).to_bytes()

    known = end(1, Why.AWAY)
    first_word, second_word = (
        ListSignature(Occasion(bytes(32), 1, 1), 0, bytes([one] * 32)).sign(teller_key(0)) for one in (1, 2)
    )
    elsewhere = disagreement_of(first_word, second_word, arrangement).to_bytes()
    proves = "evidence is two tellers' words of two lists for one sum of the round"
    first, second = decode(evidence)[1:]
    cases = [Case(str(why), {"body": end(0, why), **asked}, "",
        {"round": 0, "why": str(why)}) for why in Why if why is not Why.DISAGREED]
    cases.append(Case("tellers-disagree", {"body": end(1, Why.DISAGREED, evidence), **asked}, "",
        {"round": 1, "why": "tellers-disagree"}))

    def raw(*fields: object) -> bytes:
        return encode([2, study.study, *fields])

    broken = {
        "of a round that is not there": (end(3, Why.AWAY), "the study has the round"),
        "of another study": (changed(known, lambda f: replaced(f, 1, bytes(32))), "it is of this study"),
        "version 1": (changed(known, lambda f: [1, *f[1:]]), "the version is 2"),
        "for another reason": (raw(1, "tired", b""), "the reason is known"),
        "disagreement without evidence": (raw(1, "tellers-disagree", b""), proves),
        "evidence of nothing": (raw(1, "teller-away", evidence), "evidence is of a disagreement"),
        "evidence about another round": (raw(0, "tellers-disagree", evidence), proves),
        "evidence about another study": (raw(1, "tellers-disagree", elsewhere), proves),
        "evidence turned round": (raw(1, "tellers-disagree", encode([decode(evidence)[0], second, first])),
            "the smaller word first"),
        "evidence of one list": (raw(1, "tellers-disagree", encode([decode(evidence)[0], first, first])), proves),
        "evidence with a bit turned over": (raw(1, "tellers-disagree", flipped(evidence)),
            "signatures are the tellers'"),
        "evidence under another label": (raw(1, "tellers-disagree", encode([b"anonml/1/evidence", first, second])),
            "the label"),
        "a field more": (changed(known, lambda f: [*f, 0]), "five fields"),
        "a number as reason": (raw(1, 3, b""), "fields have their types"),
        "cut short": (known[:-1], "the one spelling"),
    }
    cases += [Case(name, {"body": made, **asked}, why) for name, (made, why) in broken.items()]
    return Kind("ends", "The document of a study that ended without a sum. It gives round and reason.", tuple(cases),
        {"manifest": study.manifest.to_bytes()})


def _two_lists(study: Study, number: int) -> bytes:
    _quorum, accepted = listed(study, number)
    other = evolve(accepted, tags=accepted.tags[1:])
    first, second = (
        ListSignature(accepted.occasion, at, one.digest()).sign(teller_key(at)) for at,
        one in enumerate((accepted, other))
    )
    return disagreement_of(first, second, arrangement_of(study.manifest)).to_bytes()
