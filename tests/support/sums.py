"""Studies of exact sums for tests, the keys of their tellers, and rounds' documents of sums that a test chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from anon.crypto.nacl import SigningKey
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.crypto.sealing.opening import Opener
from anon.protocols.resolve import StudyKeys, resolve
from anon.protocols.sum.standing import arrangement_of, sum_asked
from anon.sharing.arrangement import TellerEntry
from anon.sharing.round_document import RoundSums, SlotSum
from anon.sharing.statements import (
    AcceptedList,
    Countersignature,
    ListSignature,
    NoisyShare,
    arrangement_digest,
    encode_countersignatures,
)
from anon.study.given import NONE_GIVEN
from anon.study.manifest import Manifest
from anon.wire.packets import TAG_BYTES, Occasion
from tests.support.protocols import parse_proposal
from tests.support.studies import categorical, head_of, label_of, numeric, study

KEYS = StudyKeys(bytes(32), bytes(PUBLIC_KEY_SIZE), bytes(96), bytes(32))
NAMES = ("clinic", "students")
TABLES = 'kind = "tables-sum"\nepsilon = 1.0'
MARGINALS = 'kind = "marginals"\nepsilon = 1.0\ntree_from = 0'
MOMENTS = 'kind = "moments"\nepsilon = 1.0'
SLEEP = 'kind = "moments"\nepsilon = 1.0\ntarget = "sleep"\ntarget_weight = 2'
MANY = 'records = "many"\nmost_records = {most}\nunit = "{unit}"\n'
RULE = 'kind = "rule"\nepsilon = 1.0'
GRADIENT = 'kind = "gradient"\nepsilon = 1.0\nrounds = 3'


@cache
def signing_key(number: int) -> SigningKey:
    return SigningKey(bytes([number + 1]) * 32)


@cache
def opener(number: int) -> Opener:
    return Opener(bytes([number + 1]) * 32)


def entry(number: int, name: str) -> TellerEntry:
    key = bytes(signing_key(number).verify_key)
    return TellerEntry(name, f"127.0.0.1:900{number}", key, opener(number).public_key, bytes([number]) * 32)


def tellers(names: Sequence[str] = NAMES, entries: bool = True) -> str:
    """The `[[tellers]]` of a study file."""
    lines = []
    for number, name in enumerate(names):
        given = f'entry = "{entry(number, name).to_bytes().hex()}"\n' if entries else ""
        lines.append(f'[[tellers]]\nname = "{name}"\naddress = "127.0.0.1:900{number}"\n{given}')
    return "".join(lines)


def many(most: int = 20, unit: str = "record") -> str:
    """Keys of a study file in which members have many records."""
    return MANY.format(most=most, unit=unit)


def sum_study(design: str = TABLES, said: str | None = None, minimum: int = 4, keys: str = "") -> str:
    """A study file of exact sums; tables and the rule ask a text, too. `keys`: `many()`, for many records."""
    asked = (
        [None, None, None] if not keys else [f"SELECT day, {name} FROM person" for name in ("age", "sleep", "tired")]
    )
    features = [
        numeric("age", (0, 100), "cuts = [30, 60]", query=asked[0]),
        numeric("sleep", (0, 12), "cuts = [6]", query=asked[1]),
    ]
    if "rule" in design:
        features = [
            numeric("age", (0, 100), "cuts = [30, 60]\nexpects = 1"),
            numeric("sleep", (0, 12), "cuts = [6]\nexpects = -1"),
        ]
    if any(kind in design for kind in ("tables-sum", "marginals", "rule")):
        features.append(categorical("cups", ["none", "some", "many"]))
    label = label_of("tired", 1, 0, query=asked[2])
    columns = ["age", "sleep", "cups", "tired", *(["day"] if keys else [])]
    head = head_of("Sleep", "To test sums.", columns, label, features)
    lengths = {"enrol": "1h", "settle": "10m", "collect": "1h"}
    text = study(head, design, lengths, f"minimum = {minimum}\nmaximum = 1000")
    return text.replace("version = 1", f'version = 1\nprotocol = "sum"\n{keys}') + (tellers() if said is None else said)


def manifest_of(
    design: str = TABLES, said: str | None = None, keys: str = "", given: Mapping[str, bytes] = NONE_GIVEN
) -> Manifest:
    """The manifest of `sum_study`. `given`: public documents by name."""
    named = "".join(f'[[given]]\nname = "{name}"\ndescription = "Rows."\nfile = "rows.csv"\n' for name in given)
    return resolve(parse_proposal(sum_study(design, said, keys=keys) + named), KEYS, 1_800_000_000, given=given)


def countersigned(study: Manifest) -> bytes:
    """The document in which the tellers of `sum_study` say that they serve the study."""
    arrangement = arrangement_of(study)
    digest = arrangement_digest(arrangement)
    said = [
        Countersignature(study.study_id, at, digest).sign(signing_key(at)) for at in range(len(arrangement.tellers))
    ]
    return encode_countersignatures(study.study_id, said)


def document(study: Manifest, number: int, values: Sequence[int], members: int) -> bytes:
    """The document of a round in which so many were summed: the first teller's share is the sum, the other's is 0."""
    arrangement, asked = arrangement_of(study), sum_asked(study, number)
    field = arrangement.prio3(asked).circuit.field
    occasion = Occasion(study.study_id, number, asked.slot)
    tags = tuple(place.to_bytes(TAG_BYTES, "big") for place in range(members))
    accepted = AcceptedList(occasion, tags)
    shares = [field.encode([value % field.modulus for value in values]), field.encode([0] * len(values))]
    signed = [ListSignature(occasion, one, accepted.digest()).sign(signing_key(one)) for one in range(len(shares))]
    noisy = [
        NoisyShare(occasion, one, accepted.digest(), share).sign(signing_key(one)) for one, share in enumerate(shares)
    ]
    slot = SlotSum(asked.slot, accepted.to_bytes(), tuple(signed), tuple(noisy))
    return RoundSums(study.study_id, number, (slot,)).to_bytes()
