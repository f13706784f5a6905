"""Spellings, chains of heads, seeds, documents in buckets, and what a bucket holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from anon.crypto import labels
from anon.crypto.nacl import SigningKey
from anon.transparency.bucketed import credentials_bucket, roster_bucket, transcript_bucket
from anon.transparency.buckets import BucketDocument, bits_of, bucket_at, bucket_of, document_over
from anon.transparency.documents import Head, SignedHead, encode_chain, next_head, signed
from anon.transparency.fingerprint import head_words
from anon.transparency.merkle import leaf_hash
from anon.wire.cbor import encode, sha256
from anon.wire.messages import RosterEntry, encode_credentials, encode_roster, encode_seed
from benchmarks.vectors.made import Case, Kind, Stream, changed, flipped, replaced
from benchmarks.vectors.study import Study, finished

SEVERAL = 5000
"""Entries of a document over several buckets: 16 of them."""


def kinds() -> list[Kind]:
    """All of this module."""
    return [_cbor(), _heads(), _seeds(), _documents(), _buckets(), _contents()]


# Spellings


def _cbor() -> Kind:
    plain = [
        0, 23, 24, 255, 256, 65535, 65536, 2**32, 2**64 - 1, 2**64, -1, -24, -25, -(2**64), -(2**64) - 1, 1.5, 0.1,
        1e300,
        -0.0, 65504.0, 100000.0, "", "a", "ü", b"", bytes(24), True, False, None, [], [1, [2, b"x"]], {},
        {"a": 1, "b": 2},
        {"b": 1, "aa": 2}, {1: "x", b"k": 2}, [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]],
    ]
    cases = [Case(f"value {number}", {"bytes": encode(value)}) for number, value in enumerate(plain)]
    long = "an argument is spelled in the fewest bytes"
    broken = {
        "nothing": ("", "a value is there"), "cut short": ("8201", "a value is whole"),
        "a byte more": ("0101", "nothing follows"), "1 in two bytes": ("1801", long),
        "255 in three bytes": ("1900ff", long),
        "a length in two bytes": ("580161", long), "a list's length in two bytes": ("98020102", long),
        "an integer of 8 bytes as tag 2": ("c2480000000000000001", "a tag is of integers beyond 64 bits"),
        "tag 2 with leading zeros": ("c249000000000000000001", "an integer is spelled in the fewest bytes"),
        "a list without length": ("9f01ff", "lengths are definite"),
        "bytes without length": ("5f4101ff", "lengths are definite"),
        "a text without length": ("7f6161ff", "lengths are definite"),
        "a map without length": ("bf616101ff", "lengths are definite"),
        "keys out of order": ("a2616201616102", "shorter keys come first, then bytewise"),
        "a longer key first": ("a26261610161620a", "shorter keys come first, then bytewise"),
        "a key twice": ("a2616101616102", "no key is there twice"),
        "1.5 in eight bytes": ("fb3ff8000000000000", "the shortest float"),
        "1.5 in four bytes": ("fa3fc00000", "the shortest float"), "infinity": ("f97c00", "floats are finite"),
        "not a number": ("f97e00", "floats are finite"), "undefined": ("f7", "values are plain"),
        "a simple value": ("f0", "values are plain"), "a date": ("c11a00000000", "values are plain"),
        "a shared value": ("d81c80", "values are plain"), "no UTF-8": ("61ff", "a text is UTF-8"),
        "a list as a key": ("a18001", "keys are texts, integers or bytes"),
        "reserved length": ("1c", "values are plain"),
        "17 deep": ("81" * 17 + "01", "a value is at most 16 deep"),
        "bytes that are missing": ("4401", "a value is whole"),
        "a break alone": ("ff", "values are plain"),
        "a float as a key": ("a1f93e0001", "keys are texts, integers or bytes"),
        "nothing but lists": ("98c8" + "80" * 200, "at most a list for each four bytes, and 64 more"),
    }
    cases += [Case(name, {"bytes": bytes.fromhex(text)}, why) for name, (text, why) in broken.items()]
    return Kind("cbor", "Bytes that are one plain value in its one spelling.", tuple(cases))


# Heads


def _heads() -> Kind:
    study = finished("cuts")
    chain, other = study.chain(), finished("quantile")
    shared = {"key": bytes(study.signing.verify_key), "study": study.study}
    known = {"key": "@key", "study": "@study"}

    def case(name: str, heads: bytes | Sequence[SignedHead], why: str) -> Case:
        return Case(name, {"heads": heads if isinstance(heads, bytes) else encode_chain(heads), **known}, why)

    cases = [
        Case(f"{length} heads", {"heads": encode_chain(chain[:length]), **known}, "", _told(chain[:length]))
        for length in range(len(chain) + 1)
    ]
    whole = encode_chain(chain)
    fields = ["study", "number", "kind", "part", "length", "digest", "previous"]
    broken = {
        "study": bytes(32), "number": 7, "part": -1, "length": -1, "digest": bytes(32), "previous": bytes(32),
        "kind": "Roster",
    }
    types = {"number": "2", "kind": b"roster", "part": 0.0, "length": True, "digest": "x", "study": None}
    for at in (0, 2, len(chain) - 1):
        for name, value in (broken | ({"previous": bytes([1] * 32)} if at == 0 else {})).items():
            unsigned = _with(chain[at], fields.index(name), value)
            why = "a signature is of the head" if name in ("digest", "kind") else f"the {name} is what it must be"
            cases.append(case(f"head {at} with another {name}", _put(whole, at, [unsigned, chain[at].signature]), why))
            if name in ("study", "number", "part", "length", "previous", "kind"):
                made = [unsigned, study.signing.sign(_signed_digest(unsigned)).signature]
                cases.append(case(f"head {at} signed with another {name}", _put(whole, at, made),
                    f"the {name} is what it must be"))
    for name, wrong in types.items():
        unsigned = _with(chain[1], fields.index(name), wrong)
        made = [unsigned, study.signing.sign(_signed_digest(unsigned)).signature]
        cases.append(case(f"head whose {name} has another type", _put(whole, 1, made), "seven fields have their types"))
    stranger = SigningKey(Stream("stranger")(32))
    head = next_head(study.study, chain[:1], "x" * 12, 0, b"")
    rest = chain[2:]
    cases += [
        case("two heads changed about", [chain[1], chain[0], *rest], "heads are in the order of their numbers"),
        case("a head left out", [chain[0], *rest], "heads are numbered from 0, and each names the one before"),
        case("a head twice", [*chain[:2], chain[1], *rest], "heads are numbered from 0"),
        case("a head of another study", [other.chain()[0], *chain[1:]], "heads are of the study, by its key"),
        case("a signature of another key", [signed(stranger, chain[0].head), *chain[1:]], "a signature is by the key"),
        case("a signature with a bit turned over", [SignedHead(chain[0].head, flipped(chain[0].signature)), *chain[1:]],
             "a signature is of the head"),
        case("a signature of 63 bytes", _put(whole, 0, [chain[0].head.to_bytes(), chain[0].signature[:-1]]),
            "64 bytes"),
        case("a kind of twelve letters", [chain[0], signed(study.signing, head)], "a kind has 1 to 11 small letters"),
        case("a head of eight fields",
            _put(whole, 0, [changed(chain[0].head.to_bytes(), lambda f: [*f, 0]), bytes(64)]), "seven fields"),
        case("a head of six fields", _put(whole, 0, [changed(chain[0].head.to_bytes(), lambda f: f[:-1]), bytes(64)]),
            "seven fields"),
        case("a body too long", [signed(study.signing, _long(chain[0].head))], "a body has at most 64 MiB"),
        case("a pair of three", _put(whole, 0, [chain[0].head.to_bytes(), chain[0].signature, b""]),
            "a list of [head, signature]"),
        case("a map in place of a list", b"\xa0", "a list of [head, signature]"),
        case("cut short", whole[:-1], "the one spelling"),
        case("a byte more", whole + b"\0", "the one spelling"),
        case("under another study's id", encode_chain(other.chain()), "heads are of the study, by its key"),
    ]
    return Kind("heads", "A chain of signed heads under a study's key. It gives kind, part and words of each.",
        tuple(cases), shared)


def _told(chain: Sequence[SignedHead]) -> dict[str, object]:
    return {"heads": [[one.head.kind, one.head.part, head_words(one)] for one in chain]}


def _with(signed_head: SignedHead, field: int, value: object) -> bytes:
    return changed(signed_head.head.to_bytes(), lambda fields: replaced(fields, field, value))


def _signed_digest(head: bytes) -> bytes:
    return sha256(labels.HEAD, head)


def _put(chain: bytes, place: int, pair: object) -> bytes:
    return changed(chain, lambda pairs: replaced(pairs, place, pair))


def _long(head: Head) -> Head:
    return Head(head.study, 0, head.kind, 0, 64 * 1024 * 1024 + 1, head.digest, head.previous)


# Seeds, and the end for too few


def _seeds() -> Kind:
    study = finished("cuts")
    body, commitment = study.bodies["seed", 0], study.manifest.seed_commitment
    asked = {"study": study.study, "commitment": commitment}
    opens = "SHA-256(label, value) is the commitment"
    broken = {
        "another value": (encode_seed(study.study, bytes(32)), opens),
        "a value of 31 bytes": (encode_seed(study.study, study.value[:-1]), opens),
        "the commitment itself": (encode_seed(study.study, commitment), opens),
        "the second value": (study.bodies["seed", 1], opens),
        "of another study": (encode_seed(bytes(32), study.value), "it is of this study"),
        "version 2": (changed(body, lambda fields: [2, *fields[1:]]), "the version is 1"),
        "a field more": (changed(body, lambda fields: [*fields, 0]), "three fields"),
        "a text as value": (changed(body, lambda fields: [*fields[:2], "x" * 32]), "fields have their types"),
        "cut short": (body[:-1], "the one spelling"),
    }
    cases = [
        Case("the seed", {"body": body, **asked}, "", {"value": study.value}),
        Case("the second seed", {"body": study.bodies["seed", 1], "study": study.study, "commitment": study.value}, "",
             {"value": study.score_value}),
    ]
    cases += [Case(name, {"body": made, **asked}, why) for name, (made, why) in broken.items()]
    return Kind("seeds", "A document that opens a commitment. It gives the value.", tuple(cases))


# Documents in buckets


def _documents() -> Kind:
    study, cases = finished("cuts"), []
    for kind, part in (("roster", 0), ("credentials", 0), ("transcript", 0)):
        body = study.bodies[kind, part]
        asked = {"study": study.study, "kind": kind, "part": part}
        leaves = [leaf_hash(bytes([number])) for number in range(1 << bits_of(SEVERAL))]
        several = document_over(study.study, kind, part, SEVERAL, leaves, b"").to_bytes()
        cases.append(Case(f"{kind} of one bucket", {"body": body, **asked}, "", {"count": 4, "bits": 0}))
        cases.append(Case(f"{kind} of 16 buckets", {"body": several, **asked}, "", {"count": SEVERAL, "bits": 4}))
        why_bits = "the bits are those of the number: 0 below 4,096, else floor(log2(N / 256))"
        broken = {
            "version 2": (changed(body, lambda f: [2, *f[1:]]), "the version is 1"),
            "of another study": (changed(body, lambda f: replaced(f, 1, bytes(32))), "it is of this study"),
            "of another kind": (changed(body, lambda f: replaced(f, 2, "edges")), "it is of this kind"),
            "of another part": (changed(body, lambda f: replaced(f, 3, 1)), "it is of this part"),
            "below no entries": (changed(body, lambda f: replaced(f, 4, -1)), "a number of entries is at least 0"),
            "of 2^32 entries": (changed(several, lambda f: replaced(f, 4, 2**32)), "a number of entries is below 2^32"),
            "bits of 1": (changed(body, lambda f: replaced(f, 5, 1)), why_bits),
            "one bucket of 5,000": (changed(body, lambda f: replaced(f, 4, SEVERAL)), why_bits),
            "several buckets of 4": (changed(several, lambda f: replaced(f, 4, 4)), why_bits),
            "bits of 5": (changed(several, lambda f: replaced(f, 5, 5)), why_bits),
            "root of 31 bytes": (changed(several, lambda f: replaced(f, 6, bytes(31))), "a root has 32 bytes"),
            "a field more": (changed(body, lambda f: [*f, 0]), "seven fields"),
            "a text as root": (changed(body, lambda f: replaced(f, 6, "x")), "fields have their types"),
            "true as part": (changed(body, lambda f: replaced(f, 3, False)), "fields have their types"),
        }
        cases += [Case(f"{kind} {name}", {"body": made, **asked}, why) for name, (made, why) in broken.items()]
    return Kind("bucket-documents", "The signed document over buckets. It gives its number of entries and bits.",
        tuple(cases))


def _buckets() -> Kind:
    study, cases = finished("cuts").study, []
    bodies = [encode_roster(study, _entries(number, 2)) for number in range(16)]
    leaves = [*map(leaf_hash, bodies)]
    document = document_over(study, "roster", 0, SEVERAL, leaves, b"")
    asked = {"study": study, "kind": "roster", "part": 0, "body": document.to_bytes()}
    for number in (0, 1, 6, 15):
        cases.append(Case(f"bucket {number}",
            {**asked, "number": number, "bucket": bucket_at(leaves, number, bodies[number]).to_bytes()}))
    made = bucket_at(leaves, 6, bodies[6])
    wire, leads = made.to_bytes(), "body and path lead to the signed root"
    longer = made.to_bytes(len(wire) + 100)
    cases.append(Case("bucket 6 filled with zeros", {**asked, "number": 6, "bucket": longer}))

    def sent(body: object, path: object) -> bytes:
        plain = encode([body, path])
        return len(plain).to_bytes(4, "big") + plain

    steps = list(made.path)
    broken = {
        "another number": (7, wire, leads), "number 16": (16, wire, leads),
        "another body": (6, sent(bodies[7], steps), leads),
        "a bit of the body": (6, sent(flipped(bodies[6]), steps), leads),
        "a step less": (6, sent(bodies[6], steps[:-1]), leads),
        "a step more": (6, sent(bodies[6], [*steps, bytes(32)]), leads),
        "steps turned round": (6, sent(bodies[6], steps[::-1]), leads),
        "a step of 31 bytes": (6, sent(bodies[6], [*steps[:-1], steps[-1][:-1]]), "a step has 32 bytes"),
        "a bit of a step": (6, sent(bodies[6], [flipped(steps[0]), *steps[1:]]), leads),
        "filled with ones": (6, longer[:-1] + b"\1", "what fills it up is zeros"),
        "a length too long": (6, len(wire).to_bytes(4, "big") + wire[4:], "the length is that of the content"),
        "a text as body": (6, sent("body", steps), "a body and a path"),
        "a field more": (6, encode([bodies[6], steps, 0]), "a length comes first"),
        "cut short": (6, wire[:-1], "the length is that of the content"), "nothing": (6, b"", "a length comes first"),
    }
    cases += [Case(name, {**asked, "number": at, "bucket": data}, why) for name, (at, data, why) in broken.items()]
    return Kind("buckets", "A bucket on the wire under its document.", tuple(cases))


def _entries(bucket: int, some: int) -> list[RosterEntry]:
    """Entries that belong into a bucket of 16."""
    drawn = Stream(f"bucket {bucket}")
    keys: list[bytes] = []
    for _ in count():
        key = drawn(32)
        if bucket_of(key, 4) == bucket:
            keys.append(key)
        if len(keys) == some:
            break
    return [RosterEntry(key, drawn(32), drawn(48)) for key in sorted(keys)]


# The contents of buckets


def _contents() -> Kind:
    study = finished("cuts")
    return Kind(
        "bucket-contents",
        "What a bucket of a roster, of credentials or of a transcript holds. It gives the number of entries.",
        (*_rosters(study), *_credentials(study), *_transcripts(study)),
    )


def _case(name: str, document: BucketDocument, number: int, content: bytes, why: str = "", entries: int = 0) -> Case:
    asked = {"study": document.study, "kind": document.kind, "part": document.part, "body": document.to_bytes()}
    return Case(name, {**asked, "number": number, "content": content}, why, {} if why else {"entries": entries})


def _rosters(study: Study) -> list[Case]:
    content = study.contents["roster", 0][0]
    one = document_over(study.study, "roster", 0, 4, [leaf_hash(content)], content)
    several = document_over(study.study, "roster", 0, SEVERAL, [leaf_hash(b"")] * 16, b"")
    own = roster_bucket(study.study, _entries(6, 3)).content
    stray = encode_roster(study.study, [*_entries(6, 2), *_entries(7, 1)])

    def edit(change: object) -> bytes:
        return changed(content, lambda fields: [*fields[:2], change(fields[2])])  # type: ignore[operator]

    broken = {
        "out of order": (edit(lambda rows: rows[::-1]), "entries are strictly sorted by key"),
        "an entry twice": (edit(lambda rows: [rows[0], *rows]), "entries are strictly sorted by key"),
        "an entry less": (edit(lambda rows: rows[1:]), "one bucket has all entries"),
        "a key of 31 bytes": (edit(lambda rows: [[rows[0][0][:-1], *rows[0][1:]], *rows[1:]]), "a key has 32 bytes"),
        "a point of 49 bytes": (edit(lambda rows: [[*rows[0][:2], bytes(49)], *rows[1:]]), "a point has 48 bytes"),
        "a field more": (edit(lambda rows: [[*rows[0], b""], *rows[1:]]), "an entry has three fields"),
        "of another study": (changed(content, lambda fields: [1, bytes(32), fields[2]]), "it is of this study"),
        "version 2": (changed(content, lambda fields: [2, *fields[1:]]), "the version is 1"),
        "cut short": (content[:-1], "the one spelling"), "a byte more": (content + b"\0", "the one spelling"),
    }
    return [
        _case("a roster", one, 0, content, "", 4), _case("a roster's bucket 6", several, 6, own, "", 3),
        _case("a roster's bucket as another one", several, 7, own, "an entry stands in its own bucket"),
        _case("a roster with a stray entry", several, 6, stray, "an entry stands in its own bucket"),
        *(_case(f"a roster {name}", one, 0, made, why) for name, (made, why) in broken.items()),
    ]


def _credentials(study: Study) -> list[Case]:
    content = study.contents["credentials", 0][0]
    one = document_over(study.study, "credentials", 0, 4, [leaf_hash(content)], content)
    signatures = [bytes([number] * 80) for number in range(4)]
    broken = {
        "of one less": credentials_bucket(study.study, signatures[1:]).content,
        "of one more": credentials_bucket(study.study, [*signatures, bytes(80)]).content,
        "with one of 79 bytes": encode_credentials(study.study, [*signatures[1:], bytes(79)]),
        "of another study": encode_credentials(bytes(32), signatures),
    }
    why = "an entry of the roster has a signature of 80 bytes each"
    return [
        _case("credentials", one, 0, content, "", 4),
        *(_case(f"credentials {name}", one, 0, made, why) for name, made in broken.items()),
    ]


def _transcripts(study: Study) -> list[Case]:
    content = study.contents["transcript", 0][0]
    one = document_over(study.study, "transcript", 0, 4, [leaf_hash(b"")], b"\0")
    empty = document_over(study.study, "transcript", 0, 0, [leaf_hash(b"")], b"\0")
    plain = sorted((one.tag, one.to_bytes()) for one in study.packets)
    packets = [packet for _tag, packet in plain]

    def of(some: Sequence[bytes], slot: int = 0) -> bytes:
        return transcript_bucket(study.study, slot, some).content

    another = changed(packets[0], lambda fields: replaced(fields, 3, 1))
    broken = {
        "out of order": (of(packets[::-1]), "packets are strictly sorted by tag"),
        "with a packet twice": (of([packets[0], *packets]), "packets are strictly sorted by tag"),
        "of another slot": (of(packets, 1), "it is of its slot"),
        "with a packet of another slot": (of([another, *packets[1:]]), "a packet is of the transcript's slot"),
        "with a packet cut short": (of([packets[0][:-1], *packets[1:]]), "a packet is well formed"),
        "of another study": (changed(content, lambda fields: replaced(fields, 1, bytes(32))), "it is of this study"),
        "of slot 256": (changed(content, lambda fields: replaced(fields, 2, 256)), "a slot is below 256"),
        "with a text": (changed(content, lambda fields: replaced(fields, 3, ["x"])), "packets are byte strings"),
        "cut short": (content[:-1], "the one spelling"),
    }
    return [
        _case("a transcript", one, 0, content, "", 4), _case("an empty transcript", empty, 0, of([]), "", 0),
        *(_case(f"a transcript {name}", one, 0, made, why) for name, (made, why) in broken.items()),
    ]
