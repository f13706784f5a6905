"""Averaging in groups: whole studies in memory, with a receiver that vanishes and members that come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

import pytest

from aggregator.audit import AuditResult, audit_documents
from aggregator.protocols.sum.groups import group_sums
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.board import Pages, pages_in
from anon.protocols.contract import Place
from anon.protocols.models.ensemble import EnsembleModel
from anon.protocols.sum.groups.drawing import KEYS, OPENED, SHARES, TOLD, Group, survey_of, told
from anon.protocols.sum.groups.layout import weights_survey
from anon.protocols.sum.groups.shared import drawn_groups
from anon.protocols.sum.vector import vector_of
from anon.queries import process
from anon.transparency.documents import encode_chain
from examples.testing import all_contents
from peer.rules.lifecycle import State
from tests.support.groups_study import HELD, MEMBERS, groups_study
from tests.support.letters_world import after, go_on, outbox
from tests.support.masks_study import members
from tests.support.oblivious_table import record
from tests.support.protocols import read_model
from tests.support.world import World, published

ODD = (
    (), tuple((day, value, value, value) for day, value in enumerate([None, "text", float("inf"), -1e300, ""])),
    tuple((*row[:-1], 1) for row in HELD[-1]),
)  # fmt: skip
"""A member without records, one with values that are none, and one of one label."""


async def pages_of(world: World) -> tuple[dict[Place, bytes], Pages]:
    bodies = await published(world.live)
    return bodies, pages_in(world.live.manifest, bodies)


def numbers_of(world: World, pages: Pages) -> dict[bytes, int]:
    """The member behind each pseudonym, by its first letters."""
    digests = {entry.digest: tag for tag, entry in pages[KEYS].entries[KEYS].items()}
    return {
        digests[entry.digest]: number
        for number in range(len(world.peers))
        for entry in outbox(world, number)
        if entry.digest in digests
    }


async def audited(world: World, bodies: Mapping[Place, bytes]) -> AuditResult:
    return audit_documents(
        encode_chain(world.live.chain), dict(enumerate(bodies.values())), contents=await all_contents(world.live)
    )


def exact(world: World, group: Group, numbers: Mapping[bytes, int]) -> list[int]:
    """The sum of a group's weights, as each member makes them."""
    study = world.live.manifest
    vectors = [vector_of(study, weights_survey(study), record(HELD[numbers[tag]])) for tag in group.members]
    return [sum(entries) for entries in zip(*vectors, strict=True)]


@pytest.mark.slow
async def test_published_sums_less_noted_noise_are_those_of_the_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve members in groups of four, two aggregations. A receiver of the first is gone when it should tell its sum,
    and comes back. The noise of a receiver is noted as its variance, so that all of it is seen."""
    noise = list[Fraction]()

    def noted(self: DiscreteGaussian, length: int, _random: Callable[[int], bytes]) -> list[int]:
        noise.append(self.sigma_squared)
        return [1000 + at for at in range(length)]

    monkeypatch.setattr(DiscreteGaussian, "vector", noted)
    async with members(tmp_path, groups_study(), HELD) as world:
        study = world.live.manifest
        await go_on(world, until=after(world, survey_of(0, SHARES)))
        _, pages = await pages_of(world)
        numbers, groups = numbers_of(world, pages), drawn_groups(study, 0, pages)
        gone = numbers[groups[1].receivers[0]]
        back = after(world, survey_of(0, TOLD))
        await go_on(world, until=back, away={gone: world.clock()})
        await world.go_on()
        assert world.live.state == "published"
        bodies, pages = await pages_of(world)
        found = list(group_sums(study, bodies))
        assert [(one.group.aggregation, one.group.number) for one in found if one.model is None] == [(0, 2)]
        assert len(found) == 6 and len(set(noise)) == 1
        for one in found:
            if one.model is not None:
                plain = [value - 2 * (1000 + at) for at, value in enumerate(told(pages, one.group) or [])]
                assert plain == exact(world, one.group, numbers)
        model = read_model(bodies["model", 0].decode())
        assert isinstance(model, EnsembleModel) and len(model.models) == 5 and model.many
        assert [one.members for one in model.models] == [4] * 5
        page = bodies["report", 0].decode()
        assert "teller" not in page and "no single packet was opened" not in page
        assert page.count("none: a receiver told no sum") == 1 and "The models with a" in page
        result = await audited(world, bodies)
        assert result.ok, result.lines()
        for app in world.peers:
            (status,) = app.status()
            assert (status.state, status.spent) == (State.FINISHED, study.epsilon)


@pytest.mark.slow
async def test_members_that_are_away_pay_for_the_aggregations_that_they_shared_in(tmp_path: Path) -> None:
    """Three are away when values of the first aggregation are opened. They are in no group then, and in one of the
    second. Nine others make two groups, of four and five. One of them has no records, one values that are none, and one
    records of one label: they pay what all pay."""
    async with members(tmp_path, groups_study(), (*HELD[:-3], *ODD)) as world:
        study = world.live.manifest
        away = dict.fromkeys(range(3), after(world, KEYS))
        await go_on(world, until=after(world, survey_of(0, OPENED)), away=away)
        numbers = numbers_of(world, (await pages_of(world))[1])  # a study that is over tells nobody
        await world.go_on()
        bodies, pages = await pages_of(world)
        drawn = [drawn_groups(study, number, pages) for number in range(2)]
        assert [[len(group.members) for group in groups] for groups in drawn] == [[4, 5], [4, 4, 4]]
        first = {numbers[tag] for group in drawn[0] for tag in group.members}
        assert first == set(range(3, MEMBERS)) and (await audited(world, bodies)).ok
        each = study.survey(survey_of(0, SHARES)).epsilon
        spent = [status.spent for app in world.peers for status in app.status()]
        assert spent == [each] * 3 + [2 * each] * 9 and 2 * each == study.epsilon


@pytest.mark.slow
async def test_too_few_end_the_study_without_a_charge(tmp_path: Path) -> None:
    async with members(tmp_path, groups_study(), HELD) as world:
        await go_on(world, away=dict.fromkeys(range(9), after(world, KEYS)))
        assert world.live.state == "ended"
        bodies, _ = await pages_of(world)
        assert ("unsummed", 0) in bodies and ("model", 0) not in bodies and (await audited(world, bodies)).ok
        assert {status.spent for app in world.peers for status in app.status()} == {0}


@pytest.mark.slow
async def test_shares_are_cut_in_a_child_that_opens_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on an owner's machine: all code of the protocol is there before the child gives up everything."""

    async def in_children(work: process.Work, _seconds: float) -> bytes:
        return await asyncio.to_thread(process.in_a_child, work, 60.0)

    monkeypatch.setattr("examples.testing.at_once", in_children)
    monkeypatch.setattr(DiscreteGaussian, "vector", lambda _self, length, _random: [0] * length)
    async with members(tmp_path, groups_study(aggregations=1), HELD) as world:
        await go_on(world, until=after(world, KEYS))
        numbers = numbers_of(world, (await pages_of(world))[1])
        await world.go_on()
        _, pages = await pages_of(world)
        for group in drawn_groups(world.live.manifest, 0, pages):
            assert told(pages, group) == exact(world, group, numbers)
