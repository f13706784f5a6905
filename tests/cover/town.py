"""Real peers and a real aggregator in one process, on a clock that jumps from one due time to the next.

Each peer has a line of its own to the aggregator, which records what an observer of its network sees.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from attrs import define, evolve, field
from network import Clock, Running, begin, make_app, study_text

from aggregator.study import LiveStudy
from anon.answers import encode_answer
from anon.errors import Malformed, Unreachable
from anon.messages import parse_dummy, unpad, unseal
from anon.route import Answer
from anon.study.manifest import Window
from peer.app import PeerApp
from peer.home import PeerHome, Settings


@define
class Post:
    """One post as it left: to what, its bytes, when, and the answer's bytes if one came back."""

    what: str
    body: bytes = field(repr=False)
    at: float
    answer: bytes | None = None


@define
class Line:
    """One peer's route. `broken(what, time)`: the request gets nowhere. `mute(...)`: it arrives, the answer is lost."""

    live: LiveStudy
    clock: Clock
    broken: Callable[[str, float], bool] = lambda _what, _at: False
    mute: Callable[[str, float], bool] = lambda _what, _at: False
    says: Callable[[bytes], str | None] = lambda _body: None
    posts: list[Post] = field(factory=list)
    gets: list[tuple[str, float]] = field(factory=list)

    async def get(self, address: str, path: str, limit: int) -> Answer:
        what = path.split("/", 3)[3]
        self.gets.append((what, self.clock()))
        if self.broken(what, self.clock()):
            raise Unreachable("broken")
        if what == "heads":
            return Answer(200, self.live.heads())
        body = await self.live.document(int(what.removeprefix("documents/")))
        return Answer(404, b"") if body is None else Answer(200, body)

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Answer:
        what = path.split("/", 3)[3]
        post = Post(what, body, self.clock())
        self.posts.append(post)
        if self.broken(what, post.at):
            raise Unreachable("broken")
        takes = {"enrol": self.live.enrol, "withdraw": self.live.withdraw, "packets": self.live.submit}
        answer = encode_answer(self.says(body) or await takes[what](body))
        if self.mute(what, post.at):
            raise Unreachable("mute")
        post.answer = answer
        return Answer(200, answer)

    def packets(self) -> list[Post]:
        """Every post to the door of packets."""
        return [one for one in self.posts if one.what == "packets"]

    def connections(self, window: Window) -> list[float]:
        """When each different body first left for this window."""
        first: dict[bytes, float] = {}
        for one in self.packets():
            first.setdefault(one.body, one.at)
        return sorted(at for at in first.values() if window.opens <= at < window.closes)


@define
class Town:
    """An aggregator with one study and its peers."""

    running: Running
    folder: Path
    peers: list[PeerApp] = field(factory=list)
    lines: list[Line] = field(factory=list)

    @property
    def live(self) -> LiveStudy:
        return self.running.live

    @property
    def windows(self) -> tuple[Window, ...]:
        return self.live.manifest.windows

    async def settle_in(self, count: int, **settings: object) -> None:
        """So many peers join."""
        for number in range(count):
            home = PeerHome(self.folder / f"peer-{number}")
            home.write_settings(evolve(Settings(), **settings))
            line = Line(self.live, self.running.clock)
            app = self._app(home, line)
            app.set_policy(evolve(app.policy(), minimum_cohort=2))
            await app.join(self.running.invites[number], self.live.manifest.epsilon)
            self.peers.append(app)
            self.lines.append(line)

    def restart(self, number: int) -> None:
        """As after a crash: everything that was not stored is gone."""
        home = PeerHome(self.folder / f"peer-{number}")
        self.peers[number].close()
        self.peers[number] = self._app(home, self.lines[number])

    def _app(self, home: PeerHome, line: Line) -> PeerApp:
        clock = self.running.clock

        async def sleep(seconds: float) -> None:
            clock.time += max(0.0, seconds)

        return PeerApp(home, lambda: line, clock, os.urandom, sleep=sleep)

    async def go_on(self, until: float = 1e12) -> None:
        """Everybody does what is due, in the order of time, up to `until`."""
        study, clock = self.live.study, self.running.clock
        due: dict[int, float] = dict.fromkeys(range(len(self.peers)), clock())
        for _ in range(100_000):
            news = clock() + await self.running.app.tick()
            first = min(due, key=lambda number: due[number], default=None)
            when = min(news, due[first] if first is not None else news)
            if when > until or first is None:
                clock.time = max(clock.time, min(until, when if first is None else until))
                return
            clock.time = max(clock.time, when)
            if news <= due[first]:
                continue
            again = await self.peers[first].step(study)
            if again is None:
                del due[first]
            else:
                due[first] = again
        raise AssertionError("the town does not come to rest")

    def opened(self, body: bytes) -> bytes:
        """The plaintext of a sealed packet."""
        rules = self.live.door.rules
        return unpad(unseal(body, rules.sealing_key), rules.plain_bytes)

    def is_dummy(self, body: bytes) -> bool:
        """Whether a post carries cover."""
        try:
            parse_dummy(self.opened(body))
        except Malformed:
            return False
        return True


def with_cover(design: str, connections: int) -> str:
    """A study file with cover traffic; 0: without."""
    cover = f"\n[cover]\nconnections = {connections}\n" if connections else ""
    return study_text(design) + cover


@asynccontextmanager
async def town(folder: Path, design: str = "cuts", connections: int = 4) -> AsyncIterator[Town]:
    """A published study."""
    clock = Clock()
    async with make_app(folder / "aggregator", clock) as app:
        here = Town(await begin(app, clock, with_cover(design, connections)), folder)
        yield here
        for one in here.peers:
            one.close()
