"""A whole study of the toy `letters` in memory: members that go away, come back and are killed, and what is seen of
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import define, field

from aggregator.audit import audit_documents
from aggregator.audit.result import AuditResult
from anon.protocols.board import read_page
from anon.protocols.models.rows import PublishedRows
from anon.protocols.registry import Protocols
from anon.transparency.documents import encode_chain, sign_head
from anon.wire.packets import Packet
from examples.testing import all_contents
from peer.data.importing import import_rows
from peer.network import client
from peer.rules.packet_lifecycle import Status
from peer.store.database import store_file
from peer.store.records import OutboxEntry
from tests.support import letters
from tests.support.clock import Clock
from tests.support.letters_study import PROTOCOLS, STUDY
from tests.support.packets import packet_in
from tests.support.world import World, in_memory, published

LETTERS = (letters.KEYS, letters.SHARES, letters.VECTOR, letters.CAME, letters.OPENING)
Bodies = dict[tuple[str, int], bytes]


def own_data(path: Path, answer: int | None) -> None:
    """The owner's table: tired or not; without a value, no table."""
    if answer is None:
        return
    import_rows(path, "person", ("age", "cups", "tired"), [(30, 2, answer)])


@asynccontextmanager
async def members(
    folder: Path, answers: Sequence[int | None], text: str = STUDY, protocols: Protocols = PROTOCOLS
) -> AsyncIterator[World]:
    """A study in which members with these answers take part."""
    async with in_memory(folder / "home", text, protocols=protocols) as world:
        await world.settle_in(len(answers))
        for number, answer in enumerate(answers):
            own_data(world._home(number).data_path, answer)
        yield world


class Killed(BaseException):
    """A member's process ends here."""


@define
class Killer:
    """Kills one member at a point of its store or its sending. `armed`: a member, the point's name, and from when."""

    clock: Clock
    armed: dict[int, tuple[str, float]] = field(factory=dict)
    deaths: list[tuple[int, str]] = field(factory=list)
    stepping: int = -1

    def crash_point(self, name: str) -> None:
        """In place of the program's own."""
        point, since = self.armed.get(self.stepping, ("", 0.0))
        if point in (name, "any") and self.clock() >= since:
            del self.armed[self.stepping]
            self.deaths.append((self.stepping, name))
            raise Killed


def killer(world: World, monkeypatch: pytest.MonkeyPatch) -> Killer:
    """One that waits to be armed."""
    found = Killer(world.clock)
    for module in (store_file, client):
        monkeypatch.setattr(module, "crash_point", found.crash_point)
    return found


async def go_on(
    world: World, until: float = 1e12, away: Mapping[int, float] = {}, kills: Killer | None = None
) -> None:
    """As `World.go_on`. A member that goes `away` does nothing from that time on; one that is killed starts again."""
    never = float("inf")
    due: dict[int, float] = dict.fromkeys(range(len(world.peers)), world.clock())
    for _ in range(100_000):
        news = world.clock() + await world.app.tick()
        due = {number: at for number, at in due.items() if at < away.get(number, never)}
        first = min(due, key=lambda number: due[number], default=None)
        when = min(news, due[first] if first is not None else news)
        if when > until or (first is None and world.live.state in ("published", "ended")):
            world.clock.seconds = max(world.clock(), min(until, when))
            return
        world.clock.seconds = max(world.clock(), when)
        if first is None or news <= due[first]:
            continue
        again = await _stepped(world, first, kills)
        due.pop(first) if again is None else due.update({first: again})
    raise AssertionError("the world does not come to rest")


async def _stepped(world: World, number: int, kills: Killer | None) -> float | None:
    if kills is not None:
        kills.stepping = number
    try:
        return await world.peers[number].step(world.live.study)
    except Killed:
        world.restart(number)
        return world.clock()
    finally:
        if kills is not None:
            kills.stepping = -1


def after(world: World, turn: int) -> float:
    """When the round is over and the next has not begun."""
    return world.live.rounds[turn].window.closes + 1.0


def sent(world: World, number: int) -> list[Packet]:
    """The packets that left one home, in order, repeated ones once."""
    bodies = dict.fromkeys(request.body for request in world.routes[number].packets())
    return [packet_in(world.live.manifest, world.opened(body)) for body in bodies if body is not None]


def surveys_sent(world: World, number: int) -> list[int]:
    """The surveys that a home answered, in order of number."""
    return sorted(packet.survey for packet in sent(world, number))


def outbox(world: World, number: int) -> list[OutboxEntry]:
    """All that a home decided."""
    return world.peers[number].store.outbox(world.live.study)


def spent(world: World, number: int) -> int:
    """The charge of a home for the study."""
    (status,) = world.peers[number].status()
    return int(status.spent)


def due_for(world: World, number: int) -> int:
    """The charge of the packets that were journalled: the surveys that stand on the record, and no others."""
    charged = [entry for entry in outbox(world, number) if entry.status is not Status.MISSED]
    read = [entry.survey for entry in charged if entry.survey in (letters.ROWS, letters.VECTOR)]
    return sum(int(world.live.manifest.survey(survey).epsilon) for survey in read)


def learned(bodies: Bodies) -> tuple[str, ...]:
    """The published row: how many are tired, of how many, and the posted rows."""
    rows = PROTOCOLS.result(bodies[letters.RESULT])
    assert isinstance(rows, PublishedRows)
    return tuple(rows.rows[0])


async def bodies_of(world: World) -> Bodies:
    """Every document."""
    return await published(world.live)


async def audited(world: World, bodies: Bodies) -> AuditResult:
    """The audit of these documents, in a chain of their own that the aggregator signed from the start."""
    chain: list = []
    for place, body in bodies.items():
        chain.append(sign_head(world.live.tools.home.signing_key, world.live.study, chain, *place, body))
    held = await all_contents(world.live)
    numbers = {place: head.head.number for head in world.live.chain if (place := (head.head.kind, head.head.part))}
    places = list(bodies)

    def contents(number: int, bucket: int) -> bytes | None:
        return held(numbers[places[number]], bucket) if places[number] in numbers else None

    numbered = dict(enumerate(bodies.values()))
    return audit_documents(encode_chain(chain), numbered, contents=contents, protocols=PROTOCOLS)


def demand_promises(world: World) -> None:
    """No home sent two packets for one slot, nor one that it had not journalled; each paid for what it read."""
    for number in range(len(world.peers)):
        posts, entries = Counter(packet.occasion.slot for packet in sent(world, number)), outbox(world, number)
        assert all(many == 1 for many in posts.values()), f"home {number} sent two packets for a slot"
        assert all(entry.status is not Status.MISSED for entry in entries if entry.slot in posts)
        assert spent(world, number) == due_for(world, number) == sum(entry.epsilon for entry in entries)


def expected(bodies: Bodies, world: World, answers: Sequence[int | None]) -> tuple[str, str]:
    """The sum and the number of those whose number is on the page of numbers."""
    there = {packet.to_bytes() for packet in read_page(world.live.manifest, 2, bodies["page", 2]).packets}
    came = [
        answers[number] or 0
        for number in range(len(answers))
        if any(packet.published().to_bytes() in there for packet in sent(world, number))
    ]
    return str(sum(came)), str(len(came))
