"""The aggregator: its studies, its server and the clockwork that carries each study to its end.

The only module that sees concrete stores and the server together. Restart-safe at any point: what is durable decides,
and every step repeats without a difference.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Self

from attrs import frozen

from aggregator import enrol_store, http, packet_store, store
from aggregator.conduct import advance
from aggregator.counters import STEP
from aggregator.enrol import draw_invites
from aggregator.enrol_store import EnrolStore
from aggregator.home import Home, open_home
from aggregator.migrations import upgrade_home
from aggregator.onion_key import OnionKey
from aggregator.packet_store import PacketStore
from aggregator.publish import prepare
from aggregator.session import Phase, deadline
from aggregator.store import Clock, Database, StudyStore
from aggregator.study import LiveStudy, Tools, load_study
from aggregator.workers import Workers
from anon.addresses import is_loopback
from anon.errors import Refused
from anon.invite import Invite
from anon.route import SocksRoute
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal

_LONGEST_SLEEP = 0.5
_PAUSE = 5
_OVER = frozenset({Phase.PUBLISHED, Phase.ABANDONED, Phase.ERASED})
_LOG = logging.getLogger(__name__)


@frozen
class StudyStatus:
    """What staff may see of a study at any time.

    `accepted` packets and `packet_answers` (since the last start) are in steps of 50 until collection has closed.
    """

    study: bytes
    title: str
    phase: str
    enrolled: int
    minimum: int
    ends: float | None
    accepted: int
    enrolment_answers: dict[str, int]
    packet_answers: dict[str, int]
    documents: int


class AggregatorApp:
    """One aggregator. `async with AggregatorApp(home) as app: ...`"""

    def __init__(
        self,
        home: Path,
        now: Clock = time.time,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        processes: int = 1,
    ) -> None:
        self.home: Home = open_home(home, random_bytes)
        self._random_bytes = random_bytes
        self._database = Database(self.home.database)
        self._tools = Tools(
            self.home,
            StudyStore(self._database),
            EnrolStore(self._database),
            PacketStore(self._database),
            Workers(processes),
            now,
        )
        self._studies: dict[bytes, LiveStudy] = {}

    async def __aenter__(self) -> Self:
        """Open the database and take up every study where it was left."""
        await asyncio.to_thread(upgrade_home, self.home)
        await self._database.create(store.TABLES, enrol_store.TABLES, packet_store.TABLES)
        await self._load()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all tasks and worker processes."""
        for study in self._studies.values():
            await study.stop()
        self._tools.workers.close()
        await self._database.close()

    async def create_study(self, proposal: Proposal, address: str = "") -> Manifest:
        """Publish a study now: its secrets first, then manifest and signed head in one transaction.

        `address` is the onion address at which peers will be served, which its manifest names to everybody; without one
        they can join on this machine alone. Raises `Malformed` or `Refused` for a query or a design that cannot be.
        """
        now, randbelow = self._tools.now(), secrets.randbelow
        manifest, kept = prepare(proposal, self.home.public_key, now, self._random_bytes, randbelow, address)
        study = manifest.study_id
        self.home.store_secrets(study, kept)
        await self._tools.studies.add(study, Phase.ENROLLING, manifest.to_bytes(), self.home.signing_key)
        await self._load()
        return manifest

    async def create_invites(self, study: bytes, count: int, address: str) -> list[Invite]:
        """`count` new invites to a study served at `address`; each admits once. Their codes are stored nowhere.

        For a study without invites, as many links without a code as asked for. Raises `Refused` for an unknown study,
        and for an address that peers would refuse: neither the manifest's nor this machine's own.
        """
        live = self.study(study)
        if not is_loopback(address) and address != live.manifest.address:
            raise Refused(f"{_named(live)}, not to {address}; leave the address out, or publish it again with this one")
        if live.manifest.cohort.admission != "invite":
            return [Invite(address, self.home.public_key, study) for _ in range(count)]
        drawn = draw_invites(address, self.home.public_key, study, count, self._random_bytes)
        if drawn:
            await self._tools.enrolments.add_invites(study, [stored for _, stored in drawn])
        return [invite for invite, _ in drawn]

    async def list_keys(self, study: bytes, keys: Iterable[bytes]) -> None:
        """Admit these Ed25519 keys to a study with an allow-list. Raises `Refused` for keys of another length."""
        self.study(study)
        named = list(keys)
        if any(len(key) != 32 for key in named):
            raise Refused("allow-list: expected keys of 32 bytes (64 hexadecimal digits); correct the list")
        await self._tools.enrolments.list_keys(study, named)

    def study(self, study: bytes) -> LiveStudy:
        """A study that is loaded. Raises `Refused`."""
        if study not in self._studies:
            raise Refused("no such study here; `anonml aggregator status` lists them")
        return self._studies[study]

    def studies(self) -> tuple[LiveStudy, ...]:
        """Every study that is loaded."""
        return tuple(self._studies.values())

    async def serve(self, host: str, port: int, ready: Callable[[int], None] = lambda port: None) -> None:
        """Answer requests and carry studies on until cancelled. `ready` hears the port once it is open.

        Raises `Refused` when another process serves this home.
        """
        with closing(self.home.lock()):
            runner, bound = await http.start(self._studies, host, port)
            try:
                with self.home.place(f"{host}:{bound}"):
                    ready(bound)
                    await self._keep_ticking()
            finally:
                await runner.cleanup()

    async def serve_onion(
        self,
        key_of: Callable[[Path], OnionKey],
        announce: Callable[[str], None] = lambda address: None,
        say: Callable[[str], None] = lambda line: None,
        progress: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Like `serve`, as the onion service of the key that `key_of` gives for this home, and nowhere else.

        `announce` hears the address once it answers; for `say` and `progress` see `OnionService`. Studies go on while
        tor is restarted. Raises `Refused` when another process serves this home and when all studies that go on name
        other addresses to their peers, `Unreachable` when the address never came up.
        """
        from aggregator.onion import OnionService, leave_socket, socket_of  # late: not needed to serve without Tor

        with closing(self.home.lock()):
            key = key_of(self.home.path)
            self._demand_named(key.address())
            socket = socket_of(self.home.path)
            service = OnionService(key, socket, self.home.path / "tor", SocksRoute, announce, say, progress)
            runner = await http.start_unix(self._studies, socket)
            try:
                with self.home.place(key.address()):
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(service.run())
                        tasks.create_task(self._keep_ticking())
            finally:
                await runner.cleanup()
                leave_socket(socket)

    def _demand_named(self, address: str) -> None:
        going_on = [live for live in self.studies() if live.manifest.address and live.phase not in _OVER]
        if going_on and all(live.manifest.address != address for live in going_on):
            raise Refused(
                f"{_named(going_on[0])}, not to {address}; serve there (the kept key: without --ephemeral), or publish "
                "another study first"
            )

    async def tick(self) -> float:
        """Take up new studies and perform every due transition; the seconds until the next one (at most a day).

        Raises an `ExceptionGroup` when a study could not go on; the others did, and repeating is safe.
        """
        await self._load()
        results = await asyncio.gather(*(_carry(live) for live in self.studies()), return_exceptions=True)
        failed = [result for result in results if isinstance(result, Exception)]
        if failed:
            raise ExceptionGroup("a study cannot go on", failed)
        return self._until_next()

    async def _keep_ticking(self) -> None:
        wait = 0.0
        while True:
            await asyncio.sleep(wait)
            try:
                wait = min(await self.tick(), _LONGEST_SLEEP)
            except ExceptionGroup as failed:
                wait = _PAUSE
                _LOG.error("%s; it is tried again in %d s", failed, _PAUSE, exc_info=failed)

    async def status(self) -> list[StudyStatus]:
        """How every study stands."""
        return [await self._status(live) for live in self.studies()]

    async def _status(self, live: LiveStudy) -> StudyStatus:
        closed = live.phase in (Phase.LEARNING, Phase.PUBLISHED, Phase.ERASED, Phase.ABANDONED)
        accepted = sum((await self._tools.packets.counts(live.study)).values())
        return StudyStatus(
            study=live.study,
            title=live.manifest.title,
            phase=live.phase,
            enrolled=await self._tools.enrolments.count(live.study),
            minimum=live.manifest.cohort.minimum,
            ends=deadline(live.manifest, live.phase, live.turn),
            accepted=accepted if closed else accepted // STEP * STEP,
            enrolment_answers=live.enrolment_answers.exact(),
            packet_answers=live.packet_answers.exact() if closed else live.packet_answers.coarse(),
            documents=len(live.chain),
        )

    def _until_next(self) -> float:
        now = self._tools.now()
        ends = (deadline(live.manifest, live.phase, live.turn) for live in self.studies())
        return min((max(end - now, 0.0) for end in ends if end is not None), default=86400.0)

    async def _load(self) -> None:
        for progress in await self._tools.studies.all():
            if progress.study not in self._studies:
                self._studies[progress.study] = await load_study(self._tools, progress)


def _named(live: LiveStudy) -> str:
    where = f"at {live.manifest.address}" if live.manifest.address else "on this machine alone"
    return f"study {live.study.hex()[:8]} says that it is served {where}, and peers go nowhere else"


async def _carry(live: LiveStudy) -> None:
    while await advance(live):
        pass
