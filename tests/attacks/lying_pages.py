"""Further lies of `lying_aggregators`: about studies whose members write, their pages, and the results of these.

Signatures, roots and transcripts fit each lie. All pages are written by honest members but for what a lie changes.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from anon.protocols.board import page_body
from anon.protocols.contract import Place
from anon.sharing.round_document import UnsummedRound, Why
from anon.transparency.bucketed import transcript_in_buckets
from anon.wire.cbor import decode, encode
from tests.attacks.lying_aggregators import TEXTS, WHOLE, told, without
from tests.attacks.lying_results import KINDS, moved, republished
from tests.support.forged_studies import Forge, copied
from tests.support.groups_study import groups_study
from tests.support.masks_study import AVERAGING, masks_study
from tests.support.oblivious_study import oblivious_study
from tests.support.sums import many
from tests.support.trees_study import trees_study

__all__ = ["KINDS"]

TREES, MASKS = ("trees", "trees of a target"), ("masks", "masks of weights", "masks, one away")
LINEAR = (*MASKS, "parties")
WRITTEN = (*TREES, *LINEAR, "groups")
_MASKED = masks_study(cohort=f"minimum = 4\nmaximum = {WHOLE}")
TEXTS |= {
    "trees": trees_study(more="depth = 2\nrows = 20"),
    "trees of a target": trees_study(more='depth = 3\nrows = 9\ntarget = "age"'),
    "masks": _MASKED,
    "masks, one away": _MASKED,
    "masks of weights": masks_study(AVERAGING, many(), f"minimum = 4\nmaximum = {WHOLE}"),
    "groups": groups_study(aggregations=1, group=3, minimum=4, maximum=WHOLE),
    "parties": oblivious_study(minimum=4).replace("maximum = 5", f"maximum = {WHOLE}"),
}
_SILENT = {"masks, one away": {2: 2}, "trees of a target": {1: 0}, "groups": {0: 0}}


@cache
def finished_board(design: str) -> Forge:
    """An honest study whose members wrote."""
    forge = Forge.begin(TEXTS[design], seed=WHOLE)
    forge.enrol(WHOLE)
    forge.close()
    forge.write(_SILENT.get(design))
    return forge.finish()


def written(rng: Random, *designs: str) -> Forge:
    """An honest study of one of these designs."""
    made = copied(finished_board(rng.choice(designs or WRITTEN)))
    made.rng = rng
    return made


def last_page(forge: Forge) -> Place:
    """The page of the last round."""
    return max(place for place in forge.bodies if place[0] == "page")


def page_without(forge: Forge, place: Place, count: int) -> Forge:
    """A page without so many packets, and the transcripts of its surveys without the same."""
    *_, packets = decode(forge.bodies[place])
    kept = sorted(forge.rng.sample(packets, len(packets) - count), key=packets.index)
    forge.bodies[place] = page_body(forge.study, place[1], kept)
    for slot in {decode(packet)[3] for packet in packets}:
        forge.place(transcript_in_buckets(forge.study, slot, [one for one in kept if decode(one)[3] == slot]))
    return forge


@told("a weight that pages do not give")
def _(rng: Random) -> Forge:
    return republished(written(rng, *LINEAR), lambda model: moved(rng, model["weights"]))


@told("an intercept that pages do not give")
def _(rng: Random) -> Forge:
    def change(model: dict[str, Any]) -> None:
        model["intercept"] += rng.choice([-1, 1]) * max(0.001, abs(model["intercept"]) * rng.uniform(0.001, 0.3))

    return republished(written(rng, *LINEAR), change)


@told("a weight that a group's sum does not give")
def _(rng: Random) -> Forge:
    return republished(written(rng, "groups"), lambda model: moved(rng, rng.choice(model["models"])["weights"]))


@told("a group that had other members")
def _(rng: Random) -> Forge:
    def change(model: dict[str, Any]) -> None:
        rng.choice(model["models"])["members"] += rng.choice([-1, 1])

    return republished(written(rng, "groups"), change)


@told("a class that trees do not give")
def _(rng: Random) -> Forge:
    def change(rows: dict[str, Any]) -> None:
        row = rng.choice(rows["rows"])
        row[-1] = next(one[-1] for one in [*rows["rows"], ["none"]] if one[-1] != row[-1])

    return republished(written(rng, *TREES), change, "rows")


@told("a row that no tree has")
def _(rng: Random) -> Forge:
    def change(rows: dict[str, Any]) -> None:
        at = rng.randrange(len(rows["rows"]))
        rows["rows"][at:at] = [rng.choice(rows["rows"])] * rng.randint(1, 3)

    return republished(written(rng, *TREES), change, "rows")


@told("rows in another order")
def _(rng: Random) -> Forge:
    return republished(written(rng, *TREES), lambda rows: rows["rows"].reverse(), "rows")


@told("a page without a packet that was accepted")
def _(rng: Random) -> Forge:
    forge = written(rng)
    place = rng.choice([one for one in forge.bodies if one[0] == "page"])
    *heading, packets = decode(forge.bodies[place])
    packets.pop(rng.randrange(len(packets)))
    forge.bodies[place] = encode([*heading, packets])
    return forge


@told("a page out of order")
def _(rng: Random) -> Forge:
    forge = written(rng)
    place = rng.choice([one for one in forge.bodies if one[0] == "page"])
    *heading, packets = decode(forge.bodies[place])
    forge.bodies[place] = encode([*heading, packets[::-1]])
    return forge


@told("another text on a page than a member wrote")
def _(rng: Random) -> Forge:
    forge = written(rng)
    place = rng.choice([one for one in forge.bodies if one[0] == "page"])
    *heading, packets = decode(forge.bodies[place])
    at = rng.randrange(len(packets))
    fields = decode(packets[at])
    text, letters = decode(fields[5])
    fields[5] = encode([bytes([text[0] ^ 1]) + text[1:], letters])
    packets[at] = encode(fields)
    forge.bodies[place] = encode([*heading, packets])
    for slot in {decode(packet)[3] for packet in packets}:
        forge.place(transcript_in_buckets(forge.study, slot, [one for one in packets if decode(one)[3] == slot]))
    return forge


@told("a study that went on though too few wrote")
def _(rng: Random) -> Forge:
    forge = written(rng, *MASKS, "parties")
    pages = [one for one in forge.bodies if one[0] == "page"]
    return page_without(forge, rng.choice(pages), WHOLE - rng.randint(1, 2))


@told("a study that ended though enough wrote")
def _(rng: Random) -> Forge:
    forge = written(rng)
    number = rng.choice([place[1] for place in forge.bodies if place[0] == "page"])
    places = [place for place in forge.bodies if place[0] not in ("page", "seat") or place[1] <= number]
    forge.bodies = {place: forge.bodies[place] for place in places}
    forge.bodies.pop(("seed", 1))
    forge = without(forge, "transcript", "model", "rows", "report")
    forge.bodies["unsummed", 0] = UnsummedRound(forge.study, number, Why.TOO_FEW, b"").to_bytes()
    return forge


@told("an end that is followed by a result")
def _(rng: Random) -> Forge:
    forge = written(rng)
    number = rng.choice([place[1] for place in forge.bodies if place[0] == "page"])
    unsummed = UnsummedRound(forge.study, number, Why.TOO_FEW, b"").to_bytes()
    forge.insert({("unsummed", 0): unsummed}, ("transcript", 0))
    return forge


@told("packets left out of pages, and a result of all")
def _(rng: Random) -> Forge:
    forge = written(rng, *TREES, "masks of weights")
    place = ("page", 0) if forge.manifest.protocol == "trees" else ("page", 2)
    return page_without(forge, place, 1)


@told("another sum of the seat")
def _(rng: Random) -> Forge:
    forge = written(rng, "parties")
    body = forge.bodies["seat", 6]
    at = rng.randrange(len(body) - 20, len(body))
    forge.bodies["seat", 6] = body[:at] + bytes([body[at] ^ (1 << rng.randrange(8))]) + body[at + 1 :]
    return forge


@told("a seat that says more than there is")
def _(rng: Random) -> Forge:
    forge = written(rng, "parties")
    forge.bodies["seat", rng.choice([3, 4])] += bytes(rng.randint(5000, 9000))
    return forge


@told("a document of a round that the study does not have")
def _(rng: Random) -> Forge:
    forge = written(rng)
    place = rng.choice([("page", 40), ("seat", 0), ("seat", 2), ("sums", 0), ("edges", 0)])
    forge.insert({place: b"\x80"}, ("transcript", 0))
    return forge


@told("pages in another order")
def _(rng: Random) -> Forge:
    forge = written(rng, *LINEAR, "groups")
    body = forge.bodies.pop(("page", 0))
    forge.insert({("page", 0): body}, rng.choice([("page", 2), last_page(forge)]))
    return forge
