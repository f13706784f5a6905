"""A whole study of exact sums in memory: an aggregator that may begin anew, tellers that may be away, real peers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from attrs import define

from aggregator.app import AggregatorApp
from aggregator.audit import AuditResult, audit_documents
from aggregator.rules.lifecycle import Phase
from aggregator.study.live import LiveStudy
from anon.sharing.arrangement import Arrangement
from anon.sharing.round_document import parse_round_sums
from anon.transparency.documents import encode_chain, sign_head
from examples.testing import Tables, all_contents
from tests.support.clock import Clock
from tests.support.protocols import PROTOCOLS
from tests.support.sums import TABLES, sum_study
from tests.support.teller_links import MemoryTeller
from tests.support.world import World, begin

NAMES = ("clinic", "students")
TELLERS = "".join(
    f'[[tellers]]\nname = "{name}"\naddress = "127.0.0.1:900{number}"\n' for number, name in enumerate(NAMES)
)


def short(text: str) -> str:
    """The study in minutes."""
    return text.replace('"1h"', '"100s"').replace('"10m"', '"20s"')


STUDY = short(sum_study(TABLES, TELLERS, minimum=3))


@define
class Study:
    """A study and its tellers, under an aggregator that may begin anew."""

    world: World
    tellers: list[MemoryTeller]
    folder: Path

    @property
    def live(self) -> LiveStudy:
        return self.world.live

    async def work(self, seconds: float) -> None:
        """One tick of the aggregator: the clock moves on while no teller is at work, and else that work ends first."""
        assert self.live.tellers is not None
        task = self.live.tellers.job._task
        if task is not None:
            await asyncio.wait({task})
        self.world.clock.seconds += 0 if task is not None else seconds
        await self.world.app.tick()

    async def until(self, phase: Phase, seconds: float = 1.0) -> None:
        """Let the aggregator work until the study has come to a phase."""
        for _ in range(2000):
            if self.live.phase is phase:
                return
            await self.work(seconds)
        raise AssertionError(f"{self.live.phase}: {self.live.trouble}")

    async def until_trouble(self) -> None:
        """Let the aggregator work until it says what it waits for."""
        for _ in range(2000):
            await self.work(0.2)
            if self.live.phase is Phase.ROUND and self.live.trouble:
                return
        raise AssertionError("no trouble")

    async def published(self) -> dict[tuple[str, int], bytes]:
        return {(one.head.kind, one.head.part): await self.live.body_of(one.head) for one in self.live.chain}

    async def audited(self, changes: dict[tuple[str, int], bytes] | None = None) -> AuditResult:
        """As if the aggregator had published other bodies, all properly signed."""
        chain, numbered, key = [], {}, self.world.app.home.signing_key
        for place, body in ((await self.published()) | (changes or {})).items():
            numbered[len(chain)] = body
            chain.append(sign_head(key, self.live.study, chain, *place, body))
        return audit_documents(encode_chain(chain), numbered, contents=await all_contents(self.live))

    async def restart(self) -> None:
        """The aggregator's process ends, and another begins with what is on the disk. So do the tellers' processes."""
        await self.world.app.__aexit__()
        for teller in self.tellers:
            teller.restart()
        self.world.app = await app_of(self.folder / "home", self.world.clock, self.tellers).__aenter__()
        self.world.live = self.world.app.study(self.live.study)

    async def shares_kept(self) -> int:
        """Sealed shares in the aggregator's store."""
        return sum([1 async for _ in self.world.app._tools.packets.relayed(self.live.study, 0, 0, 0)])

    @property
    def arrangement(self) -> Arrangement:
        assert self.live.tellers is not None
        return self.live.tellers.arrangement

    async def sums(self) -> tuple[int, ...]:
        body = (await self.published())["sums", 0]
        return parse_round_sums(self.arrangement, self.live.study, 0, body)[0].values


def app_of(home: Path, clock: Clock, tellers: list[MemoryTeller]) -> AggregatorApp:
    return AggregatorApp(
        home, clock, processes=0, link_to=lambda address, *_: tellers[int(address[-1])], protocols=PROTOCOLS
    )


@asynccontextmanager
async def a_study(
    folder: Path, peers: int = 4, text: str = "", names: Sequence[str] = NAMES, people: Sequence[Tables] = ()
) -> AsyncIterator[Study]:
    """Published, and joined by so many. `people`: the data of the first of them."""
    clock = Clock()
    tellers = [MemoryTeller(folder / name) for name in names]
    app = await app_of(folder / "home", clock, tellers).__aenter__()
    world = await begin(app, clock, text or STUDY)
    try:
        for number, tables in enumerate(people):
            world.bring(number, tables)
        await world.settle_in(peers)
        yield Study(world, tellers, folder)
    finally:
        for peer in world.peers:
            peer.close()
        await world.app.__aexit__()


async def all_sent(study: Study) -> None:
    """Every peer has sent, and the window is about to close."""
    closes = study.live.rounds[-1].window.closes
    await study.world.go_on(until=closes - 1)
