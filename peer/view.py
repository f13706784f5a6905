"""The owner's view of a home: studies, receipts, budget. It needs no route, no passphrase, and nothing that runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from anon.ldp import NanoEpsilon
from anon.protocols.charge import LOCAL
from anon.protocols.registry import Protocols, charge_of
from anon.text.sentences import attributed, joined
from peer.rules.consent import Policy
from peer.rules.ledger import Ledger
from peer.rules.lifecycle import LAST
from peer.rules.tellers import KnownTellers
from peer.store.database.migrations import upgrade_home
from peer.store.home import PeerHome
from peer.store.ledger_marker import demand_ledger, remember
from peer.store.records import Study
from peer.store.store import Store
from peer.store.summaries import Receipt, StudyStatus

if TYPE_CHECKING:
    from anon.accounting.statement import Accounting
    from anon.study.features import Table


def made_ready(home: PeerHome) -> None:
    """Make the home if there is none, and bring it up to date. Raises `Refused`, `Damaged`."""
    home.prepare()
    upgrade_home(home)
    demand_ledger(home)


class HomeView:
    """Everything that an owner can look at in a home that was `made_ready`.

    `now` gives unix seconds; `random_bytes` must be the operating system's; `policy` is the first one of a new home.
    Holds three file descriptors until `close`.
    """

    def __init__(
        self,
        home: PeerHome,
        now: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        policy: Policy | None = None,
        protocols: Protocols | None = None,
    ) -> None:
        self._home = home
        self._now = now
        self._random_bytes = random_bytes
        self.store = Store(home.store_path, random_bytes, policy, protocols)
        remember(home, self.store.installation())

    def close(self) -> None:
        """Close the store. The next call opens it again."""
        self.store.close()

    def status(self) -> list[StudyStatus]:
        """Every study that was ever joined."""
        ledger = self.store.ledger()
        return [self._status(study, ledger) for study in self.store.studies()]

    def tables_read(self) -> tuple[Table, ...]:
        """The tables of all studies that are not over, each once: the newest study's columns of it."""
        stored = [self.store.study(status.study) for status in self.status() if status.state not in LAST]
        read = [table for study in stored if not study.refused for table in study.manifest.tables]
        return tuple({table.name: table for table in read}.values())

    def receipts(self) -> list[Receipt]:
        """One receipt per slot that was decided, over all studies."""
        return [
            Receipt(told.study, told.title, slot.slot, slot.survey, told.held(slot.epsilon), slot.status, slot.word)
            for told in self.status()
            for slot in told.slots
        ]

    def accounting(self, study: bytes) -> Accounting | None:
        """See `accounting_of`."""
        return accounting_of(self.store.study(study))

    def budget(self) -> Ledger:
        """The ledger: lifetime, available, every entry, and views by aggregator and data set."""
        return self.store.ledger()

    def known_tellers(self) -> KnownTellers:
        """The tellers of every study that was joined."""
        return self.store.known_tellers()

    def policy(self) -> Policy:
        """The owner's policy."""
        return self.store.policy()

    def evidence(self) -> list[tuple[bytes, str, bytes]]:
        """(study, what, proof) of everything an aggregator was caught at."""
        return self.store.evidence()

    def paused_until(self, study: bytes | None = None) -> float | None:
        """The end of the pause in force for this study (its own or the home's) or the home; None without one."""
        until = self.store.paused_until(study)
        return until if until > self._now() else None

    def _status(self, study: Study, ledger: Ledger) -> StudyStatus:
        entry = ledger.entry(study.study)
        reserved, spent = (entry.reserved, entry.spent) if entry is not None else (0, 0)
        told = "" if study.state in LAST else self.store.troubles(study.study).told()
        return StudyStatus(
            study.study,
            entry.title if entry is not None else study.study.hex()[:16],
            study.state,
            joined(map(attributed, filter(None, (study.reason, told)))),
            NanoEpsilon(reserved),
            NanoEpsilon(spent),
            tuple(self.store.outbox(study.study)),
            entry.budget if entry is not None else LOCAL,
            lambda: None if study.refused else study.manifest,
        )


def accounting_of(study: Study) -> Accounting | None:
    """The cost of a study's perturbed packets, by its manifest and the signed heads seen; None before its roster.

    Takes up to some seconds: beside a loop that times packets, in a thread.
    """
    from anon.accounting.statement import account, batch_of_chain

    if study.refused or charge_of(study.manifest).budget != LOCAL:
        return None
    batch = batch_of_chain(study.manifest, study.chain)
    return account(study.manifest, batch) if batch is not None else None
