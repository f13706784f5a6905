"""A whole study whose tellers have a spare: one of three is lost for good, and the round ends with its sum."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aggregator.rules.lifecycle import Phase
from aggregator.study.sums import MOST_PATIENCE, is_patient, patience
from anon.noise import DiscreteGaussian, RandomBytes
from anon.protocols.registry import charge_of
from anon.protocols.resolve import resolve
from anon.protocols.sum.design import shape_of
from anon.protocols.sum.standing import arrangement_of
from anon.protocols.vectors.tables import TableSums
from anon.sharing.arrangement import PAIRS
from anon.sharing.drafts import drafted
from anon.sharing.quorum import quorum_of
from anon.sharing.round_document import read_round_sums
from anon.sharing.statements import list_heading
from anon.wire.packets import Occasion
from tests.support.protocols import parse_proposal
from tests.support.study_with_tellers import Study, a_study, all_sent, short
from tests.support.sums import KEYS, TABLES, sum_study
from tests.support.world import has

NAMES = ("clinic", "students", "council")
TELLERS = "".join(
    f'[[tellers]]\nname = "{name}"\naddress = "127.0.0.1:900{number}"\n{"spare = true" if number == 2 else ""}\n'
    for number, name in enumerate(NAMES)
)
STUDY = short(sum_study(TABLES, TELLERS, minimum=3))


def lose(study: Study, number: int) -> None:
    """Its machine is gone: nothing is ever answered again."""
    study.tellers[number].away = lambda _call: True


async def pair_of(study: Study, number: int = 0) -> tuple[int, ...]:
    """The tellers whose sum a round's document has."""
    body = (await study.published())["sums", number]
    named = list_heading(read_round_sums(body, study.live.study, number).slots[0].accepted)
    return quorum_of(study.live.study, study.arrangement, named.study).members


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The noise that tellers draw from now on."""
    drawn, draw = list[list[int]](), DiscreteGaussian.vector

    def vector(self: DiscreteGaussian, length: int, random_bytes: RandomBytes) -> list[int]:
        drawn.append(list(draw(self, length, random_bytes)))
        return drawn[-1]

    monkeypatch.setattr(DiscreteGaussian, "vector", vector)
    return drawn


SLOWLY = [pytest.param(one, marks=pytest.mark.slow) for one in (None, 0, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("lost", [1, *SLOWLY])
async def test_a_teller_that_is_lost_after_shares_were_sent(
    tmp_path: Path, lost: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The published sum less the recorded noise has one mark of each member in each table."""
    async with a_study(tmp_path, text=STUDY, names=NAMES) as study:
        noise = recorded(monkeypatch)
        await all_sent(study)
        if lost is not None:
            lose(study, lost)
        await study.until(Phase.PUBLISHED, seconds=MOST_PATIENCE / 100)
        left = tuple(one for one in range(3) if one != lost)
        assert await pair_of(study) == (left if lost is not None else PAIRS[0])
        result = await study.audited()
        assert result.ok and result.model_checked and result.not_summed == {0: 0}, result.lines()
        assert len(noise) == 2, "each of the two added its noise once"
        exact = [total - sum(added) for total, added in zip(await study.sums(), zip(*noise, strict=True), strict=True)]
        tables = shape_of(study.live.manifest.surveys[0])
        assert isinstance(tables, TableSums) and min(exact) >= 0
        assert {sum(exact[at : at + size]) for at, size in starts(tables)} == {len(study.world.peers)}
        waited = study.world.clock() - study.live.rounds[0].window.closes
        assert (waited > MOST_PATIENCE) is (lost in (0, 1)), "only the first pair is asked on the first day"


def starts(tables: TableSums) -> list[tuple[int, int]]:
    return [(sum(tables.lengths[:number]), length) for number, length in enumerate(tables.lengths)]


CALLS = ["list", *(pytest.param(one, marks=pytest.mark.slow) for one in ("roll", "admit", "settle", "noise"))]


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
async def test_a_teller_that_is_lost_at_a_call(tmp_path: Path, call: str) -> None:
    """Up to the list another pair takes over, also after both sides began anew. After it nobody signs another one: the
    round waits for the teller, and ends without a sum if it never comes."""
    async with a_study(tmp_path, text=STUDY, names=NAMES) as study:
        study.tellers[1].away = lambda name: name == call
        await all_sent(study)
        await study.until_trouble()
        lose(study, 1)
        await study.restart()
        if call in ("list", "noise"):
            study.world.clock.seconds += 2 * MOST_PATIENCE
            await study.until_trouble()
            assert "the teller students does not answer" in study.live.trouble and not has(study.live, "sums")
            study.tellers[1].away = lambda _call: False
        await study.until(Phase.PUBLISHED, seconds=MOST_PATIENCE / 100)
        assert await pair_of(study) == ((0, 1) if call in ("list", "noise") else (0, 2))
        result = await study.audited()
        assert result.ok and result.not_summed == {0: 0}, result.lines()


@pytest.mark.slow
async def test_two_lost_tellers_end_the_study(tmp_path: Path) -> None:
    async with a_study(tmp_path, text=STUDY, names=NAMES) as study:
        await all_sent(study)
        lose(study, 0)
        lose(study, 2)
        await study.until(Phase.ENDED, seconds=study.live.manifest.release.retention / 100)
        assert study.world.clock() >= patience(study.live)
        assert (await study.audited()).unsummed == "teller-away"
        assert "noise" not in study.tellers[1].calls


def test_the_patience_with_the_first_pair_ends_before_the_round_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """After half of the time until the next round opens, and after a day at most."""
    for wait, first in ((60.0, 30.0), (10 * MOST_PATIENCE, MOST_PATIENCE)):
        closed = SimpleNamespace(window=SimpleNamespace(closes=1000.0))
        monkeypatch.setattr("aggregator.study.sums.patience", lambda _study, until=1000.0 + wait: until)
        for late, patient in ((-0.1, True), (0.0, False)):
            tools = SimpleNamespace(now=lambda at=1000.0 + first + late: at)
            study: Any = SimpleNamespace(rounds=[closed], turn=0, tools=tools)
            assert is_patient(study) is patient


def test_what_a_study_with_a_spare_costs() -> None:
    """Two sums of each round are counted, and the noise keeps to epsilon for both."""
    manifest = resolve(drafted(parse_proposal(STUDY)), KEYS, 1_800_000_000)
    plain = resolve(drafted(parse_proposal(STUDY.replace("spare = true", ""))), KEYS, 1_800_000_000)
    charge, without = charge_of(manifest), charge_of(plain)
    (asked,), (fewer,) = arrangement_of(manifest).sums, arrangement_of(plain).sums
    one = Fraction(shape_of(manifest.surveys[0]).sensitivity_squared("replace-one")) / (2 * asked.sigma_squared)
    assert 2 * one <= Fraction(charge.amount, 10**9) <= 2 * one + Fraction(2, 10**9)
    assert abs(charge.amount - without.amount) < without.amount / 50, "the same promise, of one sum or of two"
    assert 1.96 < asked.sigma_squared / fewer.sigma_squared < 2.04
    assert charge.condition.startswith("at least two of the three tellers “clinic”, “students” and “council” keep")


@pytest.mark.slow
async def test_the_end_erases_everything(tmp_path: Path) -> None:
    async with a_study(tmp_path, text=STUDY, names=NAMES) as study:
        await all_sent(study)
        assert await study.shares_kept() == 4
        await study.until(Phase.PUBLISHED)
        await study.world.app.tick()
        assert [teller.calls[-1] for teller in study.tellers] == ["finish"] * 3 and await study.shares_kept() == 0
        study.world.clock.seconds += 10**8
        await study.world.app.tick()
        assert study.live.phase is Phase.ERASED and study.live.tellers is not None
        kept = [await study.world.app._tools.lists.of(Occasion(one, 0, 0)) for one in study.live.tellers.ids]
        assert kept == [None] * 3
