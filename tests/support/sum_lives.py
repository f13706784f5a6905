"""Whole studies of exact sums in memory, with real tellers: their start, and peers that share one clock."""

from __future__ import annotations

from pathlib import Path

from anon.protocols.sum.standing import arrangement_of
from anon.sharing.statements import encode_countersignatures
from peer.app import PeerApp
from tests.support.fake_aggregator import FakeAggregator
from tests.support.sums import NAMES, sum_study
from tests.support.tellers import MANIFEST, World


def begun(folder: Path, design: str, head: str = "", minimum: int = 3) -> World:
    """Two tellers with offers, and the study that names them. `head`: further keys of the study file; its queries give
    many records then."""
    world = World(folder, None, None, [])  # type: ignore[arg-type]
    for number in range(2):
        world.restart(number)
    offers = [
        teller.offer(name, f"127.0.0.1:900{at}")
        for at, (name, teller) in enumerate(zip(NAMES, world.tellers, strict=True))
    ]
    said = "".join(
        f'[[tellers]]\nname = "{one.name}"\naddress = "{one.address}"\nentry = "{one.to_bytes().hex()}"\n'
        for one in offers
    )
    world.aggregator = FakeAggregator.with_study(sum_study(design, said, minimum, head))
    world.arrangement = arrangement_of(world.aggregator.manifest)
    arranged = world.arrangement.to_bytes()
    statements = [teller.countersign(world.study, arranged, MANIFEST) for teller in world.tellers]
    world.aggregator.publish("tellers", encode_countersignatures(world.study, statements))
    return world


async def together(peers: list[PeerApp], aggregator: FakeAggregator, until: int) -> None:
    """Every peer does what falls due, the earliest first: all have one clock."""
    while aggregator.clock() < until:
        due = [one for app in peers if (one := await app.step(aggregator.study)) is not None]
        aggregator.clock.seconds = min(max(aggregator.clock(), min(due, default=until)), until)
