"""The peer's front door: look at a study, join or leave it, run what is due, and see what happened.

It brings concrete store, route and clock together for a peer's life. Safe to be killed at any byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from attrs import evolve

from anon.crypto.nacl import SALT_BYTES, passphrase_key
from anon.errors import Malformed, Refused
from anon.protocols.registry import Protocols
from anon.route import Route
from anon.study.manifest import Manifest
from anon.text.sentences import say
from anon.transparency.closing import CheckedLists
from anon.transparency.documents import SignedHead, encode_chain
from anon.wire.invite import Invite
from peer.data.evaluate import Evaluate, by_deadline
from peer.network.client import AggregatorClient
from peer.network.seen_chains import held_to
from peer.protocols.installed import PROTOCOLS
from peer.release import random_sizes
from peer.rules.checks import check_address, check_continued, check_manifest
from peer.rules.consent import Consent, ConsentSheet, Policy, decide, explain
from peer.rules.ledger import Entry, Ledger
from peer.rules.lifecycle import LAST, State
from peer.rules.schedule import draw_enrolment_time
from peer.rules.study_secrets import KEY_BYTES, StudySecrets, Vault, fresh
from peer.rules.tellers import check_tellers, keys_named
from peer.run.clock import SteadyClock
from peer.run.context import RunContext
from peer.run.enrol import sealed_enrolment
from peer.run.following import NOTICE_SECONDS, Following
from peer.run.leaving import departure
from peer.run.taking_back import TakingBack
from peer.store.home import PeerHome, key_of
from peer.store.pending_invites import WaitingLinks
from peer.store.records import Joining, OpenStudy, Study
from peer.store.store import Store
from peer.threads import heads_off_loop, off_loop
from peer.view import HomeView, made_ready

LONGEST_PAUSE = 366 * 86400.0


class PeerApp(HomeView):
    """A peer in its home.

    `route_factory` gives the route of an exchange; `now` unix seconds; `random_bytes` must be the operating system's.
    `passphrase` is needed only when the home has one; `policy` is the first one of a new home (default: `Policy()`).
    `evaluate` computes the features: by default in a child process, taken up at its deadline. `elapsed`: see
    `peer.run.clock`. The peers of a simulation share `checked`. Holds three file descriptors until `close`, one more
    while it runs.
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
        evaluate: Evaluate | None = None,
        elapsed: Callable[[], float] | None = None,
        checked: CheckedLists | None = None,
        protocols: Protocols = PROTOCOLS,
    ) -> None:
        made_ready(home)
        self._key = key_of(home.settings(), passphrase, random_bytes)
        self._clock = SteadyClock(now, elapsed)
        super().__init__(home, self._clock, random_bytes, policy, protocols)
        self._protocols, self._has_maker = protocols, evaluate is None
        self._route_factory = route_factory
        self._sleep = sleep
        settings = home.settings()
        self._tools = RunContext(
            store=self.store,
            data_path=data_path or home.data_path,
            evaluate=evaluate or by_deadline(sleep),
            vault=Vault(self._key, random_bytes),
            settings=settings,
            client=self.client_of,
            now=self._now,
            random_bytes=random_bytes,
            clock=self._clock,
            checked=CheckedLists() if checked is None else checked,
        )
        self.waiting = WaitingLinks(self.store, lambda: self._tools.vault)
        self._manifests: dict[bytes, tuple[tuple[SignedHead, ...], bytes, Manifest]] = {}
        self._following = Following(self._tools, sleep)
        self._held = False

    # Deciding

    async def look(self, invite: Invite, language: str = "") -> ConsentSheet:
        """Fetch and verify the study of an invite and explain it, in its own texts of `language` if it has them.
        Nothing about the owner leaves."""
        manifest = await self.manifest(invite)
        policy, ledger = self.store.policy(), self.store.ledger()
        known = self.store.known_tellers()
        return await off_loop(explain, manifest, policy, ledger, self._now(), invite.address, known, language)

    async def manifest(self, invite: Invite) -> Manifest:
        """The verified manifest of an invite, fetched once. Nothing about the owner leaves."""
        return (await self._manifest(invite))[2]

    async def join(self, invite: Invite, approved_epsilon: int) -> Consent:
        """The owner's yes, up to `approved_epsilon` (1e-9): reserve the budget and store the enrolment, together.

        Enrolment leaves with the next step. Raises `Refused` with every objection, `Conflict` for a study joined
        before; then nothing was stored or sent.
        """
        looked_at, body, manifest = await self._manifest(invite)
        chain = await held_to(self.store, invite)(looked_at)
        now = self._now()
        policy = self.store.policy()
        consent = decide(manifest, policy, self.store.ledger(), approved_epsilon, now, invite.address)
        secrets = fresh(await off_loop(random_sizes, manifest), invite.code, self._random_bytes)
        joining = Joining(
            entry=_entry(consent, manifest, policy),
            invite=invite,
            manifest_bytes=body,
            minimum_cohort=consent.minimum_cohort,
            secrets=self._tools.vault.close(secrets.to_bytes()),
            enrolment=sealed_enrolment(manifest, secrets),
            due=draw_enrolment_time(manifest.timetable, self._tools.settings.enrol_spread, now, self._random_bytes),
            chain=encode_chain(chain),
            tellers=keys_named(manifest),
        )

        def permit(policy: Policy, ledger: Ledger) -> object:
            return decide(manifest, policy, ledger, approved_epsilon, now, invite.address)

        self.store.join(joining, permit)
        return consent

    def study_key(self, study: bytes) -> bytes:
        """The Ed25519 key (32 bytes) that this study's enrolment is signed by, for an aggregator's allow-list.

        Raises `Refused` once the study is over and its secrets are erased.
        """
        known = self.store.study(study)
        if not isinstance(known, OpenStudy):
            raise Refused(say("this study is over for you, and its keys are erased; join again"))
        return bytes(StudySecrets.from_bytes(self._tools.vault.open(known.secrets)).signing_key.verify_key)

    async def leave(self, study: bytes) -> None:
        """Leave a study: before closing with a signed withdrawal, later by sending nothing more.

        The unspent reservation returns at once; what is in the outbox stays charged. A withdrawal is stored here, and
        leaves by `deliver_withdrawal` or by whichever process runs this home. Raises `Refused` when the study is over
        or was left before, and in a home that was moved elsewhere.
        """
        self.store.demand_not_retired()
        self.store.leave(study, *departure(self.store.study(study), self._now(), self._tools.vault.open))

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
                    due = await self._following.step(study) or now
            await self._sleep(min(max(0.0, due - self._now()), deadline - now))
        return state

    # Pausing

    def pause(self, until: float, study: bytes | None = None) -> None:
        """Do nothing of this study, or of the whole home, until then (unix seconds); see `peer.store.pausing`.

        An exchange that is under way is not torn off. Raises `Refused` for an instant that has passed, a study that was
        never joined or is over, and in a home that was moved elsewhere.
        """
        self.store.demand_not_retired()
        if not self._now() < until < LONGEST_PAUSE + self._now():
            raise Refused(say("a pause ends in the future, within a year; choose another time"))
        if study is not None and self.store.state(study) in LAST:
            raise Refused(say("this study is over for you; there is nothing to pause"))
        self.store.pause(study, until)

    def resume(self, study: bytes | None = None) -> None:
        """End the pause of this study, or the home's own. Due jobs are done at their own times, never in a bunch."""
        self.store.demand_not_retired()
        self.store.pause(study, None)

    # Running

    async def step(self, study: bytes) -> float | None:
        """Do one due thing of a study; the unix time of the next, or None when it is over.

        Raises `Refused` while another process runs this home.
        """
        if self._held:
            return await self._following.step(study)
        with self._exclusively():
            return await self._following.step(study)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the home for many steps. Raises `Refused` while another process runs it."""
        with self._exclusively():
            self._held = True
            try:
                yield
            finally:
                self._held = False

    async def run(self, max_seconds: float | None = None, once: bool = False) -> None:
        """Run all studies side by side, also those joined meanwhile, for at most `max_seconds`.

        `once`: return as soon as no study has anything due within that time (without a limit: nothing due now).
        Raises `Refused` while another process runs this home.
        """
        limit = 0.0 if once and max_seconds is None else max_seconds
        deadline = None if limit is None else self._now() + limit
        with self._exclusively():
            await self._following.run(deadline, once)

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        with self._home.running():
            self.store.demand_not_retired()
            yield

    # Changing

    def set_policy(self, policy: Policy) -> None:
        """Replace the owner's policy."""
        self.store.set_policy(policy)

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
            self._following = Following(self._tools, self._sleep)

    @contextmanager
    def taking_back(self) -> Iterator[TakingBack]:
        """Deleting tables and erasing everything, in any thread."""
        with closing(Store(self._home.store_path, self._random_bytes)) as store:
            yield TakingBack(self._home, store, self._tools.data_path, self._now, self._tools.vault.open)

    # Within

    def client(self, invite: Invite) -> AggregatorClient:
        """The aggregator of a study, over the route of the moment."""
        return AggregatorClient(invite, self._route_factory(), self._random_bytes)

    def client_of(self, study: Study) -> AggregatorClient:
        """Of a study that was joined, also by an earlier version. Raises `Distrust` for another address than its."""
        check_address(study.manifest, study.address)
        return self.client(study.invite).serving(study.manifest)

    async def _manifest(self, invite: Invite) -> tuple[tuple[SignedHead, ...], bytes, Manifest]:
        if invite.study not in self._manifests:
            client = self.client(invite)
            chain, found = await client.opening(held_to(self.store, invite))
            if not chain or chain[0].head.kind != "manifest" or "manifest" not in found:
                raise Malformed(say("heads: the first document is not the manifest; do not take part"))
            body = found["manifest"]
            manifest = await off_loop(check_manifest, body, invite, self._protocols)
            if self._has_maker and manifest.design not in PROTOCOLS.designs:  # the maker is a program of its own
                raise Refused(say("the program that makes packets here does not know this study's protocol; decline"))
            chain = await heads_off_loop(check_continued, manifest, (), chain)
            await off_loop(check_tellers, manifest, found.get("tellers"))
            self._manifests[invite.study] = (chain, body, manifest)
        chain, body, manifest = self._manifests[invite.study]
        if manifest.aggregator_key != invite.key:
            raise Malformed(say("invite: another key than the manifest names; ask for the invite again"))
        check_address(manifest, invite.address)
        return chain, body, manifest


def _entry(consent: Consent, manifest: Manifest, policy: Policy) -> Entry:
    """The reservation that a consent makes."""
    charge = consent.charge
    return Entry(
        study=consent.study,
        title=manifest.title,
        aggregator=manifest.aggregator_key,
        data_set=policy.data_set,
        reserved=charge.amount,
        measure=charge.measure,
        unit=charge.unit,
        condition=charge.condition,
    )
