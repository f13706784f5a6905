"""Random lives of members of the toy `letters`: they go, are killed, start again, pause, and their networks lose and
delay.

Each life is lived twice, with other data: whatever can be seen from outside is the same but for sealed bytes. In no
life does chance decide a promise, so there is no false alarm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import define, evolve, field, frozen

from anon.study.manifest import Manifest
from examples.testing import MemoryRoute, Request
from peer.app import PeerApp
from peer.data.evaluate import Evaluate, at_once
from peer.store.home import Settings
from tests.attacks.soak_pieces import piece
from tests.support.letters_world import (
    PROTOCOLS,
    STUDY,
    Killed,
    Killer,
    audited,
    bodies_of,
    demand_promises,
    expected,
    killer,
    learned,
    own_data,
)
from tests.support.observed import stream
from tests.support.world import World, in_memory

pytestmark = pytest.mark.slow
MEMBERS, STUDIES, PIECES = 5, 200, 20
Seen = tuple[Any, ...]


@define
class RoughRoute(MemoryRoute):
    """A route that takes so many seconds for an exchange."""

    slow: Callable[[str, float], float] = lambda _what, _at: 0.0

    def _left(self, path: str, body: bytes | None) -> Request:
        self.clock.seconds += self.slow(path.split("/", 3)[3], self.clock())
        return super()._left(path, body)


@define
class LivingWorld(World):
    """A world whose members draw from streams of their own, which begin anew with each start."""

    starts: Counter[int] = field(factory=Counter)
    evaluates: dict[int, Evaluate] = field(factory=dict)

    def _peer(self, number: int) -> PeerApp:
        route = self.routes[number]
        name = f"{self.seed} {number} {self.starts[number]}".encode()
        self.starts[number] += 1
        return PeerApp(
            self._home(number), lambda: route, self.clock, stream(name, []), sleep=self.clock.sleep,
            evaluate=self.evaluates.get(number, at_once), protocols=PROTOCOLS,
        )  # fmt: skip


@frozen
class Fate:
    """All that befalls one member. Drawn from the seed and the timetable alone."""

    off: tuple[tuple[float, float], ...]
    kills: tuple[float, ...]
    restarts: tuple[float, ...]
    pauses: tuple[tuple[float, float], ...]
    lost: float
    slow: float

    @classmethod
    def drawn(cls, draw: Random, study: Manifest) -> Fate:
        """Most members have little of it."""
        begins, ends = study.timetable.enrol_closes, study.timetable.ends

        def times(chance: float) -> tuple[float, ...]:
            return tuple(draw.uniform(begins, ends) for _ in range(3) if draw.random() < chance)

        def spans(chance: float, longest: float) -> tuple[tuple[float, float], ...]:
            return tuple((at, at + draw.uniform(0, longest)) for at in times(chance))

        off = spans(0.08, ends - begins)
        rough = draw.random() < 0.3
        return cls(off, times(0.15), times(0.2), spans(0.1, 3600.0), 0.15 * rough, 20.0 * (draw.random() < 0.2))


def rough(seed: int, number: int, fate: Fate, route: RoughRoute) -> None:
    """The loss of an exchange follows from its time and place alone."""

    def odds(kind: str) -> Callable[[str, float], bool]:
        return lambda what, at: Random(f"{seed} {number} {kind} {what} {at}").random() < fate.lost

    route.broken, route.mute = odds("broken"), odds("mute")
    route.slow = lambda what, at: fate.slow * Random(f"{seed} {number} slow {what} {at}").random() ** 4


async def live(world: LivingWorld, fates: list[Fate], kills: Killer) -> None:
    """Everybody's life to the study's end."""
    never = 1e12
    events = sorted(
        (at, number, kind, until)
        for number, fate in enumerate(fates)
        for kind, spans in (("pause", fate.pauses), ("restart", [(at, never) for at in fate.restarts]))
        for at, until in spans
    )
    coming = [list(fate.kills) for fate in fates]
    due = dict.fromkeys(range(len(fates)), world.clock())
    for _ in range(100_000):
        news = world.clock() + await world.app.tick()
        number = min(due, key=lambda each: due[each], default=None)
        when = min(news, due[number] if number is not None else never, events[0][0] if events else never)
        if number is None and not events and world.live.state in ("published", "ended"):
            return
        world.clock.seconds = max(world.clock(), when)
        if events and events[0][0] <= when:
            _happens(world, due, *events.pop(0))
        elif number is not None and due[number] < news:
            woken = next((end for begin, end in fates[number].off if begin <= when < end), None)
            again = await _step(world, number, kills, coming[number]) if woken is None else woken
            due.pop(number) if again is None else due.update({number: again})
    raise AssertionError("a life without end")


def _happens(world: LivingWorld, due: dict[int, float], at: float, number: int, kind: str, until: float) -> None:
    if kind == "restart":
        world.restart(number)
    else:
        world.peers[number].pause(until)
    if number in due:
        due[number] = at


async def _step(world: LivingWorld, number: int, kills: Killer, coming: list[float]) -> float | None:
    if coming and min(coming) <= world.clock():
        coming.remove(min(coming))
        kills.armed[number] = ("any", 0.0)
    kills.stepping = number
    try:
        return await world.peers[number].step(world.live.study)
    except Killed:
        world.restart(number)
        return world.clock()
    finally:
        kills.stepping = -1


async def lived(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch, other: bool = False) -> list[Seen]:
    """One study of five lives, and what can be seen of each. `other`: with other data."""
    draw = Random(seed)
    answers = [draw.randrange(2) for _ in range(MEMBERS)]
    answers = [1 - answer for answer in answers] if other else answers
    async with in_memory(folder / "home", STUDY, protocols=PROTOCOLS) as made:
        world = LivingWorld(made.app, made.live, made.clock, made.invites, PROTOCOLS, seed)
        fates = [Fate.drawn(draw, world.live.manifest) for _ in answers]
        for number, answer in enumerate(answers):
            await joins(world, number)
            rough(seed, number, fates[number], world.routes[number])  # type: ignore[arg-type]
            own_data(world._home(number).data_path, answer)
        await live(world, fates, kills := killer(world, monkeypatch))
        await demand_all(world, answers)
        return [seen_of(world, number, kills) for number in range(MEMBERS)]


async def joins(world: LivingWorld, number: int) -> None:
    """One more member."""
    world._home(number).write_settings(Settings())
    world.routes.append(RoughRoute(world.live, world.clock))
    world.peers.append(world._peer(number))
    world.peers[-1].set_policy(evolve(world.peers[-1].policy(), minimum_cohort=2))
    await world.peers[-1].join(world.invites[number], world.live.manifest.epsilon)


async def demand_all(world: LivingWorld, answers: list[int]) -> None:
    """No promise was broken, and a sum that is published is right to the unit."""
    demand_promises(world)
    bodies = await bodies_of(world)
    assert (await audited(world, bodies)).ok, (await audited(world, bodies)).lines()
    if ("rows", 0) in bodies:
        assert learned(bodies)[:2] == expected(bodies, world, answers)
    else:
        assert world.live.state == "ended"


def seen_of(world: LivingWorld, number: int, kills: Killer) -> Seen:
    """All that can be seen of a member from outside, and where it died."""
    requests = [(one.what, one.at, len(one.body or b""), one.answer) for one in world.routes[number].requests]
    (status,) = world.peers[number].status()
    receipts = [(slot.slot, slot.survey, slot.epsilon, str(slot.status), slot.word) for slot in status.slots]
    deaths = [point for died, point in kills.deaths if died == number]
    return requests, receipts, status.state, status.reserved, status.spent, deaths


async def both_ways(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> list[Seen]:
    """A study, and the same with other data."""
    with monkeypatch.context() as patch:
        seen = await lived(folder / f"{seed}", seed, patch)
        assert seen == await lived(folder / f"{seed}-other", seed, patch, other=True)
    return seen


async def test_ten_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deaths = 0
    for seed in range(2):
        deaths += sum(len(seen[-1]) for seen in await both_ways(tmp_path, seed, monkeypatch))
    assert deaths >= 1


@pytest.mark.soak
@pytest.mark.parametrize("number", range(PIECES))
async def test_a_thousand_lives(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    each = STUDIES // PIECES
    with piece(pytestconfig, "letter-lives", number, PIECES):
        for seed in range(100 + number * each, 100 + (number + 1) * each):
            await both_ways(tmp_path, seed, monkeypatch)
