"""Whole studies in memory, for those who write a protocol: `from anonml import testing`.

    protocols = testing.with_protocol(MY_PROTOCOL)
    people = [{"person": [{"age": 30 + 3 * number, "cups": 2, "tired": 1}]} for number in range(8)]
    outcome = testing.run(STUDY, people, tmp_path, protocols, seed=1)
    assert outcome.audit.ok and outcome.results["rows", 0].rows == (("age", "30", "40"),)

The aggregator is the real one, and so is each peer: consent, ledger, journal, tokens, packets and sealing. A call takes
the place of each request, and a clock jumps from one due time to the next. Studies with tellers are left out.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from random import Random
from typing import Any, Self

from attrs import define, evolve, field, frozen

from aggregator.app import AggregatorApp
from aggregator.audit import AuditResult, audit_documents
from aggregator.audit.buckets import Contents
from aggregator.study.live import LiveStudy
from anon.errors import Malformed, Unreachable
from anon.ldp import RandomBytes
from anon.protocols.charge import Measure
from anon.protocols.contract import Place, Result
from anon.protocols.registry import Protocols, charge_of, protocol_of
from anon.route import Response
from anon.study.given import NONE_GIVEN
from anon.study.manifest import Manifest, Window
from anon.tables.streams import Cell
from anon.transparency.documents import encode_chain
from anon.transparency.together import HeadGroup
from anon.wire.invite import Invite
from anon.wire.replies import encode_reply
from examples.clock import Clock
from examples.protocols import PROTOCOLS, with_protocol
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.data.importing import import_rows
from peer.rules.lifecycle import State
from peer.rules.limits import BudgetLimit
from peer.store.home import PeerHome, Settings

__all__ = ["PROTOCOLS", "MemoryRoute", "Outcome", "StudyInMemory", "run", "run_study", "with_protocol"]

ADDRESS = "127.0.0.1:1"
"""The address that invites name; nothing listens there."""
NONE_AWAY: Mapping[int, float] = {}
Tables = Mapping[str, Sequence[Mapping[str, Cell]]]
"""A person's data: each table by its name, as rows that have the same columns."""


@frozen
class Outcome:
    """The end of a study."""

    manifest: Manifest
    documents: Mapping[Place, bytes] = field(repr=False)
    """All that the aggregator published."""
    results: Mapping[Place, Result]
    """Of these the results, read by the study's protocol."""
    audit: AuditResult
    states: tuple[State, ...]
    """The place that each peer came to; `State.FINISHED` where it found its packets and the results in order."""


def run(
    text: str,
    people: Sequence[Tables],
    home: Path,
    protocols: Protocols,
    seed: int | None = None,
    given: Mapping[str, bytes] = NONE_GIVEN,
) -> Outcome:
    """Run a study file's whole study, where no event loop runs; see `run_study`."""
    return asyncio.run(run_study(text, people, home, protocols, seed, given))


async def run_study(
    text: str,
    people: Sequence[Tables],
    home: Path,
    protocols: Protocols,
    seed: int | None = None,
    given: Mapping[str, bytes] = NONE_GIVEN,
) -> Outcome:
    """A study file's whole study, in which each of `people` agrees to what it costs; then its audit.

    Homes are made below `home`, an empty folder. `given`: the study's public documents, by name. A `seed` repeats all
    draws of both sides, but for those of `lay_out`. Raises `Malformed` or `Refused` as publishing and joining do.
    """
    clock = Clock()
    random_bytes = _drawing(seed, "aggregator")
    async with AggregatorApp(home / "aggregator", clock, random_bytes, processes=0, protocols=protocols) as app:
        study = await StudyInMemory.begin(app, clock, text, len(people), given, protocols, seed)
        try:
            for number, tables in enumerate(people):
                study.bring(number, tables)
            await study.settle_in(len(people))
            await study.go_on()
            return await study.outcome()
        finally:
            study.close()


def _drawing(seed: int | None, who: str) -> RandomBytes:
    """The system's generator; with a seed one that repeats itself, which no real peer may have."""
    return os.urandom if seed is None else Random(f"{seed} {who}").randbytes


async def published(live: LiveStudy) -> dict[tuple[str, int], bytes]:
    """Every document by kind and part."""
    return {(one.head.kind, one.head.part): await live.body_of(one.head) for one in live.chain}


async def all_contents(live: LiveStudy) -> Contents:
    """Every bucket that an export has, for `audit_documents`."""
    heads = [signed.head for signed in live.chain]
    found = {(head.number, bucket): content for head in heads async for bucket, content in live.contents(head)}
    return lambda number, bucket: found.get((number, bucket))


@define
class Request:
    """One request as it left: to what, when, a post's bytes, and the answer's bytes if one came back to it."""

    what: str
    at: float
    body: bytes | None = field(default=None, repr=False)
    answer: bytes | None = None


@define
class MemoryRoute:
    """One peer's route onto a study. Where `broken(what, time)`, a request gets nowhere; where `mute`, its answer."""

    live: LiveStudy
    clock: Clock
    broken: Callable[[str, float], bool] = lambda _what, _at: False
    mute: Callable[[str, float], bool] = lambda _what, _at: False
    says: Callable[[bytes], str | None] = lambda _body: None
    requests: list[Request] = field(factory=list)

    async def get(self, address: str, path: str, limit: int) -> Response:
        """See `Route`."""
        what = self._left(path, None).what
        if what == "heads":
            return Response(200, self.live.heads())
        if what.startswith("heads/"):
            pieces = await self.live.served_together(HeadGroup(what.removeprefix("heads/")))
            return Response(200, b"".join(pieces)) if pieces else Response(404, b"")
        if what.startswith("buckets/"):
            number, place = map(int, what.split("/")[1:])
            bucket = await self.live.served_bucket(number, place, whole=False)
            return Response(404, b"") if bucket is None else Response(200, bucket)
        body = await self.live.served(int(what.removeprefix("documents/")))
        # All peers hold the same bytes: 200 copies of a long page take gigabytes.
        return Response(404, b"") if body is None else Response(200, bytes(body.obj))

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        """See `Route`."""
        request = self._left(path, body)
        takes = {"enrol": self.live.enrol, "withdraw": self.live.withdraw, "packets": self.live.submit}
        answer = encode_reply(self.says(body) or await takes[request.what](body))
        if self.mute(request.what, request.at):
            raise Unreachable("mute")
        request.answer = answer
        return Response(200, answer)

    def _left(self, path: str, body: bytes | None) -> Request:
        request = Request(path.split("/", 3)[3], self.clock(), body)
        self.requests.append(request)
        if self.broken(request.what, request.at):
            raise Unreachable("broken")
        return request

    def packets(self) -> list[Request]:
        """Every post to where packets go."""
        return [request for request in self.requests if request.what == "packets"]

    def connections(self, window: Window) -> list[float]:
        """When each different body first left for this window."""
        first: dict[bytes | None, float] = {}
        for packet in self.packets():
            first.setdefault(packet.body, packet.at)
        return sorted(at for at in first.values() if window.opens <= at < window.closes)


@define
class StudyInMemory:
    """An aggregator with one study, its clock, and the real peers that settled in, each with its route."""

    app: AggregatorApp
    live: LiveStudy
    clock: Clock
    invites: list[Invite]
    protocols: Protocols = PROTOCOLS
    seed: int | None = None
    peers: list[PeerApp] = field(factory=list)
    routes: list[MemoryRoute] = field(factory=list)

    @classmethod
    async def begin(
        cls,
        app: AggregatorApp,
        clock: Clock,
        text: str,
        invites: int = 20,
        given: Mapping[str, bytes] = NONE_GIVEN,
        protocols: Protocols = PROTOCOLS,
        seed: int | None = None,
    ) -> Self:
        """Publish a study in an opened app, which has the same protocols."""
        manifest = await app.create_study(protocols.proposal(text), given=given)
        made = await app.create_invites(manifest.study_id, invites, ADDRESS)
        return cls(app, app.study(manifest.study_id), clock, made, protocols, seed)

    def bring(self, number: int, tables: Tables) -> None:
        """Import a person's data before its peer settles in; without a table all of it is missing. Raises `Malformed`
        for rows of other columns than the study declares, whose values would go by as missing."""
        (home := self._home(number)).prepare()
        declared = {table.name: table.columns for table in self.live.manifest.tables}
        for name, rows in tables.items():
            columns = declared.get(name, ())
            if not columns or any(row.keys() != set(columns) for row in rows):
                raise Malformed(f"people: {name}: expected the study's tables, each row with all columns of its own")
            cells = [[row[column] for column in columns] for row in rows]
            import_rows(home.data_path, name, columns, cells, durable=False)

    async def go_to(self, when: float) -> None:
        """Set the clock and do what is due at the aggregator."""
        self.clock.seconds = when
        await self.app.tick()

    async def settle_in(self, count: int, **settings: Any) -> None:
        """So many real peers join, whose owners agree to what the study costs."""
        for number in range(count):
            self._home(number).write_settings(evolve(Settings(), **settings))
            self.routes.append(MemoryRoute(self.live, self.clock))
            self.peers.append(self._peer(number))
            policy, cost = self.peers[-1].policy(), self.live.manifest.epsilon
            lifetime, most = max(policy.lifetime, cost), max(policy.max_epsilon, cost)
            budget = charge_of(self.live.manifest).budget
            limits = [limit for limit in policy.limits if limit.budget != budget]
            if budget.measure is not Measure.LOCAL:
                held = max([cost, *(limit.lifetime for limit in policy.limits if limit.budget == budget)])
                limits.append(BudgetLimit(budget.measure, budget.unit, held, held))
            policy = evolve(policy, minimum_cohort=2, lifetime=lifetime, max_epsilon=most, limits=tuple(limits))
            self.peers[-1].set_policy(policy)
            await self.peers[-1].join(self.invites[number], cost)

    def restart(self, number: int) -> None:
        """As after a crash: everything that was not stored is gone."""
        self.peers[number].close()
        self.peers[number] = self._peer(number)

    def _home(self, number: int) -> PeerHome:
        return PeerHome(self.app.home.path.parent / f"peer-{number}")

    def _peer(self, number: int) -> PeerApp:
        route, clock, home = self.routes[number], self.clock, self._home(number)
        random_bytes = _drawing(self.seed, home.path.name)
        return PeerApp(
            home, lambda: route, clock, random_bytes, sleep=clock.sleep, evaluate=at_once, protocols=self.protocols
        )

    async def go_on(self, until: float = 1e12, away: Mapping[int, float] = NONE_AWAY) -> None:
        """Aggregator and real peers do what is due, in the order of time, up to `until`. A peer whose number is among
        those `away` does nothing from that time on."""
        due: dict[int, float] = dict.fromkeys(range(len(self.peers)), self.clock())
        news = self.clock()
        for _ in range(100_000):
            if news <= self.clock():
                news = self.clock() + await self.app.tick()
            due = {number: at for number, at in due.items() if at < away.get(number, inf)}
            first = min(due, key=lambda number: due[number], default=None)
            when = min(news, due[first] if first is not None else news)
            if when > until or first is None:
                self.clock.seconds = max(self.clock(), min(until, when if first is None else until))
                return
            self.clock.seconds = max(self.clock(), when)
            if news <= due[first]:
                continue
            again = await self.peers[first].step(self.live.study)
            if again is None:
                del due[first]
            else:
                due[first] = again
        raise RuntimeError("the study does not come to rest")

    async def outcome(self) -> Outcome:
        """All that came of it until now."""
        manifest, documents = self.live.manifest, await published(self.live)
        numbered = {signed.head.number: await self.live.body_of(signed.head) for signed in self.live.chain}
        contents = await all_contents(self.live)
        found = audit_documents(
            encode_chain(self.live.chain), numbered, contents=contents, protocols=self.protocols
        )
        places = [place for place in protocol_of(manifest).results(manifest) if place in documents]
        results = {place: self.protocols.result(documents[place]) for place in places}
        states = tuple(status.state for app in self.peers for status in app.status())
        return Outcome(manifest, documents, results, found, states)

    def close(self) -> None:
        """Close every peer."""
        for peer in self.peers:
            peer.close()
