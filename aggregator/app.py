"""The aggregator: its studies, its server and the clockwork that carries each study to its end.

The only module that sees concrete stores and the server together. Restart-safe at any point: what is durable decides,
and every step repeats without a difference.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Self

from aggregator.intake.workers import Workers
from aggregator.network import http
from aggregator.protocols.installed import PROTOCOLS
from aggregator.rules.enrol import draw_invites
from aggregator.rules.faults import Fault, in_words, repeated, tell, tell_end
from aggregator.rules.lifecycle import OVER, Phase
from aggregator.store.answers import AnswerStore
from aggregator.store.buckets import BucketStore
from aggregator.store.dialects import TABLES, database_of
from aggregator.store.duplicate_home import RestoredWord, demand_alone, demand_here, settled
from aggregator.store.enrolments import EnrolStore
from aggregator.store.home import Home, open_home
from aggregator.store.lists import ListStore
from aggregator.store.migrations import upgrade_home
from aggregator.store.packets import PacketStore
from aggregator.store.studies import Clock, Progress, StudyStore
from aggregator.study.carry import carry, erase_due
from aggregator.study.live import LiveStudy, Tools, load_study
from aggregator.study.publish import prepare
from aggregator.study.status import CLOSED, StudyStatus, status_of, status_unread
from aggregator.tellers.http_link import TELLER_SECONDS, HttpLink
from aggregator.tellers.link import TellerLink
from aggregator.tellers.publishing import TellerAnswer, tellers_ready, who_answers, with_entries
from aggregator.tellers.study_tellers import LinkTo
from anon.errors import Damaged, Refused
from anon.machine.guard import Guard
from anon.protocols.registry import Protocols
from anon.route import DirectRoute, FarSide, Route, SocksRoute
from anon.route.tor import TorKeeper, TorRoute
from anon.serving.onion_key import OnionKey
from anon.sharing.arrangement import Arrangement
from anon.study.given import NONE_GIVEN
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal, TellerPlace
from anon.wire.addresses import is_loopback
from anon.wire.invite import Invite

LOOK_SECONDS = 0.5
"""How often it is looked for studies that another process published, and for tellers that did not answer."""


class AggregatorApp:
    """One aggregator. `async with AggregatorApp(home) as app: ...`

    `now` gives unix seconds, and `sleep` waits by the same clock. `look_seconds`: the longest wait between two looks at
    what other processes of this home did.
    """

    def __init__(
        self,
        home: Path,
        now: Clock = time.time,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        processes: int = 1,
        link_to: LinkTo | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        look_seconds: float = LOOK_SECONDS,
        protocols: Protocols = PROTOCOLS,
    ) -> None:
        self.home: Home = open_home(home, random_bytes)
        self._ticking = asyncio.Lock()
        self._random_bytes, self.sleep, self._look_seconds = random_bytes, sleep, look_seconds
        self._database = database_of(self.home)
        self._tools = Tools(
            self.home,
            StudyStore(self._database),
            EnrolStore(self._database),
            PacketStore(self._database),
            ListStore(self._database),
            BucketStore(self._database),
            AnswerStore(self._database),
            Workers(processes),
            now,
            link_to or self._link,
            protocols,
        )
        self._keeper = TorKeeper(self.home.path / "tor-to-tellers")
        self._studies: dict[bytes, LiveStudy] = {}
        self._unread: dict[bytes, tuple[Progress, Fault]] = {}
        self._told: dict[bytes, str] = {}
        self._keyless: set[bytes] = set()

    async def __aenter__(self) -> Self:
        """Open the database and take up every study where it was left."""
        await asyncio.to_thread(upgrade_home, self.home)
        await self._database.create(*TABLES)
        await self._database.belong_to(self.home.public_key)
        await self._load()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all tasks and worker processes."""
        for study in self._studies.values():
            await study.stop()
        self._tools.workers.close()
        await self._keeper.close()
        await self._database.close()

    def demand_shared(self) -> None:
        """Raises `Refused` for a home that one process at a time may serve."""
        if not self._database.shared:
            raise Refused(
                f"{self.home.path}: several processes need a database on a server (`anonml aggregator init --database "
                "DATABASE`, for a new home); leave --workers out"
            )

    async def create_study(
        self, proposal: Proposal, address: str = "", given: Mapping[str, bytes] = NONE_GIVEN
    ) -> Manifest:
        """Publish a study now: its secrets first, then manifest and signed head in one transaction.

        `address` is the onion address at which peers will be served, or several (`Manifest.address`), which its
        manifest names to everybody; without one they can join on this machine alone. `given`: the contents of its
        public documents, by name. The study's tellers are asked first: for an entry if the proposal has none, then for
        a countersignature. Raises `Malformed` or `Refused` for a query or a design that cannot be, and `TellerAway` or
        `TellerRefuses`, with nothing published.
        """
        demand_here(self.home.path)
        proposal = await with_entries(proposal, self._tools.link_to)
        now, randbelow = self._tools.now(), secrets.randbelow
        manifest, kept = prepare(proposal, self.home.public_key, now, self._random_bytes, randbelow, address, given)
        readied = await tellers_ready(manifest, self._tools.link_to)
        beside = {**readied, **{("given", part): given[named.name] for part, named in enumerate(manifest.given)}}
        study = manifest.study_id
        self.home.store_secrets(study, kept)
        await self._tools.studies.add(study, Phase.ENROLLING, manifest.to_bytes(), self.home.signing_key, beside)
        await self._load()
        return manifest

    @property
    def link_to(self) -> LinkTo:
        """Makes the links to tellers."""
        return self._tools.link_to

    async def ask_tellers(self, places: Sequence[TellerPlace]) -> tuple[TellerAnswer, ...]:
        """See `who_answers`."""
        return await who_answers(places, self._tools.link_to)

    async def create_invites(self, study: bytes, count: int, address: str) -> list[Invite]:
        """`count` new invites to a study served at `address`; each admits once. Their codes are stored nowhere.

        For a study without invites, as many links without a code as asked for. Raises `Refused` for an unknown study,
        and for an address that peers would refuse: neither the manifest's nor this machine's own.
        """
        live = self.study(study)
        if not is_loopback(address) and address not in live.manifest.addresses:
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
        """A study that is loaded. Raises `Refused`, and `Damaged` for one that cannot be read."""
        if study in self._unread:
            raise Damaged(self._unread[study][1].said)
        if study not in self._studies:
            raise Refused("no such study here; `anonml aggregator status` lists them")
        return self._studies[study]

    def studies(self) -> tuple[LiveStudy, ...]:
        """Every study that is loaded."""
        return tuple(self._studies.values())

    async def serve(
        self,
        host: str,
        port: int,
        ready: Callable[[int], None] = lambda port: None,
        restored: int = RestoredWord.NOTHING,
        shared: bool = False,
    ) -> None:
        """Answer requests and carry studies on until cancelled. `ready` hears the port once it is open.

        `shared`: further processes listen at the same port (`serve_beside`). `restored`: the word of staff about a home
        that was restored. Raises `Refused` when another process serves this home, and for one that was restored without
        their saying so.
        """
        with closing(self.home.lock()):
            await self._demand_alone(restored)
            settled(self.home.path)
            runner, bound = await http.start(self._studies, host, port, shared)
            try:
                with self.home.place(f"{host}:{bound}"):
                    ready(bound)
                    await self._keep_ticking()
            finally:
                await runner.cleanup()

    async def serve_beside(self, host: str, port: int, ready: Callable[[int], None] = lambda port: None) -> None:
        """Like `serve`, as a further process of one that serves this home: that one holds it, and ends this one."""
        runner, bound = await http.start(self._studies, host, port, shared=True)
        try:
            ready(bound)
            await self._keep_ticking()
        finally:
            await runner.cleanup()

    async def serve_onion(
        self,
        keys_of: Callable[[Path], tuple[OnionKey, ...]],
        announce: Callable[[str], None] = lambda addresses: None,
        say: Callable[[str], None] = lambda line: None,
        progress: Callable[[str], None] = lambda line: None,
        restored: int = RestoredWord.NOTHING,
        bound: Callable[[int], None] | None = None,
    ) -> None:
        """Like `serve`, as the onion services of the keys that `keys_of` gives for this home, and nowhere else.

        For `announce`, `say` and `progress` see `Onions`; with `bound`, which hears a port of loopback, other processes
        of this home listen there too. Studies go on while tor is restarted. Raises `Refused` when another process
        serves this home and when all studies that go on name other addresses to their peers, `Unreachable` when an
        address never came up.
        """
        from aggregator.network.onions import Onions, server_behind  # late: not needed to serve without Tor

        with closing(self.home.lock()):
            await self._demand_alone(restored)
            onions = Onions(keys_of(self.home.path), self.home.path, SocksRoute, announce, say, progress)
            self._demand_named(onions.addresses)
            async with server_behind(self._studies, self.home.path, bound) as target:
                with self.home.place(" ".join(onions.addresses)):
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(onions.run(target, self._studies))
                        tasks.create_task(self._keep_ticking())

    async def _demand_alone(self, known: int) -> None:
        now = self._tools.now()
        lacking = [live.study for live in self.studies() if live.may_lack(now)]
        await demand_alone(self.home.path, self._database, known, lacking, self._random_bytes)

    def _demand_named(self, served: tuple[str, ...]) -> None:
        going_on = [live for live in self.studies() if live.manifest.addresses and live.phase not in OVER]
        if going_on and not any(set(served) & set(live.manifest.addresses) for live in going_on):
            raise Refused(
                f"{_named(going_on[0])}, not to {', '.join(served)}; serve there (the kept keys: without --ephemeral), "
                "or publish another study first"
            )

    async def tick(self) -> float:
        """Take up new studies and perform every due transition; the seconds until the next one (at most a day).

        A study that cannot go on has its `fault`, and is tried again when that is due; it holds up no other. One call
        waits for another: no study is carried on twice at a time.
        """
        async with self._ticking:
            for study in await erase_due(self._tools, dict(self._unread)):
                del self._unread[study]
            await self._load()
            await asyncio.gather(*(carry(live) for live in self.studies()))
            self._keep_faults()
            await self._keep_answers()
        return self._until_next()

    async def _keep_ticking(self) -> None:
        wait, guard = 0.0, Guard("all studies", words=in_words)
        while True:
            await self._rest(guard.pause or wait)
            with guard.turn():
                wait = self._look_seconds
                if await self._database.leads(willing=not self._keys_elsewhere()):
                    wait = min(await self.tick(), self._look_seconds)
                else:
                    await self._load()
                    await self._keep_answers()

    async def _rest(self, seconds: float) -> None:
        """Sleep so long. While tellers are at work, wait for the end of that instead: it is due, however long it takes.
        """
        jobs = [live.tellers.job for live in self.studies() if live.tellers is not None]
        at_work = [job for job in jobs if job.under_way]
        for job in at_work:
            await job.ended(LOOK_SECONDS)
        if not at_work:
            await self.sleep(seconds)

    def _keep_faults(self) -> None:
        """Tell other processes of this home, `anonml aggregator status` among them. A full disk keeps nothing from it.
        """
        faults = {live.study: live.trouble for live in self.studies() if live.trouble}
        faults |= {study: fault.said for study, (_, fault) in self._unread.items()}
        if faults != self._told:
            with suppress(OSError):
                self.home.keep_faults(faults)
            self._told = faults

    async def _keep_answers(self) -> None:
        """Tell other processes of this home what peers were answered."""
        for live in self.studies():
            if live.phase is not Phase.ERASED:
                await live.answers.keep(live.phase in CLOSED)

    async def status(self) -> list[StudyStatus]:
        """How every study stands, also those that cannot be read."""
        faults = self.home.kept_faults()
        statuses = [await status_of(live, faults.get(live.study, "")) for live in self.studies()]
        return statuses + self.unread()

    async def led(self) -> bool:
        """True if some process of this aggregator carries studies from phase to phase now."""
        return await self._database.led()

    def unread(self) -> list[StudyStatus]:
        """The studies that are stored and cannot be read, with the reason."""
        return [status_unread(progress, fault) for progress, fault in self._unread.values()]

    def _link(self, address: str, key: bytes = b"", arrangement: Arrangement | None = None) -> TellerLink:
        """Over loopback, or through a tor of this home's own that carries nothing else."""
        loopback = is_loopback(address)
        route: Route = DirectRoute(TELLER_SECONDS, FarSide.TELLER)
        if not loopback:
            route = TorRoute(self._keeper, TELLER_SECONDS, far_side=FarSide.TELLER)
        return HttpLink(route, address, self.home.signing_key, key, arrangement)

    def _until_next(self) -> float:
        now = self._tools.now()
        if any(live.waits for live in self.studies()):
            return LOOK_SECONDS
        dues = (live.due for live in self.studies())
        return min([86400.0, *(max(due - now, 0.0) for due in dues if due is not None)])

    async def _load(self) -> None:
        """Take up the studies that are not loaded, and what other processes did to those that are. One that cannot be
        read keeps no other from going on."""
        now, steady = self._tools.now(), time.monotonic()
        lengths = await self._tools.studies.lengths() if self._database.shared else {}
        for progress in await self._tools.studies.all():
            known = self._unread.get(progress.study)
            if (live := self._studies.get(progress.study)) is not None and lengths:
                await self._follow(live, progress, lengths.get(progress.study, 0))
            waits = known is not None and not known[1].is_due(now, steady) and not self._has_come(progress.study)
            if progress.study in self._studies or waits:
                continue
            self._keyless.discard(progress.study)
            try:
                self._studies[progress.study] = await load_study(self._tools, progress)
                if self._unread.pop(progress.study, None) is not None:
                    tell_end(f"study {progress.study.hex()[:8]}")
            except Exception as error:
                fault = repeated(known[1] if known else None, error, now, steady)
                self._unread[progress.study] = progress, fault
                if not self.home.secrets_path(progress.study).exists():
                    self._keyless.add(progress.study)
                tell(f"study {progress.study.hex()[:8]}", fault, error)

    def _keys_elsewhere(self) -> bool:
        """True if keys of a study are not in this home; they may be in a copy of it on another machine."""
        return any(not self.home.secrets_path(study).exists() for study in self._keyless)

    def _has_come(self, study: bytes) -> bool:
        return study in self._keyless and self.home.secrets_path(study).exists()

    async def _follow(self, live: LiveStudy, progress: Progress, documents: int) -> None:
        if progress.phase == Phase.ERASED and live.phase is not Phase.ERASED:  # loaded anew, without its keys
            await live.stop()
            del self._studies[progress.study]
            return
        try:
            if live.stand(progress, documents):
                await live.refresh()
        except Exception as error:
            live.fault = repeated(live.fault, error, self._tools.now(), time.monotonic())
            tell(f"study {live.study.hex()[:8]}", live.fault, error)


def _named(live: LiveStudy) -> str:
    where = f"at {', '.join(live.manifest.addresses)}" if live.manifest.addresses else "on this machine alone"
    return f"study {live.study.hex()[:8]} says that it is served {where}, and peers go nowhere else"
