"""Oblivious averaging: whole studies in memory, with parties that stop at every round."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import pytest

from aggregator.audit import audit_documents
from anon.protocols.contract import Place, Record
from anon.protocols.models.linear import LinearModel
from anon.protocols.sum.design import summed_of
from anon.protocols.sum.oblivious.l2_laplace import L2Laplace
from anon.protocols.sum.oblivious.layout import ROUNDS
from anon.protocols.sum.oblivious.messages import epsilon_of, spread, weights_of, weights_survey
from anon.protocols.sum.vector import vector_of
from anon.protocols.vectors.averaging import AveragedWeights
from anon.queries import process
from anon.transparency.documents import encode_chain
from benchmarks.oblivious import lived
from examples.testing import all_contents
from peer.rules.lifecycle import State
from tests.support.letters_world import after, go_on
from tests.support.masks_study import members
from tests.support.oblivious_study import HELD, SIZES, oblivious_study
from tests.support.protocols import read_model
from tests.support.tries import soaked
from tests.support.world import World, published


def exact(world: World) -> list[int]:
    """The sum of all weights, as each party makes them."""
    study = world.live.manifest
    records = [
        Record({}, None, rows=tuple(Record({"age": age, "sleep": sleep}, tired) for _, age, sleep, tired in held))
        for held in HELD
    ]
    vectors = [vector_of(study, weights_survey(study), record) for record in records]
    return [sum(entries) for entries in zip(*vectors, strict=True)]


def model_of(bodies: Mapping[Place, bytes]) -> LinearModel:
    model = read_model(bodies["model", 0].decode())
    assert isinstance(model, LinearModel)
    return model


def weights(model: LinearModel) -> list[float]:
    return [model.intercept, *model.weights]


@pytest.mark.slow
async def test_a_study_of_five_parties_has_one_noise_and_is_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each party's noise is its scale, so that the published one names its party: one of the two smallest."""
    scales = list[Fraction]()

    def noise(self: L2Laplace, length: int, _random: object) -> list[int]:
        scales.append(self.scale)  # each party tries its letters once before it makes them
        return [round(self.scale)] * length

    monkeypatch.setattr(L2Laplace, "vector", noise)
    async with members(tmp_path, oblivious_study(), HELD) as world:
        study = world.live.manifest
        await world.go_on()
        assert world.live.state == "published"
        shape = weights_of(weights_survey(study))
        expected = [spread(shape, size, epsilon_of(study.surveys)) for size in SIZES]
        assert set(scales) == set(expected) and len(set(expected)) == len(SIZES) - 1
        bodies = await published(world.live)
        noisy = [value + round(max(expected)) for value in exact(world)]
        assert weights(model_of(bodies)) == shape_mean(world, noisy)
        result = audit_documents(
            encode_chain(world.live.chain), dict(enumerate(bodies.values())), contents=await all_contents(world.live)
        )
        assert result.ok, result.lines()
        assert {status.spent for app in world.peers for status in app.status()} == {study.epsilon}


def shape_mean(world: World, values: list[int]) -> list[float]:
    """The mean of a sum, as the learner has it."""
    study = world.live.manifest
    shape = summed_of(study, weights_survey(study))
    assert isinstance(shape, AveragedWeights)
    return shape.mean(values, len(SIZES))


@pytest.mark.slow
@pytest.mark.parametrize("turn", soaked(3, range(len(ROUNDS))))
async def test_a_party_that_stops_ends_the_study_for_all(tmp_path: Path, turn: int) -> None:
    """Before each round. Nothing is published but pages; whoever shared its weights has paid."""
    async with members(tmp_path, oblivious_study(), HELD) as world:
        stops = after(world, turn - 1) if turn else world.live.rounds[0].window.opens - 1.0
        await go_on(world, away={4: stops})
        assert world.live.state == "ended"
        bodies = await published(world.live)
        assert ("unsummed", 0) in bodies and ("model", 0) not in bodies
        result = audit_documents(
            encode_chain(world.live.chain), dict(enumerate(bodies.values())), contents=await all_contents(world.live)
        )
        assert result.ok, result.lines()
        for app in world.peers[:4]:
            (status,) = app.status()
            assert status.state is State.FINISHED and f"ended after its round {turn + 1}" in str(status.reason)
            assert status.spent == (world.live.manifest.epsilon if turn >= 2 else 0)


@pytest.mark.slow
async def test_weights_are_shared_in_a_child_that_opens_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an owner's machine: all code of the protocol is there before the child gives up everything."""

    async def in_children(work: process.Work, _seconds: float) -> bytes:
        return await asyncio.to_thread(process.in_a_child, work, 60.0)

    monkeypatch.setattr("examples.testing.at_once", in_children)
    monkeypatch.setattr(L2Laplace, "vector", lambda _self, length, _random: [0] * length)
    async with members(tmp_path, oblivious_study(), HELD) as world:
        await world.go_on()
        assert weights(model_of(await published(world.live))) == shape_mean(world, exact(world))


@pytest.mark.soak
def test_five_parties_with_keys_of_3072_bits(tmp_path: Path) -> None:
    """124 weights in three plaintexts, and real noise."""
    outcome = lived(tmp_path, parties=5, weights=124, records=60, bits=3072)
    assert outcome.audit.ok and set(outcome.states) == {State.FINISHED}
    model = outcome.results["model", 0]
    assert isinstance(model, LinearModel) and len(model.weights) == 123
