"""The peer's front door: look at a study, join or leave it, run what is due, and see what happened.

Only this module brings concrete store, route and clock together. Safe to be killed at any byte.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from attrs import evolve

from anon.accounting import Accounting, account, batch_of_chain
from anon.documents import SignedHead, encode_chain
from anon.errors import AnonmlError, Malformed, Refused
from anon.invite import Invite
from anon.ldp import NanoEpsilon
from anon.messages import seal, sign_withdrawal
from anon.route import Route
from anon.sodium import SALT_BYTES, passphrase_key
from anon.study.manifest import Manifest
from peer.checks import check_address, check_manifest, extend_chain
from peer.client import AggregatorClient
from peer.consent import Consent, ConsentSheet, Policy, decide, explain
from peer.enrolling import sealed_enrolment
from peer.errands import Tools
from peer.glance import Receipt, StudyStatus
from peer.home import PeerHome, Settings
from peer.ledger import Entry, Ledger
from peer.migrations import upgrade_home
from peer.records import Joining, Study
from peer.release import random_sizes
from peer.runner import StudyRunner
from peer.schedule import draw_enrolment_time
from peer.secrets import KEY_BYTES, StudySecrets, Vault, fresh
from peer.session import LAST, Event, State
from peer.store import Store
from peer.waiting import WaitingLinks

_LOG = logging.getLogger(__name__)
POLL_SECONDS = 5.0
"""How often a runner looks for studies that were joined meanwhile."""
LONGEST_SLEEP = 30.0
"""Sleep is cut into such pieces, so that a machine that was suspended notices what time it is."""
LONGEST_PAUSE = 366 * 86400.0
NOTICE_SECONDS = 1.0
"""While enrolment is open the pieces are as short as this, so that a withdrawal by another process leaves at once."""


class PeerApp:
    """A peer in its home.

    `route_factory` gives the route of an exchange; `now` unix seconds; `random_bytes` must be the operating system's.
    `passphrase` is needed only when the home has one; `policy` is the first one of a new home (default: `Policy()`).
    Holds three file descriptors until `close`, one more while it runs.
    """

    def __init__(
        self,
        home: PeerHome,
        route_factory: Callable[[], Route],
        now: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        passphrase: str | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        data_path: Path | None = None,
        policy: Policy | None = None,
    ) -> None:
        home.prepare()
        upgrade_home(home)
        self._home = home
        self._route_factory = route_factory
        self._now = now
        self._random_bytes = random_bytes
        self._sleep = sleep
        settings = home.settings()
        self._key = _key(settings, passphrase, random_bytes)
        self.store = Store(home.store_path, random_bytes, policy)
        self._tools = Tools(
            store=self.store,
            data_path=data_path or home.data_path,
            vault=Vault(self._key, random_bytes),
            settings=settings,
            client=self._client_of,
            now=now,
            random_bytes=random_bytes,
        )
        self.waiting = WaitingLinks(self.store, lambda: self._tools.vault)
        self._manifests: dict[bytes, tuple[tuple[SignedHead, ...], bytes, Manifest]] = {}
        self._runners: dict[bytes, StudyRunner] = {}

    def close(self) -> None:
        """Close the store. The next call opens it again."""
        self.store.close()

    # Deciding

    async def look(self, invite: Invite) -> ConsentSheet:
        """Fetch and verify the study of an invite and explain it. Nothing about the owner leaves."""
        manifest = await self.manifest(invite)
        return explain(manifest, self.store.policy(), self.store.ledger(), self._now())

    async def manifest(self, invite: Invite) -> Manifest:
        """The verified manifest of an invite, fetched once. Nothing about the owner leaves."""
        return (await self._manifest(invite))[2]

    async def join(self, invite: Invite, approved_epsilon: int) -> Consent:
        """The owner's yes, up to `approved_epsilon` (1e-9): reserve the budget and store the enrolment, together.

        Enrolment leaves with the next step. Raises `Refused` with every objection, `Conflict` for a study joined
        before; then nothing was stored or sent.
        """
        chain, body, manifest = await self._manifest(invite)
        now = self._now()
        policy = self.store.policy()
        consent = decide(manifest, policy, self.store.ledger(), approved_epsilon, now)
        secrets = fresh(random_sizes(manifest), invite.code, self._random_bytes)
        joining = Joining(
            entry=Entry(consent.study, manifest.title, invite.key, policy.data_set, reserved=consent.epsilon),
            invite=invite,
            manifest_bytes=body,
            minimum_cohort=consent.minimum_cohort,
            secrets=self._tools.vault.close(secrets.to_bytes()),
            enrolment=sealed_enrolment(manifest, secrets),
            due=draw_enrolment_time(manifest.timetable, self._tools.settings.enrol_spread, now, self._random_bytes),
            chain=encode_chain(chain),
        )

        def permit(policy: Policy, ledger: Ledger) -> object:
            return decide(manifest, policy, ledger, approved_epsilon, now)

        self.store.join(joining, permit)
        return consent

    def study_key(self, study: bytes) -> bytes:
        """The Ed25519 key (32 bytes) that this study's enrolment is signed by, for an aggregator's allow-list.

        Raises `Refused` once the study is over and its secrets are erased.
        """
        known = self.store.study(study)
        if known.secrets is None:
            raise Refused("this study is over for you, and its keys are erased; join again")
        return bytes(StudySecrets.from_bytes(self._tools.vault.open(known.secrets)).signing_key.verify_key)

    async def leave(self, study: bytes) -> None:
        """Leave a study: before closing with a signed withdrawal, later by sending nothing more.

        The unspent reservation returns at once; what is in the outbox stays charged. A withdrawal is stored here, and
        leaves by `deliver_withdrawal` or by whichever process runs this home. Raises `Refused` when the study is over
        or was left before, and in a home that was moved elsewhere.
        """
        self.store.demand_not_retired()
        known = self.store.study(study)
        if known.state is State.LEAVING:
            raise Refused("you left this study: the withdrawal is on its way; keep `anonml peer run` running")
        early = known.state in (State.CONSENTED, State.ENROLLED) and self._now() < known.manifest.timetable.enrol_closes
        if early and known.secrets is not None:
            secrets = StudySecrets.from_bytes(self._tools.vault.open(known.secrets))
            signed = sign_withdrawal(study, secrets.signing_key)
            self.store.leave(study, Event.OWNER_LEFT_EARLY, seal(signed, known.manifest.sealing_key))
        elif known.state in (State.CONSENTED, State.ENROLLED, State.CHECKED, State.SENT):
            self.store.leave(study, Event.OWNER_STOPPED, None)
        else:
            raise Refused(f"this study is over for you already ({known.state}); there is nothing to leave")

    async def deliver_withdrawal(self, study: bytes, seconds: float = 20.0) -> State:
        """Try for so long to deliver a stored withdrawal, or wait for the process that runs this home to do it.

        Returns where the study stands then: `LEAVING` when it is still on its way, which it is until enrolment closes
        if only `run` goes on. It depends on nothing in the data, so it leaves at once. Raises `Refused` in a home that
        was moved elsewhere.
        """
        self.store.demand_not_retired()
        deadline = self._now() + seconds
        while (state := self.store.state(study)) is State.LEAVING and (now := self._now()) < deadline:
            with ExitStack() as held:
                try:
                    held.enter_context(self._home.running())
                except Refused:  # another process runs this home, and delivers
                    due = now + NOTICE_SECONDS / 4
                else:
                    due = await self._runner(study).step() or now
            await self._sleep(min(max(0.0, due - self._now()), deadline - now))
        return state

    # Pausing

    def pause(self, until: float, study: bytes | None = None) -> None:
        """Do nothing of this study, or of the whole home, until then (unix seconds); see `peer.pausing`.

        An exchange that is under way is not torn off. Raises `Refused` for an instant that has passed, a study that was
        never joined or is over, and in a home that was moved elsewhere.
        """
        self.store.demand_not_retired()
        if not self._now() < until < LONGEST_PAUSE + self._now():
            raise Refused("a pause ends in the future, within a year; choose another time")
        if study is not None and self.store.state(study) in LAST:
            raise Refused("this study is over for you; there is nothing to pause")
        self.store.pause(study, until)

    def resume(self, study: bytes | None = None) -> None:
        """End the pause of this study, or the home's own. What is due is done at its own times, never in a bunch."""
        self.store.demand_not_retired()
        self.store.pause(study, None)

    def paused_until(self, study: bytes | None = None) -> float | None:
        """The end of the pause in force for this study (its own or the home's) or the home; None without one."""
        until = self.store.paused_until(study)
        return until if until > self._now() else None

    # Running

    async def step(self, study: bytes) -> float | None:
        """Do one due thing of a study; the unix time of the next, or None when it is over.

        Raises `Refused` while another process runs this home.
        """
        with self._exclusively():
            return await self._runner(study).step()

    async def run(self, max_seconds: float | None = None, once: bool = False) -> None:
        """Run all studies side by side, also those joined meanwhile, for at most `max_seconds`.

        `once`: return as soon as no study has anything due within that time (without a limit: nothing due now).
        Raises `Refused` while another process runs this home.
        """
        limit = 0.0 if once and max_seconds is None else max_seconds
        deadline = None if limit is None else self._now() + limit
        with self._exclusively():
            try:
                async with asyncio.TaskGroup() as group:
                    await self._supervise(group, deadline, once)
            except* AnonmlError as errors:
                raise first_of(errors) from None

    async def _supervise(self, group: asyncio.TaskGroup, deadline: float | None, once: bool) -> None:
        followed: dict[bytes, asyncio.Task[None]] = {}
        while True:
            for study in self.store.active():
                if study not in followed or followed[study].done():
                    followed[study] = group.create_task(self._follow(study, deadline))
            if once or (deadline is not None and self._now() >= deadline):
                return
            await self._sleep(POLL_SECONDS if deadline is None else min(POLL_SECONDS, max(0.0, deadline - self._now())))

    async def _follow(self, study: bytes, deadline: float | None) -> None:
        """Follow one study; a fault of ours in it stops neither the other studies nor the run, and is tried again."""
        try:
            await self._follow_closely(study, deadline)
        except AnonmlError:
            raise
        except Exception as error:
            _LOG.error("study %s: %s; it is tried again", study.hex()[:8], type(error).__name__)  # no text: data

    async def _follow_closely(self, study: bytes, deadline: float | None) -> None:
        runner, standing = self._runner(study), self._standing(study)
        while (due := await runner.step()) is not None:
            if deadline is not None and (due > deadline or self._now() > deadline):
                return
            await self._rest(study, standing, due)
            standing = self._standing(study)
        self._runners.pop(study, None)

    async def _rest(self, study: bytes, standing: tuple[State, float], due: float) -> None:
        """Sleep until `due`, or until the study does not stand so any more: the owner left, paused or resumed it."""
        longest = NOTICE_SECONDS if standing[0] in (State.CONSENTED, State.ENROLLED) else LONGEST_SLEEP
        while (left := due - self._now()) > 0 and self._standing(study) == standing:
            await self._sleep(min(left, longest))

    def _standing(self, study: bytes) -> tuple[State, float]:
        return self.store.state(study), self.store.paused_until(study)

    def _runner(self, study: bytes) -> StudyRunner:
        if study not in self._runners:
            self._runners[study] = StudyRunner(study, self._tools)
        return self._runners[study]

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        with self._home.running():
            self.store.demand_not_retired()
            yield

    # Seeing

    def status(self) -> list[StudyStatus]:
        """Every study that was ever joined."""
        ledger = self.store.ledger()
        return [self._status(study, ledger) for study in self.store.studies()]

    def receipts(self) -> list[Receipt]:
        """One receipt per slot that was decided, over all studies."""
        return [
            Receipt(one.study, one.title, slot.slot, slot.survey, slot.epsilon, slot.status, slot.word)
            for one in self.status()
            for slot in one.slots
        ]

    def accounting(self, study: bytes) -> Accounting | None:
        """What the packets of a study cost, by its manifest and the signed heads seen; None before its roster."""
        stored = self.store.study(study)
        batch = batch_of_chain(stored.manifest, stored.chain)
        return account(stored.manifest, batch) if batch is not None else None

    def budget(self) -> Ledger:
        """The ledger: lifetime, available, every entry, and views by aggregator and data set."""
        return self.store.ledger()

    def policy(self) -> Policy:
        """The owner's policy."""
        return self.store.policy()

    def set_policy(self, policy: Policy) -> None:
        """Replace the owner's policy."""
        self.store.set_policy(policy)

    def evidence(self) -> list[tuple[bytes, str, bytes]]:
        """(study, what, proof) of everything an aggregator was caught at."""
        return self.store.evidence()

    def set_passphrase(self, passphrase: str) -> None:
        """Put the secrets of this home under a passphrase, or under another one.

        A random key closes the secrets and the passphrase closes only that key, so a change is one atomic write of the
        settings. It does not help against somebody who has the old passphrase and an old copy of the home.
        """
        salt, key = self._random_bytes(SALT_BYTES), self._key or self._random_bytes(KEY_BYTES)
        with self._exclusively():
            sealed = Vault(passphrase_key(passphrase, salt), self._random_bytes).close(key)
            settings = evolve(self._tools.settings, salt=salt.hex(), sealed=sealed.hex())
            self._home.write_settings(settings)  # first: plain secrets open under any vault
            old, vault = self._tools.vault, Vault(key, self._random_bytes)
            self.store.reclose_secrets(lambda stored: vault.close(old.open(stored)))
            self._key, self._tools = key, evolve(self._tools, vault=vault, settings=settings)
            self._runners.clear()

    # Within

    def _status(self, study: Study, ledger: Ledger) -> StudyStatus:
        entry = ledger.entry(study.study)
        reserved, spent = (entry.reserved, entry.spent) if entry is not None else (0, 0)
        return StudyStatus(
            study.study,
            study.manifest.title,
            study.state,
            study.reason,
            NanoEpsilon(reserved),
            NanoEpsilon(spent),
            tuple(self.store.outbox(study.study)),
        )

    def client(self, invite: Invite) -> AggregatorClient:
        """The aggregator of a study, over the route of the moment."""
        return AggregatorClient(invite, self._route_factory())

    def _client_of(self, study: Study) -> AggregatorClient:
        """Of a study that was joined, also by an earlier version. Raises `Distrust` for another address than its."""
        check_address(study.manifest, study.address)
        return self.client(study.invite)

    async def _manifest(self, invite: Invite) -> tuple[tuple[SignedHead, ...], bytes, Manifest]:
        if invite.study not in self._manifests:
            client = self.client(invite)
            chain = await client.chain()
            if not chain or chain[0].head.kind != "manifest":
                raise Malformed("heads: the first document is not the manifest; do not take part")
            body = await client.body(chain[0].head)
            self._manifests[invite.study] = (extend_chain((), chain), body, check_manifest(body, invite))
        chain, body, manifest = self._manifests[invite.study]
        if manifest.aggregator_key != invite.key:
            raise Malformed("invite: another key than the manifest names; ask for the invite again")
        check_address(manifest, invite.address)
        return chain, body, manifest


def first_of(errors: BaseExceptionGroup[AnonmlError]) -> AnonmlError:
    """The first error of a group: the others are tried again with the next run."""
    first = errors.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first


def _key(settings: Settings, passphrase: str | None, random_bytes: Callable[[int], bytes]) -> bytes | None:
    """The key of the home's secrets, None when they are plain. Raises `Refused` for a missing or wrong passphrase."""
    if not settings.salt:
        return None
    if passphrase is None:
        raise Refused("the secrets of this home are under a passphrase; give it")
    vault = Vault(passphrase_key(passphrase, bytes.fromhex(settings.salt)), random_bytes)
    return vault.open(bytes.fromhex(settings.sealed))
