"""Parties with many records, whole studies in memory: weights and votes under masks, some parties away, all audited."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from aggregator.audit import audit_documents
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.models.linear import LinearModel
from anon.transparency.documents import encode_chain
from examples.testing import all_contents
from peer.data.importing import import_rows
from tests.support.letters_world import after, go_on
from tests.support.masks_study import COLUMNS, Rows, masks_study
from tests.support.protocols import read_model
from tests.support.sums import many
from tests.support.world import World, in_memory, published

pytestmark = pytest.mark.slow
PARTIES, RECORDS = 10, 40
AVERAGING = 'kind = "masked-averaging"\nepsilon = 8.0\nstrength = 0.1'
TRANSFER = 'kind = "masked-transfer"\nepsilon = 8.0\npublic_rows = 50\nstrength = 0.01\nclassifier = "tree"'
GIVEN = '[[given]]\nname = "people"\ndescription = "Made-up people."\nfile = "people.csv"\n'


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise, so that chance decides nothing about the model."""
    monkeypatch.setattr(DiscreteGaussian, "vector", lambda _self, length, _random: [0] * length)


def rows_of(number: int) -> Rows:
    """Short sleep makes tired; the first party has strange values, and the second one record."""
    spring, rows = Random(number), list[tuple[object, ...]]()
    if number == 0:
        return [(day, value, value, value) for day, value in enumerate([None, "text", float("inf"), -1e300, "", 5])]
    for day in range(1 if number == 1 else RECORDS + 5):
        sleep = spring.uniform(2, 10)
        rows.append((day, spring.uniform(0, 100), sleep, int(sleep < 6)))
    return rows


def public() -> bytes:
    spring = Random(99)
    lines = [f"{spring.uniform(2, 10):.2f},{spring.uniform(0, 100):.1f}" for _ in range(50)]
    return "\n".join(["sleep,age", *lines]).encode()


async def lived(world: World) -> LinearModel:
    """All join and enrol; two of ten stay away from the vectors on."""
    study = world.live.manifest
    await world.settle_in(PARTIES)
    for number in range(PARTIES):
        import_rows(world._home(number).data_path, "person", COLUMNS, rows_of(number))
    await go_on(world, away=dict.fromkeys((8, 9), after(world, 1)))
    assert world.live.state == "published"
    bodies = await published(world.live)
    result = audit_documents(
        encode_chain(world.live.chain), dict(enumerate(bodies.values())), contents=await all_contents(world.live)
    )
    assert result.ok, result.lines()
    for number, app in enumerate(world.peers):
        (status,) = app.status()
        assert status.spent == (study.epsilon if number < 8 else 0)
    model = read_model(bodies["model", 0].decode())
    assert isinstance(model, LinearModel)
    return model


def right(model: LinearModel) -> float:
    tested = [(age, sleep) for age in (10, 50, 90) for sleep in (2.5, 3.5, 4.5, 7.5, 8.5, 9.5)]
    answers = [
        model.predict({"age": age, "sleep": sleep}).probability >= model.predict({"age": 50, "sleep": 6}).probability
        for age, sleep in tested
    ]
    return sum(answer == (sleep < 6) for answer, (_, sleep) in zip(answers, tested, strict=True)) / len(tested)


@pytest.mark.parametrize("unit", ["record", "person"])
async def test_parties_average_their_models_without_tellers(tmp_path: Path, unit: str) -> None:
    text = masks_study(AVERAGING + ("\nclip = 5.0" if unit == "person" else ""), many(RECORDS, unit))
    async with in_memory(tmp_path / "home", text) as world:
        model = await lived(world)
        assert model.many and right(model) > 0.9


async def test_parties_vote_on_public_rows_without_tellers(tmp_path: Path) -> None:
    text = masks_study(TRANSFER, many(RECORDS, "person")) + GIVEN
    async with in_memory(tmp_path / "home", text, given={"people": public()}) as world:
        model = await lived(world)
        assert right(model) > 0.9
