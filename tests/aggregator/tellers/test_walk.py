"""The order of the calls to tellers: the sum, in whatever steps it is interrupted; and the ends without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field

from aggregator.rules.faults import NoSum, TellerAway, TellerRefuses, in_words
from aggregator.tellers.walk import Batch, finish, hand_roll, share_keys, sum_up
from anon.crypto.nacl import SigningKey
from anon.errors import Conflict, NoRoom
from anon.sharing.arrangement import Arrangement
from anon.sharing.round_document import RoundSums, SlotSum, UnsummedRound, Why, parse_round_sums, parse_unsummed
from anon.sharing.statements import (
    AcceptedList,
    Disagreed,
    ListSignature,
    disagreement_of,
    parse_disagreement,
    parse_list,
)
from anon.transparency.closing import Bodies
from anon.transparency.documents import encode_chain
from anon.wire.packets import Occasion, Packet
from tests.support.fake_aggregator import FakeAggregator
from tests.support.teller_links import MemoryTeller
from tests.support.tellers import PLACES, Member, a_sum, closed_study, expected
from tests.support.tries import every


@define
class Lists:
    """Lists that outlive the aggregator's process."""

    held: dict[Occasion, bytes] = field(factory=dict)

    async def of(self, occasion: Occasion) -> bytes | None:
        return self.held.get(occasion)

    async def keep(self, occasion: Occasion, body: bytes) -> bytes:
        return self.held.setdefault(occasion, body)


@define
class Round:
    """A study whose packets are all there."""

    aggregator: FakeAggregator
    tellers: list[MemoryTeller]
    arrangement: Arrangement
    members: list[Member]
    packets: list[Packet] = field(factory=list)
    lists: Lists = field(factory=Lists)

    @property
    def occasion(self) -> Occasion:
        return Occasion(self.aggregator.study, 0, 0)

    async def summed(self, size: int = 2) -> SlotSum:
        return await sum_up(self.tellers, self.arrangement, self.occasion, partial(self.batches, size), self.lists)

    async def batches(self, size: int, but: frozenset[bytes]) -> AsyncIterator[Batch]:
        ordered = sorted((packet for packet in self.packets if packet.tag not in but), key=lambda packet: packet.tag)
        for start in range(0, len(ordered), size):
            some = ordered[start : start + size]
            yield [[one.relayed(number).to_bytes() for one in some] for number in range(len(self.tellers))]

    def values(self, made: SlotSum) -> tuple[int, ...]:
        body = RoundSums(self.aggregator.study, 0, (made,)).to_bytes()
        return parse_round_sums(self.arrangement, self.aggregator.study, 0, body)[0].values


async def a_round(
    folder: Path, tellers: int = 2, minimum: int = 3, places: Sequence[Sequence[int]] = PLACES[:4]
) -> Round:
    aggregator, members = closed_study()
    study = aggregator.study
    links = [MemoryTeller(folder / str(number)) for number in range(tellers)]
    entries = [await link.entry(f"teller {number}", f"127.0.0.1:900{number}") for number, link in enumerate(links)]
    arrangement = Arrangement(minimum, tuple(entries), (a_sum(),))
    for link in links:
        link._manifests[study] = aggregator.manifest.to_bytes()
        link.session.countersign(study, arrangement.to_bytes(), aggregator.manifest.to_bytes())
    await share_keys(links, arrangement, study)
    made = Round(aggregator, links, arrangement, members)
    await hand_roll(links, arrangement, study, encode_chain(aggregator.chain), Bodies(*aggregator.bodies[1:4]))
    made.packets = [
        member.packet(arrangement, made.occasion, one) for member, one in zip(made.members, places, strict=False)
    ]
    return made


@pytest.mark.slow
@pytest.mark.parametrize("tellers", [2, 3, 4])
async def test_every_packet_is_summed(tmp_path: Path, tellers: int) -> None:
    made = await a_round(tmp_path, tellers)
    assert made.values(await made.summed()) == expected(PLACES[:4])
    assert made.tellers[0].calls == [
        "entry",
        "key-shares",
        *["key-share"] * (tellers - 1),
        "roll",
        "accepted",
        *["admit", "settle"] * 2,
        "list",
        "noise",
    ]


async def test_the_list_is_what_all_accepted(tmp_path: Path) -> None:
    made = await a_round(tmp_path)
    bad = made.packets[0]
    made.tellers[1].turned = lambda call, given: (
        [one for one in given if bad.tag not in one] if call == "admit" else given
    )
    summed = await made.summed()
    assert parse_list(summed.accepted, made.occasion).tags == tuple(sorted(one.tag for one in made.packets[1:]))
    assert made.values(summed) == expected(PLACES[1:4])


CALLS = ["accepted", "admit", "settle", "list", "noise"]


@pytest.mark.parametrize(("call", "one", "lost"), every(5, CALLS, [0, 1], ["away", "mute"]))
async def test_a_teller_may_be_away_at_any_call_and_come_back_restarted(
    tmp_path: Path, call: str, one: int, lost: str
) -> None:
    """Both processes begin anew; nothing is kept but the list and the tellers' journals."""
    made = await a_round(tmp_path)
    setattr(made.tellers[one], lost, lambda name: name == call)
    with pytest.raises(TellerAway, match=f"teller {one} does not answer"):
        await made.summed()
    setattr(made.tellers[one], lost, lambda _name: False)
    for teller in made.tellers:
        teller.restart()
    first = await made.summed()
    assert made.values(first) == expected(PLACES[:4])
    assert await made.summed() == first, "asked again, all say the same again"


@pytest.mark.parametrize(("call", "lost"), every(2, ["admit", "settle"], ["away", "mute"]))
async def test_a_lost_connection_costs_one_batch(tmp_path: Path, call: str, lost: str) -> None:
    """A teller goes in the middle of the third batch of one packet each. The packets before come to nobody again."""
    made = await a_round(tmp_path)
    came: Counter[bytes] = Counter()
    broken = iter([False, False, True])

    def counted(name: str, given: Any) -> Any:
        came.update(given if name == "admit" else ())
        return given

    made.tellers[0].turned = counted
    setattr(made.tellers[1], lost, lambda name: name == call and next(broken))
    with pytest.raises(TellerAway):
        await made.summed(1)
    setattr(made.tellers[1], lost, lambda _name: False)
    for teller in made.tellers:
        teller.restart()
    assert made.values(await made.summed(1)) == expected(PLACES[:4])
    ordered = sorted(made.packets, key=lambda packet: packet.tag)
    first, second, third, last = (came[packet.relayed(0).to_bytes()] for packet in ordered)
    assert (first, second, last) == (1, 1, 1) and third in (1, 2)


async def test_the_list_is_kept_before_a_teller_hears_of_it(tmp_path: Path) -> None:
    """A repeated round proposes the same one, whatever the packets are then."""
    made = await a_round(tmp_path)
    made.tellers[1].away = lambda call: call == "list"
    with pytest.raises(TellerAway):
        await made.summed()
    kept = made.lists.held[made.occasion]
    made.packets, made.tellers[1].away = made.packets[:3], lambda _call: False
    assert (await made.summed()).accepted == kept
    made.lists.held.clear()
    with pytest.raises(TellerRefuses, match="the list of this round is closed"):
        await made.summed()


async def test_too_few_accepted_packets_have_no_sum(tmp_path: Path) -> None:
    made = await a_round(tmp_path, places=PLACES[:2])
    with pytest.raises(NoSum, match=r"round 1 has no sum, .* too few packets") as ended:
        await made.summed()
    assert ended.value.why is Why.TOO_FEW and not made.lists.held and "larger group" in in_words(ended.value)
    assert not {"list", "noise"} & set(made.tellers[0].calls)


async def test_a_round_without_packets_has_no_sum(tmp_path: Path) -> None:
    made = await a_round(tmp_path, places=[])
    with pytest.raises(NoSum):
        await made.summed()


def second_list(made: Round) -> bytes:
    return AcceptedList(made.occasion, tuple(sorted(one.tag for one in made.packets[:3]))).to_bytes()


@pytest.mark.parametrize("seen_by", ["aggregator", "teller"])
async def test_two_lists_end_in_evidence_and_no_sum(
    tmp_path: Path, seen_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An aggregator that shows two lists, with its own eyes open and shut."""
    made = await a_round(tmp_path)
    other = second_list(made)
    made.tellers[1].turned = lambda call, given: other if call == "list" else given
    if seen_by == "teller":
        monkeypatch.setattr("aggregator.tellers.walk._demand_one_list", lambda *_: None)
    with pytest.raises(NoSum, match="signed two lists") as ended:
        await made.summed()
    assert parse_disagreement(ended.value.evidence, made.aggregator.study, made.arrangement).tellers in {(0, 1), (1, 0)}
    document = UnsummedRound(made.aggregator.study, 0, ended.value.why, ended.value.evidence)
    assert parse_unsummed(made.arrangement, made.aggregator.study, document.to_bytes()) == document
    made.tellers[1].turned = lambda _call, given: given
    with pytest.raises((NoSum, TellerRefuses)):
        await made.summed()


async def test_a_wrong_noisy_share_is_no_sum(tmp_path: Path) -> None:
    made = await a_round(tmp_path)
    shares = []
    made.tellers[0].lies = lambda call, answer: (shares.append(answer), answer)[1] if call == "noise" else answer
    made.tellers[1].lies = lambda call, answer: shares[0] if call == "noise" else answer
    with pytest.raises(TellerRefuses, match="noisy share is for another list"):
        await made.summed()


async def test_a_teller_that_refuses_is_named_with_its_reason(tmp_path: Path) -> None:
    made = await a_round(tmp_path)
    await finish(made.tellers, made.arrangement, made.aggregator.study)
    with pytest.raises(TellerRefuses, match=r"the teller teller 0 refuses: the study is over.*it is asked again"):
        await made.summed()


async def test_evidence_about_another_sum_ends_no_round(tmp_path: Path) -> None:
    """A teller that shows what it and a fellow signed for another round."""
    made = await a_round(tmp_path)
    other = evolve(made.occasion, round=7)
    signed = [ListSignature(other, at, bytes([at]) * 32).sign(one.session._key) for at, one in enumerate(made.tellers)]

    def shown(call: str, answer: object) -> object:
        if call == "noise":
            raise Disagreed(disagreement_of(signed[0], signed[1], made.arrangement))
        return answer

    made.tellers[0].lies = shown
    with pytest.raises(TellerRefuses, match="evidence about another sum"):
        await made.summed()


async def test_a_list_of_another_round_is_no_word_about_this_one(tmp_path: Path) -> None:
    made = await a_round(tmp_path)
    teller, key = made.tellers[1], made.tellers[1].session._key

    def of_another_round(call: str, answer: object) -> object:
        if call != "list":
            return answer
        digest = parse_list(made.lists.held[made.occasion], made.occasion).digest()
        return ListSignature(evolve(made.occasion, round=7), 1, digest).sign(key)

    teller.lies = of_another_round
    with pytest.raises(TellerRefuses, match=r"teller 1.*the list of another round or slot"):
        await made.summed()
    assert all("noise" not in one.calls for one in made.tellers)


async def test_a_disagreement_is_heard_before_any_other_fault(tmp_path: Path) -> None:
    made = await a_round(tmp_path, tellers=3)
    other = second_list(made)
    made.tellers[1].turned = lambda call, given: other if call == "list" else given
    made.tellers[2].away = lambda call: call == "noise"
    with pytest.raises(NoSum, match="signed two lists"):
        await made.summed()


async def test_two_lists_are_evidence_before_any_teller_is_asked_for_its_noise(tmp_path: Path) -> None:
    made = await a_round(tmp_path)
    other = second_list(made)
    made.tellers[1].turned = lambda call, given: other if call == "list" else given
    for teller in made.tellers:
        teller.away = lambda call: call == "noise"
    with pytest.raises(NoSum) as ended:
        await made.summed()
    assert sorted(parse_disagreement(ended.value.evidence, made.aggregator.study, made.arrangement).tellers) == [0, 1]
    assert all("noise" not in teller.calls for teller in made.tellers)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["admit", "settle", "list", "noise"])
async def test_a_teller_whose_disk_is_full_is_waited_for(tmp_path: Path, call: str) -> None:
    """Nothing of it was said, so the same sum is made once there is room. `test_teller_home` fills a real journal's
    file."""
    made = await a_round(tmp_path)

    def full(name: str, answer: object) -> object:
        if name == call:
            raise NoRoom("Make room on that disk")
        return answer

    made.tellers[1].turned = full
    with pytest.raises(TellerAway, match=r"teller 1 has trouble: .*Make room.*Nothing is lost"):
        await made.summed()
    made.tellers[1].turned = lambda _call, given: given
    assert made.values(await made.summed()) == expected(PLACES[:4])


@pytest.mark.parametrize("own", [True, False], ids=["another teller's home", "another key"])
async def test_a_teller_with_the_wrong_key_makes_no_sum(tmp_path: Path, own: bool) -> None:
    made = await a_round(tmp_path)
    honest = made.tellers[1]
    if own:
        made.tellers[1] = MemoryTeller(tmp_path / "other")
    else:
        made.tellers[1] = MemoryTeller(tmp_path / "1")
        made.tellers[1].session._key = SigningKey.generate()
    with pytest.raises(TellerRefuses, match="did not countersign" if own else "signature does not verify"):
        await made.summed()
    assert made.tellers[0]._journal is not None and made.tellers[0]._journal.end(made.occasion).list is None
    made.tellers[1] = honest
    assert made.values(await made.summed()) == expected(PLACES[:4])


def test_evidence_belongs_to_a_disagreement_alone() -> None:
    for why, evidence in ((Why.TOO_FEW, b"x"), (Why.DISAGREED, b"")):
        with pytest.raises(ValueError, match="evidence"):
            UnsummedRound(bytes(32), 0, why, evidence)
    assert issubclass(Conflict, Exception)


async def test_a_tag_that_one_teller_alone_accepted_is_not_on_the_list(tmp_path: Path) -> None:
    made = await a_round(tmp_path, tellers=3)
    alone = made.packets[0].tag
    for teller in made.tellers[1:]:
        teller.lies = lambda call, answer: answer - {alone} if call == "settle" else answer
    summed = await made.summed()
    assert parse_list(summed.accepted, made.occasion).tags == tuple(sorted(one.tag for one in made.packets[1:]))
    assert made.values(summed) == expected(PLACES[1:4])


async def test_no_list_below_the_minimum_is_ever_proposed(tmp_path: Path) -> None:
    made = await a_round(tmp_path, places=PLACES[:2])
    with pytest.raises(NoSum, match="2 accepted, 3 needed"):
        await made.summed()
    assert not made.lists.held and all("list" not in teller.calls for teller in made.tellers)
