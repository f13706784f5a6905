"""One time of pairing being on, from the first process to the last leftover.

    hold the folder -> tor -> onion service for these keys -> listener -> announce -> until it ends -> everything off

It ends by its owner's word (here or from another process), when its time is over, when every phone is revoked, or when
its tor dies. When this process is killed the kernel ends tor with it, and links, sessions and keys were in its memory.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence

from attrs import field

from anon.errors import Unreachable
from anon.machine.guard import Guard
from anon.text.sentences import say
from anon.values import frozen
from anon.wire.invite import Invite
from peer.app import PeerApp
from peer.pairing.listener import PhoneListener
from peer.pairing.onion import PhoneOnion
from peer.pairing.phones import Phone, PhoneGate
from peer.pairing.reach import PeerInReach, no_peer, run_nothing
from peer.pairing.state import PairingFolder, PairingState, folder_of
from peer.run.supervisor import Supervisor
from peer.store.home import PeerHome
from peer.web.site import Site
from peer.web.uploads import Staging

POLL_SECONDS = 0.25
LARGEST_UPLOAD = 2**30
MOST_WAITING = 8
ALL_REVOKED = say("every phone is revoked")
TIME_OVER = say("its time is over")
TOLD = say("you switched it off")


@frozen
class PairingOffer:
    """The content of one phone's codes: the service's host, and its own link and key. Good once, while pairing is
    on."""

    phone: Phone
    host: str
    link: str = field(repr=False)

    @property
    def key(self) -> str:
        """The key as a phone's Tor asks for it."""
        return self.phone.key.secret_text()


@frozen
class Pairing:
    """Pairing for named phones, for `seconds`. `run` it once.

    `invites`: links whose consent screens can be read. `announce` hears, once everything is up, what to show;
    `progress` how far tor has got, each time in place of the last, and at the end an empty line.
    """

    peer: PeerApp
    home: PeerHome
    names: Sequence[str]
    seconds: float
    announce: Callable[[Sequence[PairingOffer]], None]
    progress: Callable[[str], None] = field(default=lambda line: None)
    invites: Sequence[Invite] = ()
    now: Callable[[], float] = time.time
    random_bytes: Callable[[int], bytes] = field(default=os.urandom, repr=False)

    async def run(self, stopped: asyncio.Event) -> str:
        """Keep pairing on until it ends; why it did. Raises `Refused` or `Unreachable` when it never came up, or tor
        died. Whatever happens, nothing is on afterwards."""
        gate = PhoneGate(self.names, self.random_bytes, self.now)
        folder = folder_of(self.home)
        with folder.held(), folder.socket() as socket:
            site = self._site(gate, folder)
            try:
                onion = await PhoneOnion.start(folder.tor, socket, self.progress)
                try:
                    host = await onion.opened(gate.admitted())
                    listener = PhoneListener(site, gate, host)
                    try:
                        await listener.start(socket)
                        return await self._until_over(_Standing(folder, gate, onion, listener, host), stopped)
                    finally:
                        gate.close()
                        await listener.close()
                finally:
                    await onion.close()
            finally:
                await site.close()

    def _site(self, gate: PhoneGate, folder: PairingFolder) -> Site:
        staging = Staging(folder.path, self.random_bytes, LARGEST_UPLOAD, MOST_WAITING)
        reach, data, supervisor = PeerInReach(self.peer), self.home.data_path, Supervisor(run_nothing)
        site = Site(reach, no_peer, data, supervisor, gate, staging, self.now, self.random_bytes, paired=True)
        site.invites.update(self.peer.waiting)  # a copy: a phone answers none of them
        site.invites.update((invite.study, invite) for invite in self.invites)
        return site

    async def _until_over(self, standing: _Standing, stopped: asyncio.Event) -> str:
        began, elapsed = self.now(), time.monotonic()
        until = began + self.seconds
        origin = f"http://{standing.host}"
        gate, told, guard = standing.gate, None, Guard("pairing's folder", ends=(Unreachable,))
        self.announce([PairingOffer(phone, standing.host, gate.link_of(phone, origin)) for phone in gate.phones])
        while True:
            # A clock that is set back must not lengthen it; one that stands while the machine sleeps must not either.
            left = min(until - self.now(), self.seconds - (time.monotonic() - elapsed))
            if left <= 0:
                return TIME_OVER
            try:
                async with asyncio.timeout(left):  # nor may a tor that does not answer
                    with guard.turn():
                        if stopped.is_set() or await standing.asked_to_end():
                            return TOLD
                        state = PairingState(began, until, gate.records())
                        if state != told:
                            standing.folder.write(state)
                            told = state
            except TimeoutError:
                return TIME_OVER
            if not gate.admitted():
                return ALL_REVOKED
            if not standing.onion.alive:
                raise Unreachable(say(
                    "tor has ended, so pairing is off; `anonml peer pair` begins anew, with other keys",
                ))
            await _pause(stopped)


@frozen
class _Standing:
    folder: PairingFolder
    gate: PhoneGate
    onion: PhoneOnion
    listener: PhoneListener
    host: str

    async def asked_to_end(self) -> bool:
        """Do what was wished meanwhile: revoke at once, session first; whether to end is the answer."""
        wishes = self.folder.wishes()
        new = [listed for listed in self.gate.phones if listed.number in wishes.revoke and not listed.revoked]
        for phone in new:
            self.gate.revoke(phone.number)
            self.listener.cut_off(phone.number)
        if new:
            await self.onion.narrow(self.gate.admitted())
        return wishes.off


async def _pause(stopped: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(POLL_SECONDS):
            await stopped.wait()
    except TimeoutError:
        pass
