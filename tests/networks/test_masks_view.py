"""The view of an aggregator where vectors leave under masks: no weights, votes or numbers of records are in it.

Each study is lived twice with the same random bytes, and with other records, and more or fewer of them. All that comes
to the aggregator is the same but for one vector a member. Without its data and noise each is a mask, which is uniform
and the same in both lives. So the view tells of the records what the published sum tells.

A home's letters rest on 32 secret bytes and a digest of its answers, by SHAKE-256 (`StudySecrets.fixed`). They are
uniform for any answers, but not the same for two. So here they rest on the secret bytes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from random import Random
from struct import pack, unpack
from typing import Any

import pytest
from attrs import define, evolve

from aggregator.app import AggregatorApp
from anon.noise import DiscreteGaussian
from anon.protocols import board
from anon.protocols.board import BoardPage, read_page
from anon.protocols.sum.masks.masking import CAME, KEYS, MODULUS, OPENING, SHARES, VECTOR, members, seen
from anon.protocols.sum.parties import GIVEN
from anon.protocols.sum.vector import vector_of
from peer.data.evaluate import evaluated
from peer.data.importing import import_rows
from peer.protocols.sum import masks
from peer.rules.study_secrets import StudySecrets
from tests.support.clock import Clock
from tests.support.masks_study import COLUMNS, Rows
from tests.support.packets import opened
from tests.support.protocols import PROTOCOLS
from tests.support.sum_subjects import Subject, masked_averaging, masked_transfer, other, party
from tests.support.views import found, held, kept, of_integers
from tests.support.world import World, published

pytestmark = pytest.mark.slow
MEMBERS, SECONDS = 6, 60.0
SUBJECTS = {"averaging": masked_averaging(), "transfer": masked_transfer()}
Seen = list[tuple[Any, ...]]


@define
class Life:
    """A whole study in memory, as it came to the aggregator. `hidden`: by the text that it hides in, a member's vector
    with its noise."""

    pages: dict[int, BoardPage]
    requests: list[Seen]
    """By member: to what each went, when, of how many bytes, and its answer."""
    enrolments: list[list[bytes]]
    there: dict[str, bytes]
    """All that the aggregator holds, and each packet as it opens it."""
    secrets: dict[str, bytes]
    """All that members keep, but for those without a record."""
    hidden: dict[bytes, Sequence[int]]

    def mask(self, tag: bytes) -> list[int]:
        """The rest of a member's text without its vector and noise."""
        text = self.pages[VECTOR].texts(VECTOR)[tag]
        entries = unpack(f">{len(text) // 8}Q", text)
        return [(entry - noisy) % MODULUS for entry, noisy in zip(entries, self.hidden[text], strict=True)]


async def lived(folder: Path, subject: Subject, rows: Sequence[Rows], monkeypatch: pytest.MonkeyPatch) -> Life:
    """The study with these records. All draws of both sides follow from names, so they are those of any other life."""
    hidden, write = dict[bytes, Sequence[int]](), masks.masked

    def noted(*given: Any) -> bytes:
        text = write(*given)
        hidden[text] = given[-1]
        return text

    clock, drawn = Clock(), Random("aggregator").randbytes
    with monkeypatch.context() as patch:
        patch.setattr(masks, "masked", noted)
        patch.setattr(board, "_HELD", {})  # a page that was checked in another life is checked again
        patch.setattr(StudySecrets, "fixed", lambda self, _: evolve(self, letters=self.letters or self.ground))
        async with AggregatorApp(folder / "aggregator", clock, drawn, processes=0, protocols=PROTOCOLS) as app:
            text, many = subject.text("", len(rows)), len(rows)
            world = await World.begin(app, clock, text, many, subject.given, PROTOCOLS, seed=1)
            try:
                await world.settle_in(len(rows))
                for number, own in enumerate(rows):
                    import_rows(world._home(number).data_path, "person", COLUMNS, own)
                await world.go_on()
                return await _life(world, hidden)
            finally:
                world.close()


async def _life(world: World, hidden: dict[bytes, Sequence[int]]) -> Life:
    study, bodies = world.live.manifest, await published(world.live)
    assert ("model", 0) in bodies
    pages = {part: read_page(study, part, body) for (kind, part), body in bodies.items() if kind == "page"}
    there = held(world.app.home.path) | {f"{place}": body for place, body in bodies.items()}
    for number, route in enumerate(world.routes):
        there |= {f"{number}: {one.at}": world.opened(one.body) for one in route.packets() if one.body is not None}
    return Life(
        pages,
        [[(one.what, one.at, len(one.body or b""), one.answer) for one in route.requests] for route in world.routes],
        [[_enrolment(world, one.body) for one in route.requests if one.what == "enrol"] for route in world.routes],
        there,
        _secrets(world, bodies.get(GIVEN, b"")),
        hidden,
    )


def _enrolment(world: World, body: bytes | None) -> bytes:
    assert body is not None
    return opened(world.live.manifest, world.live.packet_intake.rules.sealing_key, "enrol", body)


def _secrets(world: World, given: bytes) -> dict[str, bytes]:
    study, secrets = world.live.manifest, dict[str, bytes]()
    survey = study.survey(VECTOR)
    for number in range(len(world.peers)):
        record = evaluated(study, world._home(number).data_path, SECONDS).record
        if record.rows:
            secrets |= kept(f"{number}", study, survey, record, given)
            secrets |= of_integers(f"{number}'s vector", vector_of(study, survey, record, given=given))
    return secrets


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=[*SUBJECTS])
async def test_other_records_change_nothing_that_an_aggregator_sees_but_under_masks(
    subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the bits of all masks, half are 1: six deviations from it come once in 10^8, and draws repeat themselves."""
    one = await lived(tmp_path / "one", subject, [party(number) for number in range(MEMBERS)], monkeypatch)
    two = await lived(tmp_path / "two", subject, [other(number) for number in range(MEMBERS)], monkeypatch)
    assert one.requests == two.requests and one.enrolments == two.enrolments
    texts = [{turn: life.pages[turn].texts(turn) for turn in range(5)} for life in (one, two)]
    for turn in (KEYS, SHARES, OPENING):
        assert texts[0][turn] == texts[1][turn] and len(texts[0][turn]) == MEMBERS
    for life, text in zip((one, two), texts, strict=True):
        assert {*text[CAME].values()} == {seen(life.pages)}
    masked = {tag: one.mask(tag) for tag in texts[0][VECTOR]}
    assert masked == {tag: two.mask(tag) for tag in texts[1][VECTOR]}
    assert all(text != texts[1][VECTOR][tag] for tag, text in texts[0][VECTOR].items())
    entries = [entry for mask in masked.values() for entry in mask]
    bits = 64 * len(entries)
    assert len({*entries}) == len(entries)
    assert abs(sum(entry.bit_count() for entry in entries) - bits / 2) < 6 * sqrt(bits) / 2
    for life in (one, two):
        noisy = [of_integers(f"{number}, noisy", vector) for number, vector in enumerate(life.hidden.values())]
        assert [found(life.there, needles) for needles in (life.secrets, *noisy)] == [[]] * (1 + len(noisy))


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=[*SUBJECTS])
async def test_a_vector_without_its_mask_would_be_found(
    subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One member sends its exact vector bare. Its packet, the page and the database have it, and no other's."""
    write = masks.masked

    def planted(*given: Any) -> bytes:
        _study, pages, tag, _key, _own, values = given
        bare = tag == min(members(pages))
        return pack(f">{len(values)}Q", *(one % MODULUS for one in values)) if bare else write(*given)

    monkeypatch.setattr(masks, "masked", planted)
    monkeypatch.setattr(DiscreteGaussian, "vector", lambda _self, length, _random: [0] * length)
    life = await lived(tmp_path, subject, [party(number) for number in range(MEMBERS)], monkeypatch)
    there = found(life.there, life.secrets)
    (name,) = {name for name, _ in there}
    assert name.endswith("'s vector, big-endian")
    assert {place.partition(":")[0] for _, place in there} > {"('page', 2)", "aggregator.sqlite"}
    assert [tag for tag in life.pages[VECTOR].texts(VECTOR) if not any(life.mask(tag))] == [min(members(life.pages))]
