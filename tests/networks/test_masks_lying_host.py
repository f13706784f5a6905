"""A host shows one member of a sum under masks a bad page: it sends no vector, pays nothing, and the others go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from attrs import evolve

from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.board import read_page
from anon.protocols.sum.masks.layout import masking_of
from anon.protocols.sum.masks.masking import KEYS, SHARES, VECTOR, came
from anon.study.manifest import Manifest
from anon.wire.packets import PublishedPacket
from peer.rules.lifecycle import State
from tests.networks.test_letters_lying_host import VICTIM, Lie, altered, lied_to
from tests.support.letters_world import after, go_on, surveys_sent
from tests.support.masks_study import AVERAGING, masks_study, members
from tests.support.sums import many
from tests.support.tries import soaked
from tests.support.world import published

pytestmark = pytest.mark.slow
RECORDS = 5
Packets = list[PublishedPacket]


def rows(number: int) -> list[tuple[object, ...]]:
    spring = Random(number)
    return [(day, spring.uniform(0, 100), spring.uniform(0, 12), day % 2) for day in range(RECORDS)]


def _round(packet: PublishedPacket, number: int) -> PublishedPacket:
    return evolve(packet, survey=number, occasion=evolve(packet.occasion, round=number, slot=number))


def _page(change: Callable[[Packets], Packets]) -> Callable[[Manifest, bytes], Lie]:
    return lambda study, _before: altered(study, SHARES, change)


LIES: dict[str, Callable[[Manifest, bytes], Lie]] = {
    "the page before, replayed": lambda _study, before: lambda _body: before,
    "cut": lambda _study, _before: lambda body: body[:-1],
    "cut in two": lambda _study, _before: lambda body: body[: len(body) // 2],
    "a packet replayed": _page(lambda packets: [packets[0], packets[0], *packets[2:]]),
    "a letter cut": _page(lambda packets: [evolve(packets[0], report=packets[0].report[:-1]), *packets[1:]]),
    "for another round": _page(lambda packets: [_round(packets[0], VECTOR), *packets[1:]]),
    "of another round": _page(lambda packets: [_round(packet, KEYS) for packet in packets]),
    "of another study": _page(
        lambda packets: [evolve(one, occasion=evolve(one.occasion, study=bytes(32))) for one in packets]
    ),
}


@pytest.mark.parametrize("name", soaked(2, LIES))
async def test_a_bad_page_of_shares_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(DiscreteGaussian, "vector", lambda _self, length, _random: [0] * length)
    text = masks_study(AVERAGING, many(RECORDS, "person"))
    async with members(tmp_path, text, [rows(number) for number in range(6)]) as world:
        study = world.live.manifest
        await go_on(world, until=after(world, KEYS))
        before = (await published(world.live))["page", KEYS]
        lied_to(world, {("page", SHARES): LIES[name](study, before)})
        await go_on(world)
        (status,) = world.peers[VICTIM].status()
        assert (status.state, status.spent) == (State.STOPPED, 0) and "a page of this study" in status.reason, status
        assert surveys_sent(world, VICTIM) == [KEYS, SHARES]
        bodies = await published(world.live)
        pages = {part: read_page(study, part, body) for (kind, part), body in bodies.items() if kind == "page"}
        assert world.live.state == "published" and len(came(pages, masking_of(study.part).least)) == 5
        spent = [app.status()[0].spent for number, app in enumerate(world.peers) if number != VICTIM]
        assert spent == [study.epsilon] * 5
