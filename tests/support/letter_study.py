"""A whole study of the toy `letters` in memory: members that go away, come back and are killed, and what is seen of
them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from aggregator.audit import audit_documents
from aggregator.audit.result import AuditResult
from anon.protocols.models.rows import PublishedRows
from anon.transparency.documents import encode_chain, sign_head
from anon.wire.packets import Packet
from peer.data.importing import import_rows
from peer.rules.packet_lifecycle import Status
from peer.run.context import StudyRun
from peer.store.records import OutboxEntry
from tests.support import letters
from tests.support.packets import packet_in
from tests.support.protocols import with_toy
from tests.support.world import World, in_memory, published

PROTOCOLS = with_toy(letters.PROTOCOL)
STUDY = """
version = 1
title = "Who is tired"
purpose = "To count exactly, and to see no single answer."
contact = "nobody@example.org"
[tables]
person = ["age", "cups", "tired"]
[label]
name = "tired"
description = "You are tired."
query = "SELECT tired FROM person"
positive = [1]
negative = [0]
missing = "negative"
[[features]]
name = "age"
kind = "numeric"
description = "Your age."
query = "SELECT age FROM person"
missing = 0
range = [0, 80]
cuts = [40]
[design]
kind = "letters"
least = 3
[schedule]
enrol = "60m"
settle = "20m"
collect = "60m"
[cohort]
minimum = 3
maximum = 8
admission = "invite"
"""
LETTERS = (letters.KEYS, letters.SHARES, letters.VECTOR, letters.CAME, letters.OPENING)
Bodies = dict[tuple[str, int], bytes]


def own_data(path: Path, answer: int | None) -> None:
    """The owner's table: tired or not; without a value, no table."""
    if answer is None:
        return
    import_rows(path, "person", ("age", "cups", "tired"), [(30, 2, answer)])


@asynccontextmanager
async def members(folder: Path, answers: Sequence[int | None], text: str = STUDY) -> AsyncIterator[World]:
    """A study in which members with these answers take part."""
    async with in_memory(folder / "home", text, protocols=PROTOCOLS) as world:
        await world.settle_in(len(answers))
        for number, answer in enumerate(answers):
            own_data(world._home(number).data_path, answer)
        yield world


async def go_on(world: World, until: float = 1e12, away: Mapping[int, float] = {}) -> None:
    """As `World.go_on`. A member that goes `away` does nothing from that time on."""
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
        again = await world.peers[first].step(world.live.study)
        due.pop(first) if again is None else due.update({first: again})
    raise AssertionError("the world does not come to rest")


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


def audited(world: World, bodies: Bodies) -> AuditResult:
    """The audit of these documents, in a chain of their own that the aggregator signed from the start."""
    chain: list = []
    for place, body in bodies.items():
        chain.append(sign_head(world.live.tools.home.signing_key, world.live.study, chain, *place, body))
    return audit_documents(encode_chain(chain), dict(enumerate(bodies.values())), protocols=PROTOCOLS)


def run_of(world: World, number: int) -> StudyRun:
    """What a home remembers of its study."""
    return world.peers[number]._following._runners[world.live.study]._run  # type: ignore[no-any-return,attr-defined]
