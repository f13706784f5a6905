"""A generator of aggregators that lie and hold every key: their own, their issuer's, and those of their tellers.

`KINDS` is a table; `told` adds a kind to it, here or in another module. Each lie is drawn from a seed, signed anew
under roots that fit, with model and report that follow from it wherever the liar can make them follow. `Sight` is what
an audit owes each kind. The kinds of `Sight.NONE` are a closed list, and each says its bound.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from random import Random
from typing import Any

from attrs import evolve, frozen

from aggregator.audit import AuditResult, Verdict
from anon.crypto.labels import PACKET_DIGEST
from anon.errors import Malformed
from anon.protocols.contract import Place
from anon.protocols.sum.standing import arrangement_of
from anon.sharing.quorum import quorums
from anon.sharing.round_document import RoundSums, UnsummedRound, Why, read_round_sums
from anon.sharing.statements import AcceptedList, ListSignature, disagreement_of
from anon.study.manifest import Manifest
from anon.transparency.bucketed import hashed_body
from anon.transparency.buckets import BucketDocument, bits_of, document_over, parse_bucket_document, split
from anon.transparency.merkle import leaf_hash, root_of
from anon.transparency.transcript import digest_list, transcript_body
from anon.wire.cbor import decode, encode, sha256
from anon.wire.messages import encode_abandoned, encode_roster, encode_seed
from anon.wire.packets import Occasion
from tests.support.documents import roster_body
from tests.support.forged_studies import Forge, copied, drawn_by, entry_of
from tests.support.sums import GRADIENT, MOMENTS, TABLES, signing_key, sum_study
from tests.support.world import FakePeer, study_text

HISTOGRAMS = ("cuts", "quantile", "bits", "median")
SUMS = ("tables", "moments", "gradient")
TEXTS = {design: study_text(design) for design in HISTOGRAMS} | {
    "tables": sum_study(TABLES),
    "moments": sum_study(MOMENTS),
    "gradient": sum_study(GRADIENT),
}
WHOLE, BUCKETED = 6, 12
"""Members; from 8 on documents have several buckets (`few_in_buckets`)."""


class Sight(Enum):
    """The verdict on a lie. `NAMED`: something was not checked, or so many packets were left out of a sum."""

    FOUND = "found"
    NAMED = "named"
    NONE = "not seen"


def sight_of(result: AuditResult) -> Sight:
    """The verdict of this audit on a lie."""
    if result.verdict is Verdict.ALL_CHECKED:
        return Sight.NAMED if any(result.not_summed.values()) else Sight.NONE
    return Sight.FOUND if result.verdict is Verdict.FINDINGS else Sight.NAMED


Tell = Callable[[Random], Forge]


@frozen
class Kind:
    """A kind of lie. `bound`: how far one can go that is not seen, or not found."""

    tell: Tell
    sight: Sight
    bound: str = ""


KINDS: dict[str, Kind] = {}


def told(name: str, sight: Sight = Sight.FOUND, bound: str = "") -> Callable[[Tell], Tell]:
    """Adds a kind of lie."""

    def add(tell: Tell) -> Tell:
        assert name not in KINDS and bool(bound) is (sight is not Sight.FOUND)
        KINDS[name] = Kind(tell, sight, bound)
        return tell

    return add


# Studies to lie about


@cache
def _finished(design: str, members: int) -> Forge:
    return begun(design, members, seed=members).finish()


def begun(design: str, members: int, seed: int, silent: int = 0) -> Forge:
    """A study whose members all sent, but for so many."""
    forge = Forge.begin(TEXTS[design], seed)
    forge.enrol(members)
    forge.close()
    forge.send(forge.members[silent:])
    return forge


def finished(rng: Random, *designs: str, sizes: Sequence[int] = (WHOLE, BUCKETED)) -> Forge:
    """An honest study that ended, of one of these designs and sizes."""
    made = copied(_finished(rng.choice(designs or (*HISTOGRAMS, *SUMS)), rng.choice(sizes)))
    made.rng = rng
    return made


def fresh(rng: Random, *designs: str, sizes: Sequence[int] = (WHOLE, BUCKETED), silent: int = 0) -> Forge:
    """An honest study whose packets are there, and nothing after them."""
    return begun(rng.choice(designs or HISTOGRAMS), rng.choice(sizes), rng.getrandbits(32), silent)


def fullest(forge: Forge, kind: str = "transcript") -> Place:
    """The longest document of a kind."""
    return max(
        (place for place in forge.bodies if place[0] == kind), key=lambda place: sum(map(len, parts(forge, place)))
    )


def parts(forge: Forge, place: Place) -> tuple[bytes, ...]:
    """The body, or the contents of its buckets."""
    return forge.contents.get(place, (forge.bodies[place],))


def edit(forge: Forge, place: Place, change: Callable[[list[Any]], list[Any]], count: int | None = None) -> Forge:
    """Change the entries of a document, or of its fullest bucket; the signed root fits, and `count` if it is given."""
    contents = list(parts(forge, place))
    at = max(range(len(contents)), key=lambda one: len(contents[one]))
    *heading, entries = decode(contents[at])
    contents[at] = encode([*heading, change(entries)])
    return rooted(forge, place, contents, count)


def rooted(forge: Forge, place: Place, contents: Sequence[bytes], count: int | None = None) -> Forge:
    """These buckets under a root that fits. A document of one bucket says as many entries as there are, or `count`."""
    known = bucketed(forge, place)
    listed = len(decode(contents[0])[-1])
    said = listed if not known.bits and not bits_of(listed) else known.count
    bodies = [hashed(forge, place, content) for content in contents]
    made = document_over(forge.study, *place, said if count is None else count, [*map(leaf_hash, bodies)], bodies[0])
    forge.bodies[place], forge.contents[place] = made.to_bytes(), tuple(contents)
    return forge


def hashed(forge: Forge, place: Place, content: bytes) -> bytes:
    """The body of a bucket, also of one that says it is of another slot."""
    try:
        return hashed_body(forge.study, *place, content)
    except Malformed:
        return digest_list(forge.study, place[1], [sha256(PACKET_DIGEST, packet) for packet in decode(content)[-1]])


def bucketed(forge: Forge, place: Place) -> BucketDocument:
    """The signed document."""
    return parse_bucket_document(forge.bodies[place], forge.study, *place)


def reordered(forge: Forge, place: Place, before: Place) -> Forge:
    """A document published earlier than it should be."""
    body = forge.bodies.pop(place)
    items = [*forge.bodies.items()]
    at = [one for one, _ in items].index(before)
    forge.bodies = dict([*items[:at], (place, body), *items[at:]])
    return forge


def without(forge: Forge, *kinds: str) -> Forge:
    """The same study without these kinds of documents."""
    forge.bodies = {place: body for place, body in forge.bodies.items() if place[0] not in kinds}
    return forge


# Ghosts


@told("ghosts beside the roster")
def _(rng: Random) -> Forge:
    forge = fresh(rng)
    forge.send(forge.ghosts(rng.randint(1, 9)))
    return forge.finish()


@told("ghosts in one slot of several")
def _(rng: Random) -> Forge:
    forge = fresh(rng, "median")
    forge.send(forge.ghosts(rng.randint(1, 4)), [rng.randrange(len(forge.manifest.slots))])
    return forge.finish()


@told("ghosts that all drew one survey")
def _(rng: Random) -> Forge:
    forge, wanted = fresh(rng, "quantile", "bits"), None
    chosen: list[FakePeer] = []
    while len(chosen) < 3:
        (ghost,) = forge.ghosts(1)
        wanted = ghost.drawn(0) if wanted is None else wanted
        chosen += [ghost] * (ghost.drawn(0) == wanted)
    forge.send(chosen)
    return forge.finish()


@told("ghosts in a transcript that is signed for as many as there are members")
def _(rng: Random) -> Forge:
    forge = fresh(rng, sizes=[BUCKETED])
    forge.send(forge.ghosts(rng.randint(1, 3)))
    forge.transcribe()
    for place in [one for one in forge.bodies if one[0] == "transcript"]:
        forge = rooted(forge, place, forge.contents[place], BUCKETED)
    return forge.conclude()


@told("more vectors than members in a sum")
def _(rng: Random) -> Forge:
    forge = fresh(rng, *SUMS)
    forge.send(forge.ghosts(rng.randint(1, 9)))
    return forge.finish()


@told("more vectors than members in one round's sum")
def _(rng: Random) -> Forge:
    forge = fresh(rng, "gradient")
    forge.send(forge.ghosts(rng.randint(1, 4)), [rng.randrange(len(forge.manifest.slots))])
    return forge.finish()


@told("a sum over tags that are in no transcript")
def _(rng: Random) -> Forge:
    forge = fresh(rng, *SUMS)
    slots = range(len(forge.manifest.slots))
    own = {slot: [one.token[:48] for one in forge.packets if one.slot == slot] for slot in slots}
    extra = [rng.randbytes(48) for _ in range(rng.randint(1, 5))]
    forge.lists = {slot: tuple(sorted([*own[slot][: rng.randint(3, 6)], *extra])) for slot in slots}
    return forge.finish()


@told("ghosts in place of the silent", Sight.NONE, "no more in a slot than members who sent nothing in it")
def _(rng: Random) -> Forge:
    silent = rng.randint(1, 3)
    forge = fresh(rng, *HISTOGRAMS, *SUMS, silent=silent)
    forge.send(forge.ghosts(silent))
    return forge.finish()


@told("packets under another roster's credentials")
def _(rng: Random) -> Forge:
    forge = fresh(rng, silent=2)
    (stranger,) = forge.enrol(1)
    other = roster_body(forge.study, [entry_of(stranger)])
    forge.members.remove(stranger)
    forge.credential_of(stranger, other)
    forge.send([stranger])
    return forge.finish()


# Rosters


@told("invented members", Sight.NONE, "as many as the manifest's maximum allows; each stands in the roster")
def _(rng: Random) -> Forge:
    forge = Forge.begin(TEXTS[rng.choice([*HISTOGRAMS, *SUMS])], rng.getrandbits(32))
    forge.enrol(rng.choice([1, 2]))
    forge.enrol(rng.choice([WHOLE, BUCKETED]))
    forge.close()
    forge.send(forge.members)
    return forge.finish()


@told("a member left out of the roster", Sight.NONE, "the member itself sees it for certain, and sends nothing")
def _(rng: Random) -> Forge:
    forge = Forge.begin(TEXTS[rng.choice([*HISTOGRAMS, *SUMS])], rng.getrandbits(32))
    left_out = forge.enrol(1 + rng.choice([WHOLE, BUCKETED]))[0]
    forge.members.remove(left_out)
    forge.close()
    forge.send(forge.members)
    return forge.finish()


@told("a roster below the minimum")
def _(rng: Random) -> Forge:
    forge = Forge.begin(study_text(rng.choice(HISTOGRAMS), minimum=7), rng.getrandbits(32))
    forge.enrol(rng.randint(3, 6))
    forge.close()
    forge.send(forge.members)
    return forge.finish()


@told("a roster above the maximum")
def _(rng: Random) -> Forge:
    forge = Forge.begin(study_text(rng.choice(HISTOGRAMS), maximum=5), rng.getrandbits(32))
    forge.enrol(rng.randint(6, 12))
    forge.close()
    forge.send(forge.members)
    return forge.finish()


@told("an entry twice")
def _(rng: Random) -> Forge:
    forge = edit(finished(rng), ("roster", 0), lambda entries: [entries[0], *entries])
    return edit(forge, ("credentials", 0), lambda issued: [issued[0], *issued])


@told("a roster out of order")
def _(rng: Random) -> Forge:
    return edit(finished(rng, sizes=[WHOLE]), ("roster", 0), lambda entries: entries[::-1])


@told("credentials of an earlier roster")
def _(rng: Random) -> Forge:
    forge = Forge.begin(TEXTS[rng.choice(HISTOGRAMS)], rng.getrandbits(32))
    forge.enrol(WHOLE)
    forge.close()
    earlier = forge.bodies["roster", 0]
    forge.enrol(1)
    forge.close()
    forge.publish_credentials([forge.credential_of(one, earlier) for one in forge.members])
    for one in forge.members:
        forge.credential_of(one)
    forge.send(forge.members)
    return forge.finish()


@told("a credential that its holder cannot use")
def _(rng: Random) -> Forge:
    def spoil(issued: list[bytes]) -> list[bytes]:
        at = rng.randrange(len(issued))
        return [*issued[:at], issued[at][:-1] + bytes([issued[at][-1] ^ 1]), *issued[at + 1 :]]

    return edit(finished(rng), ("credentials", 0), spoil)


@told("credentials of another number than members")
def _(rng: Random) -> Forge:
    return edit(
        finished(rng), ("credentials", 0), lambda issued: issued[1:] if rng.random() < 0.5 else [*issued, issued[0]]
    )


@told("a roster of one bucket where there should be several")
def _(rng: Random) -> Forge:
    return misshapen(rng, rng.randint(8, 14), bits=0)


@told("a roster in several buckets of so few that there should be one")
def _(rng: Random) -> Forge:
    return misshapen(rng, rng.randint(4, 7), bits=2)


def misshapen(rng: Random, members: int, bits: int) -> Forge:
    """A study whose roster has other buckets than follow from its size."""
    forge = Forge.begin(TEXTS[rng.choice(HISTOGRAMS)], rng.getrandbits(32))
    forge.enrol(members)
    forge.close()
    entries = [entry_of(one) for one in forge.members]
    contents = [encode_roster(forge.study, part) for part in split(entries, lambda entry: entry.key, bits)]
    last = root_of([*map(leaf_hash, contents)]) if bits else contents[0]
    forge.bodies["roster", 0] = encode([1, forge.study, "roster", 0, members, bits, last])
    forge.contents["roster", 0] = tuple(contents)
    forge.publish_credentials([forge.credential_of(one) for one in forge.members])
    forge.send(forge.members)
    return forge.finish()


@told("a size of the roster that is a lie")
def _(rng: Random) -> Forge:
    forge = Forge.begin(TEXTS[rng.choice(HISTOGRAMS)], rng.getrandbits(32))
    forge.enrol(BUCKETED)
    forge.close()
    said = rng.choice([8, 9, 10, 11, 13, 14, 15])
    forge = rooted(forge, ("roster", 0), forge.contents["roster", 0], said)
    issued = [forge.credential_of(one) for one in forge.members]
    forge.publish_credentials(issued)
    forge = rooted(forge, ("credentials", 0), forge.contents["credentials", 0], said)
    forge.enrolled = said
    forge.send(forge.members)
    return forge.finish()


@told("a size whose buckets are not there")
def _(rng: Random) -> Forge:
    forge = finished(rng, *HISTOGRAMS, sizes=[BUCKETED])
    said = rng.choice([*range(20, 1000, 7), 2**20, 2**32 - 1])
    for place in (("roster", 0), ("credentials", 0)):
        forge.bodies[place] = evolve(bucketed(forge, place), count=said).to_bytes()
    return forge


@told("an entry in another bucket than its own")
def _(rng: Random) -> Forge:
    forge = finished(rng, *HISTOGRAMS, sizes=[BUCKETED])
    contents = [decode(one) for one in forge.contents["roster", 0]]
    source = max(range(len(contents)), key=lambda one: len(contents[one][2]))
    target = (source + 1) % len(contents)
    contents[target][2] = sorted([*contents[target][2], contents[source][2].pop()])
    return rooted(forge, ("roster", 0), [encode(one) for one in contents])


# Seeds


@told("a seed that opens nothing")
def _(rng: Random) -> Forge:
    forge = finished(rng)
    forge.bodies["seed", 0] = encode_seed(forge.study, rng.randbytes(32))
    return forge


@told("a score seed that was chosen afterwards")
def _(rng: Random) -> Forge:
    forge = fresh(rng)
    forge.transcribe()
    forge.score_value, honest = rng.randbytes(32), forge.score_value
    forge.conclude()
    forge.score_value = honest
    return forge


@told("a seed revealed before the roster was signed")
def _(rng: Random) -> Forge:
    return reordered(finished(rng), ("seed", 0), ("roster", 0))


@told("the score seed revealed before anybody answered")
def _(rng: Random) -> Forge:
    forge = finished(rng, *HISTOGRAMS)
    return reordered(forge, ("seed", 1), rng.choice([("credentials", 0), ("seed", 0)]))


@told("a roster chosen for its draws", Sight.NONE, "k tries choose k answers of draws, and no noise: a try is a member")
def _(rng: Random) -> Forge:
    forge = Forge.begin(TEXTS["quantile"], rng.getrandbits(32))
    (victim,) = forge.enrol(1)
    forge.enrol(WHOLE - 2)
    honest = list(forge.members)
    while True:
        forge.members = list(honest)
        forge.enrol(1)
        forge.close()
        if drawn_by(forge.manifest, forge.seed, victim_tag(forge, victim), 0) == 1:
            break
    forge.send(forge.members)
    return forge.finish()


def victim_tag(forge: Forge, victim: FakePeer) -> bytes:
    """A member whose secret the liar knows has no tag that it does not know."""
    return victim.packet(0).token[:48]


# Spellings


@told("a packet in another spelling")
def _(rng: Random) -> Forge:
    def respelled(packets: list[bytes]) -> list[bytes]:
        at = rng.randrange(len(packets))
        one = packets[at]
        return [*packets[:at], one[:1] + b"\x18" + one[1:], *packets[at + 1 :]]

    forge = finished(rng)
    return edit(forge, fullest(forge), respelled)


@told("bytes after the end of a document")
def _(rng: Random) -> Forge:
    forge = finished(rng)
    place = rng.choice([one for one in forge.bodies if one[0] not in {"manifest", "model", "report"}])
    forge.bodies[place] += b"\0" * rng.randint(1, 3)
    return forge


@told("a model with a key twice")
def _(rng: Random) -> Forge:
    forge = finished(rng)
    forge.bodies["model", 0] = b'{"study": "another",' + forge.bodies["model", 0].lstrip()[1:]
    return forge


@told("last digits of a model", Sight.NONE, "a millionth of each number")
def _(rng: Random) -> Forge:
    forge = finished(rng)
    model = nudged(json.loads(forge.bodies["model", 0]), 1 + rng.uniform(-1, 1) * 1e-7)
    spelled = json.dumps(model, sort_keys=True, separators=(",", ":")) + "\n"
    forge.bodies["model", 0] = spelled.encode()
    return forge.report()


def nudged(value: Any, times: float) -> Any:
    """A value with every number in it multiplied."""
    if isinstance(value, dict):
        return {key: nudged(one, times) for key, one in value.items()}
    if isinstance(value, list):
        return [nudged(one, times) for one in value]
    return value * times if isinstance(value, float) else value


@told("a document that the study does not have")
def _(rng: Random) -> Forge:
    forge = finished(rng)
    forge.bodies[rng.choice([("transcript", 99), ("model", 1), ("notes", 0), ("roster", 1), ("sums", 9)])] = b"\x80"
    return forge


@told("a packet twice")
def _(rng: Random) -> Forge:
    forge = finished(rng)
    return edit(forge, fullest(forge), lambda packets: [packets[0], *packets])


@told("packets out of order")
def _(rng: Random) -> Forge:
    forge = finished(rng)
    return edit(forge, fullest(forge), lambda packets: packets[::-1] if len(packets) > 1 else packets * 2)


@told("an answer to a survey that its tag did not draw")
def _(rng: Random) -> Forge:
    forge = fresh(rng, "quantile", "bits", silent=1)
    peer = forge.members[0]
    other = next(one for one in forge.manifest.surveys if one.survey != peer.drawn(0))
    forge.packets.append(peer.packet(0, survey=other.survey).published())
    return forge.finish()


@told("a list that names a tag twice")
def _(rng: Random) -> Forge:
    forge = fresh(rng, *SUMS)
    slots = range(len(forge.manifest.slots))
    tags = {slot: sorted(one.token[:48] for one in forge.packets if one.slot == slot) for slot in slots}
    forge.lists = {slot: tuple(own) for slot, own in tags.items()}
    forge.finish()
    number = rng.choice(slots)
    return resummed(forge, number, (tags[number][0], *tags[number]))


def resummed(forge: Forge, number: int, tags: Sequence[bytes]) -> Forge:
    """A round over another list, signed by all its tellers; the model is made again where it can be."""
    (quorum,) = quorums(forge.study, arrangement_of(forge.manifest))
    slot = read_round_sums(forge.bodies["sums", number], forge.study, number).slots[0].slot
    listed = AcceptedList(Occasion(forge.study, number, slot), tuple(tags))
    forge.bodies["sums", number] = RoundSums(forge.study, number, (forge.slot_sum(quorum, listed),)).to_bytes()
    return forge


# Counts


@told("counts of a round that its packets do not give")
def _(rng: Random) -> Forge:
    forge = finished(rng, "quantile", "bits", "median")
    place = rng.choice([one for one in forge.bodies if one[0] in {"edges", "thresholds"}])
    *heading, counts = decode(forge.bodies[place])
    name = rng.choice(sorted(counts))
    forge.bodies[place] = encode([*heading, counts | {name: [counts[name][0] + rng.randint(1, 50), counts[name][1]]}])
    return forge


@told("a model that the packets do not give")
def _(rng: Random) -> Forge:
    forge = finished(rng)
    model = json.loads(forge.bodies["model", 0])
    forge.bodies["model", 0] = json.dumps(nudged(model, 1 + rng.uniform(0.001, 0.5))).encode()
    return forge if json.loads(forge.bodies["model", 0]) != model else without(forge, "seed")


@told("a transcript signed for another number of packets")
def _(rng: Random) -> Forge:
    forge = finished(rng, *HISTOGRAMS, sizes=[BUCKETED])
    place = fullest(forge)
    return rooted(forge, place, forge.contents[place], rng.choice([8, 9, 10, 11, 13]))


@told("packets left out of a model that has all")
def _(rng: Random) -> Forge:
    forge = fresh(rng)
    forge.finish()
    later = {place: forge.bodies[place] for place in (("model", 0), ("report", 0))}
    rng.shuffle(forge.packets)
    del forge.packets[: rng.randint(2, 4)]
    forge.transcribe()
    forge.bodies |= later
    return forge


@told("packets left out of everything", Sight.NONE, "each peer looks for its own, and finds none of those left out")
def _(rng: Random) -> Forge:
    return fresh(rng, *HISTOGRAMS, *SUMS, silent=rng.randint(1, 3)).finish()


@told("a sum of no shares, by tellers that are all its own", Sight.NONE, "any values; over no more than the members")
def _(rng: Random) -> Forge:
    forge = fresh(rng, *SUMS)
    return forge.finish()  # the forge's tellers sum nothing: they sign values that are drawn


@told("packets left out of a sum", Sight.NAMED, "an audit says how many")
def _(rng: Random) -> Forge:
    forge = fresh(rng, *SUMS)
    for slot in range(len(forge.manifest.slots)):
        tags = sorted(one.token[:48] for one in forge.packets if one.slot == slot)
        forge.lists[slot] = tuple(tags[rng.randint(1, 2) :])
    return forge.finish()


@told("an abandoned study in which enough enrolled")
def _(rng: Random) -> Forge:
    forge = Forge.begin(study_text(rng.choice(HISTOGRAMS), minimum=5), rng.getrandbits(32))
    forge.bodies["abandoned", 0] = encode_abandoned(forge.study, rng.randint(5, 1000))
    return forge


@told("an abandoned study that says nothing")
def _(rng: Random) -> Forge:
    forge = Forge.begin(TEXTS[rng.choice(HISTOGRAMS)], rng.getrandbits(32))
    forge.bodies["abandoned", 0] = rng.choice([b"", b"\x80", encode([1, bytes(32), 1]), encode([1, forge.study, -1])])
    return forge


def ended(rng: Random, number: int, why: Why, designs: Sequence[str] = SUMS) -> Forge:
    """A study of sums that ends without the sum of a round."""
    forge = without(finished(rng, *designs), "transcript", "model", "report")
    forge.bodies.pop(("seed", 1))
    forge.bodies = {place: body for place, body in forge.bodies.items() if place[0] != "sums" or place[1] < number}
    evidence = disagreement(forge.manifest, forge.study, number) if why is Why.DISAGREED else b""
    return said_to_end(forge, number, why, evidence)


def said_to_end(forge: Forge, number: int, why: Why, evidence: bytes = b"") -> Forge:
    """The same with another end."""
    forge.bodies["unsummed", 0] = UnsummedRound(forge.study, number, why, evidence).to_bytes()
    return forge


def disagreement(manifest: Manifest, study: bytes, number: int) -> bytes:
    """Two lists that both tellers signed, of a study in which they did."""
    signed = [ListSignature(Occasion(study, number, 0), at, bytes([at]) * 32).sign(signing_key(at)) for at in range(2)]
    return disagreement_of(signed[0], signed[1], arrangement_of(manifest)).to_bytes()


@told("an end without a sum on another study's evidence")
def _(rng: Random) -> Forge:
    forge = ended(rng, 0, Why.DISAGREED)
    return said_to_end(forge, 0, Why.DISAGREED, disagreement(forge.manifest, rng.randbytes(32), 0))


@told("an end without a sum on another round's evidence")
def _(rng: Random) -> Forge:
    forge, about = ended(rng, 1, Why.DISAGREED, ["gradient"]), rng.choice([0, 2])
    return said_to_end(forge, 1, Why.DISAGREED, disagreement(forge.manifest, forge.study, about))


@told("an end in a round that the study does not have")
def _(rng: Random) -> Forge:
    return said_to_end(ended(rng, 0, Why.AWAY), rng.choice([3, 7, 65535]), Why.AWAY)


@told("an end without a sum that has the sum")
def _(rng: Random) -> Forge:
    forge = finished(rng, *SUMS)
    unsummed = UnsummedRound(forge.study, 0, rng.choice([Why.AWAY, Why.REFUSED, Why.TOO_FEW])).to_bytes()
    forge.insert({("unsummed", 0): unsummed}, ("transcript", 0))
    return forge if rng.random() < 0.5 else without(forge, "transcript", "model", "report")


@told("rounds in another order")
def _(rng: Random) -> Forge:
    return reordered(finished(rng, "gradient"), ("sums", rng.choice([1, 2])), ("sums", 0))


@told("more vectors than members, before any packet is shown")
def _(rng: Random) -> Forge:
    forge = fresh(rng, *SUMS)
    forge.send(forge.ghosts(rng.randint(1, 9)))
    return without(forge.finish(), "transcript", "model", "report")


@told("counts before any packet is shown", Sight.NAMED, "until the transcripts are there, which a model rests on")
def _(rng: Random) -> Forge:
    forge = finished(rng, "quantile", "bits", "median")
    forge = without(forge, "transcript", "model", "report")
    forge.bodies.pop(("seed", 1))
    place = rng.choice([one for one in forge.bodies if one[0] in {"edges", "thresholds"}])
    *heading, counts = decode(forge.bodies[place])
    forge.bodies[place] = encode([*heading, {name: [n + 5, cells] for name, (n, cells) in counts.items()}])
    return forge


@told("a study cheaper than it is")
def _(rng: Random) -> Forge:
    text = TEXTS[rng.choice(HISTOGRAMS)]
    forge = Forge.begin(text, rng.getrandbits(32), lambda one: evolve(one, epsilon=one.epsilon // rng.randint(2, 9)))
    forge.enrol(WHOLE)
    forge.close()
    forge.send(forge.members)
    return forge.finish()


@told("words of tellers who never gave them")
def _(rng: Random) -> Forge:
    forge = finished(rng, *SUMS)
    body = forge.bodies["tellers", 0]
    at = rng.randrange(len(body) - 60, len(body))
    forge.bodies["tellers", 0] = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
    return forge


# Reports

OTHER_WORDS = "the report is named as not checked"


@told("an invented report", Sight.NAMED, OTHER_WORDS)
def _(rng: Random) -> Forge:
    forge = finished(rng)
    forge.bodies["report", 0] = b"<p>Coffee cures tiredness in %d of 100.</p>" % rng.randint(1, 99)
    return forge


@told("another study's report", Sight.NAMED, OTHER_WORDS)
def _(rng: Random) -> Forge:
    forge, other = finished(rng, *HISTOGRAMS), finished(rng, *SUMS)
    forge.bodies["report", 0] = other.bodies["report", 0]
    return forge


@told("a report that counts others", Sight.NAMED, OTHER_WORDS)
def _(rng: Random) -> Forge:
    forge = finished(rng)
    page = forge.bodies["report", 0]
    forge.bodies["report", 0] = page.replace(
        b">%d<" % forge.enrolled, b">%d<" % (forge.enrolled * rng.randint(2, 99)), 1
    )
    return forge


@told("a report without a model")
def _(rng: Random) -> Forge:
    return without(finished(rng), "model")


@told("a report before its model")
def _(rng: Random) -> Forge:
    return reordered(finished(rng), ("report", 0), ("model", 0))


@told("counts of refusals", Sight.NONE, "one table of the report, which the audit calls the aggregator's word")
def _(rng: Random) -> Forge:
    forge = finished(rng, *HISTOGRAMS)
    row = b'<tr><th>refused: duplicate</th><td class="n">%d</td></tr>\n</table>' % rng.randint(1, 999)
    page = forge.bodies["report", 0].replace(b"</table>\n<p>If the", row + b"\n<p>If the", 1)
    forge.bodies["report", 0] = page
    assert row in forge.bodies["report", 0]
    return forge


# Documents that follow from nothing


@told("a model that rests on nothing published")
def _(rng: Random) -> Forge:
    return without(finished(rng), rng.choice(["roster", "credentials", "transcript"]))


@told("a transcript of another slot than its head's")
def _(rng: Random) -> Forge:
    forge = finished(rng, "quantile", "bits", "median", sizes=[WHOLE])
    place = fullest(forge)
    other = place[1] + (1 if place[1] == 0 else -1)
    return rooted(forge, place, [transcript_body(forge.study, other, decode(forge.contents[place][0])[3])])


@told("a transcript that is not there")
def _(rng: Random) -> Forge:
    forge = finished(rng, "median")
    forge.bodies.pop(rng.choice([place for place in forge.bodies if place[0] == "transcript"]))
    return forge
