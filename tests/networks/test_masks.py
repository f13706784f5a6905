"""Exact sums under masks: whole studies in memory, with members that drop out at every round."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.audit import audit_documents
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.board import read_page
from anon.protocols.sum.masks.layout import masking_of
from anon.protocols.sum.masks.masking import opened
from anon.transparency.documents import encode_chain
from examples.testing import all_contents
from tests.support.letters_world import after, go_on
from tests.support.masks_study import masks_study, members
from tests.support.world import World, published

ROWS = [(0, 30, 8, 1), (0, 70, 5, 0), (0, 10, 12, 1), (0, 90, 7, 0), (0, 50, 6, 1), (0, 20, 9, 0)]


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise, so that a sum is right to the unit."""
    monkeypatch.setattr(DiscreteGaussian, "vector", lambda _self, length, _random: [0] * length)


async def opened_sum(world: World) -> list[int] | None:
    study, bodies = world.live.manifest, await published(world.live)
    pages = {part: read_page(study, part, body) for (kind, part), body in bodies.items() if kind == "page"}
    return opened(study.study_id, pages, masking_of(study.part).least, 10)


async def test_a_sum_is_right_to_the_unit_and_audited(tmp_path: Path, quiet: None) -> None:
    async with members(tmp_path, masks_study(), [[row] for row in ROWS[:4]]) as world:
        await world.go_on()
        found = await opened_sum(world)
        # The constant's square, and its products with age, sleep and the label.
        assert found is not None and found[:1] == [16 * 16 * 4]
        bodies = await published(world.live)
        assert ("model", 0) in bodies
        result = audit_documents(
            encode_chain(world.live.chain), dict(enumerate(bodies.values())), contents=await all_contents(world.live)
        )
        assert result.ok, result.lines()




@pytest.mark.slow
@pytest.mark.parametrize("turn", [0, 1, 2])
async def test_one_drops_out_and_the_sum_is_that_of_those_who_came(tmp_path: Path, quiet: None, turn: int) -> None:
    async with members(tmp_path, masks_study(), [[row] for row in ROWS]) as world:
        await go_on(world, away={5: after(world, turn)})
        assert world.live.state == "published"
        found = await opened_sum(world)
        assert found is not None and found[0] == 16 * 16 * (6 if turn == 2 else 5)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(4))
async def test_where_too_many_drop_out_nothing_opens(tmp_path: Path, turn: int) -> None:
    """The study ends in a sentence, and whoever paid for a vector paid; nothing is published but the pages."""
    async with members(tmp_path, masks_study(), [[row] for row in ROWS]) as world:
        await go_on(world, away=dict.fromkeys(range(2, 6), after(world, turn)))
        assert world.live.state == "ended"
        bodies = await published(world.live)
        assert ("unsummed", 0) in bodies and ("model", 0) not in bodies
        for number, app in enumerate(world.peers[:2]):
            (status,) = app.status()
            assert status.spent == (world.live.manifest.epsilon if turn > 0 else 0), number
