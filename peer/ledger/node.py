"""One job at one node: may this round be answered, and with which bytes.

1. `begin`, before training: the job is put before its owner. Without a yes, over budget, paused or moved: `Refused`.
   A round that was answered before gets its stored bytes.
2. Training runs. It may fail: then the message is the declared missing answer, with the same noise and charge.
3. `finish`: the form of what training offers is held to the declaration, before any value is read. Anything that
   was not declared stops the job, and nothing leaves.
4. The message is clipped and gets its noise; charge and message are one commit; its bytes are returned to leave.

Not here: taking apart what a framework calls a message, and making a new one of the bytes alone
(`peer.ledger.in_flower`, `peer.ledger.in_nvflare`).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import field

from anon.errors import Refused
from anon.noise import RandomBytes
from anon.text.sentences import say
from anon.values import frozen
from peer.ledger.declaration import JobTerms, Offer
from peer.ledger.job_store import JobStore
from peer.store.home import PeerHome
from peer.store.ledger_marker import remember
from peer.view import made_ready

REFUSED: Final = "refused by the ledger of the data's owner"
"""All that a server is told of a refusal, whatever its reason."""
LOG: Final = logging.getLogger("anonml.ledger")


def _place(path: str | Path) -> Path:
    return Path(path).expanduser()


@frozen
class LedgerNode:
    """A job in a home. `random_bytes` must be the operating system's; `now` gives unix seconds.

    It opens the home for each call, so it may be copied to other processes.
    """

    home: Path = field(converter=_place)
    terms: JobTerms
    random_bytes: RandomBytes
    now: Callable[[], float]

    def begin(self, name: str) -> bytes | None:
        """Before training for the round of this name, as the server calls it: its stored message, None for a new
        round. Raises `Refused` where nothing may leave."""
        with self._opened() as store:
            store.ask(self.terms)
            return store.demand_open(self.terms.job, _key(name), self.now())

    def finish(self, name: str, offer: Offer | None, base: Mapping[str, Sequence[float]] | None = None) -> bytes:
        """After training: the message that may leave, charged and stored. `offer` None: training failed.

        Raises `Refused` where nothing may leave; then nothing was charged.
        """
        if (stored := self.begin(name)) is not None:
            return stored
        if self.terms.relative and base is None:
            raise Refused(say("the server sent no arrays as they are declared"))
        if offer is not None and (fault := self.terms.fault(offer)) is not None:
            self.stop(fault)
            raise Refused(say("{fault}; nothing left, and the job is stopped", fault=fault))
        message = self.terms.perturbed(offer, base if self.terms.relative else None, self.random_bytes)
        with self._opened() as store:
            return store.release(self.terms.job, _key(name), message)

    def stop(self, reason: str) -> None:
        """Stop the job until its owner was asked again."""
        with self._opened() as store:
            store.halt(self.terms.job, reason)

    @contextmanager
    def _opened(self) -> Iterator[JobStore]:
        home = PeerHome(self.home)
        made_ready(home)
        store = JobStore(home.store_path, self.random_bytes)
        try:
            remember(home, store.installation())
            yield store
        finally:
            store.close()


def _key(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
