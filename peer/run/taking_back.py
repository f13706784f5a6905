"""The owner takes data back: one table, or everything but what keeps a budget from being spent twice.

A peer's sending, its times and its number of packets depend on nothing in its data, and so on no deletion either. A
study that is under way goes on: what is not there counts as missing, and the packet leaves all the same. To send
nothing, its owner leaves the study, which is asked for beside the deletion.

Erased values are overwritten in the files of the home. That is no promise for SSDs, for file systems that copy on
write, nor for copies elsewhere (docs/threats.md). Killed midway, it is repeated as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path

from anon.errors import Refused
from anon.storage.overwriting import remove_file, remove_folder
from anon.text.sentences import say
from anon.values import frozen
from peer.data.deleting import delete_all, delete_table, demand_table
from peer.data.evaluate import missing
from peer.rules.lifecycle import LAST, State
from peer.run.leaving import OPEN, Departure, departure, silent_departure
from peer.store.home import INCOMING, PeerHome, RunElsewhere
from peer.store.home_contents import Fate, entries
from peer.store.records import Study
from peer.store.store import Store

RUNS = (
    say(
        "another process runs this peer (`anonml peer run` or `open`); stop it where it runs, or by `anonml peer "
        "autostart off` if it starts at login, and repeat this. Nothing was deleted"
    )
)
_TRACES = (
    say(
        "your data are deleted, but this home's own file still holds traces of them: another program reads it, or "
        "the disk is full; close other windows of this peer, make room, and repeat this"
    )
)
LEFT = say("you left when you deleted your data")


class Choice(StrEnum):
    """The fate of studies under way that read a deleted table."""

    GO_ON = "go-on"  # answers that were worked out are kept for the packets still to be made
    MISSING = "missing"  # they are erased, and count as missing
    LEAVE = "leave"


@frozen
class Erasure:
    """The result of erasing everything: studies to whose aggregators a withdrawal is owed, and files of somebody else's
    that were left alone."""

    leaving: tuple[Study, ...]
    unknown: tuple[str, ...]


def _reads(study: Study, table: str) -> bool:
    return any(table == read.name for read in study.manifest.tables)


@frozen
class TakingBack:
    """One home's, with a store of its own: it may work in a thread. `opened` opens stored secrets; without it no
    withdrawal can be signed."""

    home: PeerHome
    store: Store
    data_path: Path
    now: Callable[[], float]
    opened: Callable[[bytes], bytes] | None

    def concerned(self, table: str) -> list[Study]:
        """The studies under way that read a table and are not answered to the end."""
        return [
            study
            for study in self.store.studies()
            if study.state in (*OPEN, State.CHECKED) and not study.refused and _reads(study, table)
        ]

    def titles(self) -> list[str]:
        """The titles of the studies that are not over, as the ledger has them: a manifest may be refused by now."""
        known = {entry.study: entry.title for entry in self.store.ledger().entries}
        return [known.get(study.study, study.study.hex()[:8]) for study in self.under_way()]

    def under_way(self) -> list[Study]:
        """Every study that is not over."""
        return [study for study in self.store.studies() if study.state not in LAST]

    def delete_table(self, table: str, choice: Choice) -> list[Study]:
        """Delete a table, and treat the studies that it concerns by the owner's choice; which they are.

        Copies of files that wait to be imported go with it: they may hold the same rows. Raises `Refused` for no such
        table, and while another process runs the home or uses the data; then nothing is changed.
        """
        demand_table(self.data_path, table)
        with self._alone():
            concerned = self.concerned(table)

            def before() -> None:
                self._treat(concerned, choice)
                self._remove_copies()

            delete_table(self.data_path, table, before=before)
            self._rewrite()
            return concerned

    def erase(self, tell: bool) -> Erasure:
        """Erase everything but ledger, receipts, evidence, policy and settings.

        All studies are left: with `tell`, aggregators whose enrolment is open are owed a withdrawal, which stays until
        it is delivered; else nothing more leaves. Raises `Refused` while another process runs or reads the home, or
        lets a phone in; then nothing is changed.
        """
        with self._alone(), self.home.unpaired():
            delete_all(self.data_path, before=lambda: self._leave_all(tell))
            for path in entries(self.home.path, Fate.GOES):
                remove_folder(path) if path.is_dir() else remove_file(path)
            self.store.forget()
            self._rewrite()
        unknown = tuple(path.name for path in entries(self.home.path, Fate.UNKNOWN))
        return Erasure(tuple(study for study in self.store.studies() if study.state is State.LEAVING), unknown)

    def _remove_copies(self) -> None:
        for folder in (self.home.path / INCOMING, self.home.path / "pairing" / INCOMING):
            for copy in folder.glob("*/*/"):  # a page holds the folder above for as long as it runs
                remove_folder(copy)

    def _treat(self, concerned: list[Study], choice: Choice) -> None:
        for study in self.under_way():
            if study.refused:  # which tables it reads is not known, and nothing of it will ever be sent
                self.store.leave_all({study.study: silent_departure(study)}, study.refused)
        if choice is Choice.LEAVE:
            self.store.leave_all({study.study: self._departure(study) for study in concerned}, LEFT)
        elif choice is Choice.MISSING:
            self.store.blank({study.study: missing(study.manifest) for study in concerned})

    def _leave_all(self, tell: bool) -> None:
        told = tell and not self.store.retired()
        left = {
            study.study: self._departure(study) if told else silent_departure(study)
            for study in self.under_way()
            if not (told and study.state is State.LEAVING)
        }
        for path in entries(self.home.path, Fate.GOES):  # overwritten here: the store only unlinks copies of itself
            if path.name.startswith(self.home.store_path.name):
                remove_file(path)
        self.store.leave_all(left, LEFT)

    def _departure(self, study: Study) -> Departure:
        if self.opened is None or self.store.retired():
            return silent_departure(study)
        return departure(study, self.now(), self.opened)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No study runs meanwhile: an answer that was being worked out would be stored after its data were deleted."""
        with ExitStack() as held:
            try:
                held.enter_context(self.home.running())
            except RunElsewhere:
                raise Refused(RUNS) from None
            held.enter_context(self.home.uncopied())
            yield

    def _rewrite(self) -> None:
        if not self.store.compact():
            raise Refused(_TRACES)
