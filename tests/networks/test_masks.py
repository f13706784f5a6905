"""Exact sums under masks: whole studies in memory, with members that drop out at every round."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from aggregator.audit import audit_documents
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.board import BoardPage, read_page
from anon.protocols.contract import Record
from anon.protocols.sum.masks.layout import masking_of
from anon.protocols.sum.masks.masking import CAME, KEYS, OPENING, SHARES, VECTOR, opened
from anon.protocols.sum.vector import vector_of
from anon.study.manifest import Manifest
from anon.transparency.documents import encode_chain
from examples.testing import all_contents
from peer.protocols.contract import Correspondence
from peer.protocols.sum.masks import MasksPart
from tests.support.letters_world import after
from tests.support.masks_study import masks_study, members
from tests.support.world import World, published

ROWS = [(0, 30, 8, 1), (0, 70, 5, 0), (0, 10, 12, 1), (0, 90, 7, 0), (0, 50, 6, 1), (0, 20, 9, 0)]


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise, so that a sum is right to the unit."""
    monkeypatch.setattr(DiscreteGaussian, "vector", lambda _self, length, _random: [0] * length)


Finished = tuple[Manifest, dict[int, BoardPage]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A study of four, noise and all, to its end: the manifest and the pages."""

    async def played() -> Finished:
        async with members(tmp_path_factory.mktemp("masks"), masks_study(), [[row] for row in ROWS[:4]]) as world:
            await world.go_on()
            return world.live.manifest, await pages_of(world)

    return asyncio.run(played())


async def pages_of(world: World) -> dict[int, BoardPage]:
    study, bodies = world.live.manifest, await published(world.live)
    return {part: read_page(study, part, body) for (kind, part), body in bodies.items() if kind == "page"}


def summed(study: Manifest, pages: dict[int, BoardPage]) -> list[int] | None:
    return opened(study.study_id, pages, masking_of(study.part).least, 10)


async def opened_sum(world: World) -> list[int] | None:
    return summed(world.live.manifest, await pages_of(world))


@pytest.mark.slow
async def test_a_sum_is_right_to_the_unit_and_audited(tmp_path: Path, quiet: None) -> None:
    async with members(tmp_path, masks_study(), [[row] for row in ROWS[:4]]) as world:
        await world.go_on()
        found = await opened_sum(world)
        # The constant's square, and its products with age, sleep and the label.
        assert found is not None and found[:1] == [16 * 16 * 4]
        bodies = await published(world.live)
        assert ("model", 0) in bodies
        report = bodies["report", 0].decode()
        assert "teller" not in report and "no single packet was opened" not in report
        result = audit_documents(
            encode_chain(world.live.chain), dict(enumerate(bodies.values())), contents=await all_contents(world.live)
        )
        assert result.ok, result.lines()



@pytest.mark.slow
@pytest.mark.parametrize("turn", [0, 1, 2])
async def test_one_drops_out_and_the_sum_is_that_of_those_who_came(tmp_path: Path, quiet: None, turn: int) -> None:
    async with members(tmp_path, masks_study(), [[row] for row in ROWS]) as world:
        await world.go_on(away={5: after(world, turn)})
        assert world.live.state == "published"
        found = await opened_sum(world)
        assert found is not None and found[0] == 16 * 16 * (6 if turn == 2 else 5)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(4))
async def test_where_too_many_drop_out_nothing_opens(tmp_path: Path, turn: int) -> None:
    """The study ends in a sentence, and whoever paid for a vector paid; nothing is published but the pages."""
    async with members(tmp_path, masks_study(), [[row] for row in ROWS]) as world:
        await world.go_on(away=dict.fromkeys(range(2, 6), after(world, turn)))
        assert world.live.state == "ended"
        bodies = await published(world.live)
        assert ("unsummed", 0) in bodies and ("model", 0) not in bodies
        for number, app in enumerate(world.peers[:2]):
            (status,) = app.status()
            assert status.spent == (world.live.manifest.epsilon if turn > 0 else 0), number


@pytest.mark.slow
def test_the_noise_of_each_member_is_that_of_the_manifest(finished: Finished) -> None:
    """The squares of ten entries: less than a tenth, or more than forty times, of one variance comes once in 1e5."""
    study, pages = finished
    found, variance = summed(study, pages), 4 * masking_of(study.part).noise
    exact = [
        sum(entries)
        for entries in zip(
            *(
                vector_of(study, study.surveys[2], Record({"age": age, "sleep": sleep}, tired))
                for _, age, sleep, tired in ROWS[:4]
            ),
            strict=True,
        )
    ]
    assert found is not None
    squares = sum((noisy - true) ** 2 for noisy, true in zip(found, exact, strict=True))
    assert variance / 10 < squares < 50 * variance


@pytest.mark.slow
def test_where_too_few_signed_a_member_opens_nothing(finished: Finished) -> None:
    """One whose board has too few signers writes zeros, and its mail is full."""
    study, pages = finished
    tag = next(iter(pages[0].texts(KEYS)))
    mail = {(SHARES, other): bytes(range(64)) for other in pages[1].texts(SHARES)}
    part, opens = MasksPart(), study.surveys[OPENING]
    before = {number: page for number, page in pages.items() if number < OPENING}
    said = part.letters(study, opens, None, Correspondence(tag, {}, mail, before), (), bytes).public
    assert said.strip(b"\0") and len(said) == opens.size
    alone = {tag: pages[CAME].entries[CAME][tag]}
    fewer = before | {CAME: BoardPage({CAME: alone}, ())}
    said = part.letters(study, opens, None, Correspondence(tag, {}, mail, fewer), (), bytes).public
    assert said == bytes(opens.size)


@pytest.mark.slow
def test_a_member_that_is_shown_few_writes_nothing_and_pays_nothing(finished: Finished) -> None:
    """A page of keys or of shares with hardly anybody: an aggregator that leaves out the others learns no vector."""
    study, pages = finished
    part, tag = MasksPart(), next(iter(pages[0].texts(KEYS)))
    assert part.reads(study, study.surveys[VECTOR], tag, {at: pages[at] for at in (KEYS, SHARES)})
    alone = BoardPage({SHARES: {tag: pages[SHARES].entries[SHARES][tag]}}, ())
    shown = {KEYS: pages[KEYS], SHARES: alone}
    assert not part.reads(study, study.surveys[VECTOR], tag, shown)
    known = Correspondence(tag, {KEYS: bytes(31), SHARES: bytes(95)}, {}, shown)
    written = part.letters(study, study.surveys[VECTOR], None, known, (), bytes)
    assert written.public == bytes(study.surveys[VECTOR].size)
    few = {KEYS: BoardPage({KEYS: {tag: pages[KEYS].entries[KEYS][tag]}}, ())}
    known = Correspondence(tag, {KEYS: bytes(31)}, {}, few)
    shares = part.letters(study, study.surveys[SHARES], None, known, (), bytes)
    assert not any(any(letter) for letter in (shares.public, *shares.shares))
