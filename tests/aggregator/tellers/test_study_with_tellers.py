"""A whole study of exact sums: published with its tellers, joined by real peers, summed, audited; and its bad ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from attrs import evolve

from aggregator.rules.faults import TellerAway, TellerRefuses
from aggregator.rules.lifecycle import Phase
from aggregator.tellers.publishing import tellers_ready
from aggregator.tellers.study_tellers import LinkTo
from anon.errors import Refused
from anon.protocols.contract import Place
from anon.sharing.arrangement import parse_arrangement
from anon.sharing.round_document import RoundSums, read_round_sums
from anon.sharing.statements import AcceptedList, encode_countersignatures, parse_countersignatures, parse_list
from anon.study.manifest import Manifest
from anon.teller.home import DATABASE
from anon.teller.overview import overview
from anon.transparency import buckets
from anon.wire.packets import Occasion
from peer.rules.distrust import Distrust
from peer.run.clock import proven_time
from tests.support.clock import Clock
from tests.support.protocols import parse_proposal
from tests.support.study_with_tellers import NAMES, STUDY, TELLERS, a_study, all_sent, app_of, short
from tests.support.sums import GRADIENT, sum_study
from tests.support.teller_links import MemoryTeller
from tests.support.tries import every
from tests.support.world import has


async def test_a_whole_study(tmp_path: Path) -> None:
    async with a_study(tmp_path) as study:
        assert study.tellers[0].calls == ["entry", "countersign", "key-shares", "key-share"]
        assert proven_time(study.live.manifest, study.live.chain) == study.live.manifest.timetable.published
        await all_sent(study)
        assert study.tellers[0].calls[4:] == ["roll"] and not study.live.waits
        assert await study.shares_kept() == 4, [len(route.packets()) for route in study.world.routes]
        await study.until(Phase.PUBLISHED)
        assert [one.head.kind for one in study.live.chain] == [
            "manifest", "tellers", "roster", "seed", "credentials", "sums", "transcript", "seed", "model", "report",
        ]  # fmt: skip
        listed = read_round_sums((await study.published())["sums", 0], study.live.study, 0).slots[0]
        assert len(parse_list(listed.accepted, Occasion(study.live.study, 0, 0)).tags) == 4
        result = await study.audited()
        assert result.ok and result.model_checked and result.not_summed == {0: 0}, result.lines()
        assert await study.shares_kept() == 0 and not study.live.trouble
        await study.world.app.tick()
        assert [teller.calls[-1] for teller in study.tellers] == ["finish", "finish"]
        with pytest.raises(Refused, match="the study is over"):
            study.tellers[0].session.key_shares(study.live.study)


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four members have buckets of one."""
    monkeypatch.setattr(buckets, "THRESHOLD", 4)
    monkeypatch.setattr(buckets, "MEAN", 1)
    monkeypatch.setattr(buckets, "LEAST", 0)


@pytest.mark.slow
async def test_a_whole_study_in_several_buckets(several: None, tmp_path: Path) -> None:
    """Each teller is handed all of them; a member fetches three of the four."""
    async with a_study(tmp_path) as study:
        await all_sent(study)
        assert await study.shares_kept() == 4 and study.live.rostered == 4
        await study.until(Phase.PUBLISHED)
        listed = read_round_sums((await study.published())["sums", 0], study.live.study, 0).slots[0]
        assert len(parse_list(listed.accepted, Occasion(study.live.study, 0, 0)).tags) == 4
        result = await study.audited()
        assert result.ok and result.model_checked and result.not_summed == {0: 0}, result.lines()
        numbers = {one.head.kind: one.head.number for one in study.live.chain}
        for route in study.world.routes:
            asked = [one.what for one in route.requests if one.what.startswith("buckets/")]
            assert len(set(asked)) == len(asked) == 6
            assert {what.split("/")[1] for what in asked} == {str(numbers[kind]) for kind in ("roster", "credentials")}


@pytest.mark.slow
@pytest.mark.parametrize("call", every(3, ["roll", "admit", "settle", "list", "noise"]))
async def test_a_teller_away_in_the_middle_and_an_aggregator_that_begins_anew(tmp_path: Path, call: str) -> None:
    async with a_study(tmp_path) as study:
        study.tellers[1].away = lambda name: name == call
        await all_sent(study)
        await study.until_trouble()
        assert study.live.phase is Phase.ROUND and not has(study.live, "sums")
        assert "the teller students does not answer" in study.live.trouble
        await study.world.app.tick()
        assert study.live.trouble, "it is shown for as long as it lasts"
        await study.restart()
        study.tellers[1].away = lambda _call: False
        await study.until(Phase.PUBLISHED, seconds=5)
        result = await study.audited()
        assert result.ok and result.not_summed == {0: 0} and not study.live.trouble, result.lines()


@pytest.mark.slow
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("point", ["document", "phase"])
async def test_an_aggregator_that_ends_at_a_commit(
    tmp_path: Path, point: str, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On each side of the commit of the round's document, and of the phase that follows it."""
    async with a_study(tmp_path) as study:
        await all_sent(study)
        died = []

        def die(reached: str) -> None:
            if reached == f"{side}-commit-of-{point}" and not died and "noise" in study.tellers[1].calls:
                died.append(reached)
                raise OSError

        monkeypatch.setattr("aggregator.store.studies.crash_point", die)
        for _ in range(2000):
            if died:
                break
            await study.work(1)
        await study.restart()
        assert died and has(study.live, "sums") is (point == "phase" or side == "after")
        await study.until(Phase.PUBLISHED)
        result = await study.audited()
        assert result.ok and result.not_summed == {0: 0}, result.lines()


@pytest.mark.slow
async def test_two_lists_end_the_study_with_evidence(tmp_path: Path) -> None:
    async with a_study(tmp_path) as study:
        await all_sent(study)

        def other(call: str, given: object) -> object:
            if call != "list":
                return given
            assert isinstance(given, bytes)
            occasion = Occasion(study.live.study, 0, 0)
            return AcceptedList(occasion, parse_list(given, occasion).tags[1:]).to_bytes()

        study.tellers[1].turned = other
        await study.until(Phase.ENDED)
        assert "signed two lists" in study.live.trouble and await study.shares_kept() == 0
        assert [one.head.kind for one in study.live.chain][-1] == "unsummed" and not has(study.live, "sums")
        result = await study.audited()
        assert result.ok and result.unsummed == "tellers-disagree" and "without a sum" in "".join(result.lines())
        forged = (await study.published())["unsummed", 0][:-1] + b"x"
        assert not (await study.audited({("unsummed", 0): forged})).ok
        await study.restart()
        assert "signed two lists" in study.live.trouble
        await study.world.app.tick()
        assert study.live.phase is Phase.ENDED and study.tellers[0].calls[-1] == "finish"
        study.world.clock.seconds += 10**8
        await study.world.app.tick()
        assert study.live.phase is Phase.ERASED


@pytest.mark.slow
async def test_fewer_packets_than_the_minimum_end_the_study(tmp_path: Path) -> None:
    async with a_study(tmp_path, peers=3) as study:
        least = study.arrangement.minimum
        study.tellers[0].turned = lambda call, given: given[: least - 1] if call == "admit" else given
        await all_sent(study)
        await study.until(Phase.ENDED)
        assert f"too few packets were accepted ({least - 1} accepted, {least} needed)" in study.live.trouble
        assert (await study.audited()).unsummed == "too-few-packets"
        assert "noise" not in study.tellers[0].calls + study.tellers[1].calls


@pytest.mark.slow
@pytest.mark.parametrize("away", [True, False])
async def test_a_teller_that_stays_away_or_refuses_ends_the_study(tmp_path: Path, away: bool) -> None:
    async with a_study(tmp_path) as study:
        await all_sent(study)
        if away:
            study.tellers[1].away = lambda _call: True
        else:
            study.tellers[1].session.finish(study.live.study, 0)
        await study.until(Phase.ENDED, seconds=study.live.manifest.release.retention / 25)
        assert ("come back in time" if away else "refused to the end") in study.live.trouble
        until = study.live.manifest.timetable.ends + study.live.manifest.release.retention / 2
        assert until <= study.world.clock() < until + study.live.manifest.release.retention / 20
        assert (await study.audited()).unsummed == ("teller-away" if away else "teller-refused")


@pytest.mark.slow
async def test_a_list_that_leaves_members_out_is_summed_and_shown(tmp_path: Path) -> None:
    async with a_study(tmp_path) as study:
        for teller in study.tellers:
            teller.turned = lambda call, given: given[1:] if call == "admit" else given
        await all_sent(study)
        await study.until(Phase.PUBLISHED)
        result = await study.audited()
        assert result.ok and result.not_summed == {0: 1} and result.figures()["not_summed"] == {"0": 1}
        assert "survey 0: 1 packet of its transcript is not in the sum" in "".join(result.lines())


@pytest.mark.slow
async def test_a_forged_document_of_sums_is_found(tmp_path: Path) -> None:
    async with a_study(tmp_path) as study:
        await all_sent(study)
        await study.until(Phase.PUBLISHED)
        bodies = await study.published()
        honest = read_round_sums(bodies["sums", 0], study.live.study, 0)
        (slot,) = honest.slots
        occasion = Occasion(study.live.study, 0, 0)
        shorter = AcceptedList(occasion, parse_list(slot.accepted, occasion).tags[1:]).to_bytes()
        for forged in (
            evolve(slot, accepted=shorter),
            evolve(slot, shares=slot.shares[::-1]),
            evolve(slot, shares=(slot.shares[0], slot.shares[0])),
            evolve(slot, signatures=slot.signatures[::-1]),
        ):
            body = RoundSums(study.live.study, 0, (forged,)).to_bytes()
            result = await study.audited({("sums", 0): body})
            assert "sums 0" in {finding.document for finding in result.findings}, result.lines()
        result = await study.audited({("tellers", 0): bodies["tellers", 0][:-1] + b"x"})
        assert "tellers 0" in {finding.document for finding in result.findings}


@pytest.mark.parametrize("beside", [None, "swapped"])
async def test_no_peer_joins_a_study_that_its_tellers_did_not_countersign(
    tmp_path: Path, beside: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def bent(manifest: Manifest, link_to: LinkTo) -> Mapping[Place, bytes]:
        if beside is None:
            return {}
        honest = (await tellers_ready(manifest, link_to))["tellers", 0]
        arrangement = parse_arrangement(manifest.part)
        statements = parse_countersignatures(honest, manifest.study_id, arrangement)
        return {("tellers", 0): encode_countersignatures(manifest.study_id, statements[::-1])}

    monkeypatch.setattr("aggregator.app.tellers_ready", bent)
    with pytest.raises(Distrust, match=r"not everybody who is to add up .* do not take part"):
        async with a_study(tmp_path, peers=1):
            pass


@pytest.mark.parametrize("call", ["entry", "countersign", "key-share"])
async def test_without_a_teller_nothing_is_published(tmp_path: Path, call: str) -> None:
    tellers = [MemoryTeller(tmp_path / name) for name in NAMES]
    tellers[1].away = lambda name: name == call
    proposal = parse_proposal(STUDY)
    async with app_of(tmp_path / "home", Clock(), tellers) as app:
        with pytest.raises(TellerAway, match="the teller students does not answer"):
            await app.create_study(proposal)
        assert not app.studies()
        tellers[1].away = lambda _call: False
        await app.create_study(proposal)
        assert len(app.studies()) == 1
        for teller in tellers:
            assert [one.stage for one in overview(teller.folder / DATABASE) if one.stage != "over"] == ["countersigned"]


async def test_a_teller_that_signs_for_another_study_stops_the_publishing(tmp_path: Path) -> None:
    tellers = [MemoryTeller(tmp_path / name) for name in NAMES]
    tellers[1].lies = lambda call, answer: answer[:-1] + b"x" if call == "countersign" else answer
    async with app_of(tmp_path / "home", Clock(), tellers) as app:
        with pytest.raises(TellerRefuses):
            await app.create_study(parse_proposal(STUDY))
        assert not app.studies()


@pytest.mark.slow
async def test_a_study_of_several_rounds(tmp_path: Path) -> None:
    """Each round is summed before the next opens, and each asks another survey."""
    async with a_study(tmp_path, text=short(sum_study(GRADIENT.replace("3", "2"), TELLERS, minimum=3))) as study:
        await study.world.go_on(until=study.live.manifest.timetable.ends + 60)
        await study.until(Phase.PUBLISHED)
        kinds = [(one.head.kind, one.head.part) for one in study.live.chain]
        assert [place for place in kinds if place[0] == "sums"] == [("sums", number) for number in range(3)]
        result = await study.audited()
        assert result.ok and result.not_summed == {0: 0, 1: 0, 2: 0}, result.lines()
