"""The rows that a restored store must forget: everything that may have left since the backup was taken. Fails
closed."""

from __future__ import annotations

import os
from pathlib import Path

from anon.text.sentences import say
from peer.rules.lifecycle import State
from peer.store.home import STORE_KEPT
from peer.store.records import Study
from peer.store.store import Store

SET_ASIDE = say("set aside by a restore: studies joined after the backup may have spent it")


def mark_restored(path: Path, now: float, final: bool) -> int:
    """Make a copied store safe to go on from at `now`; the number of studies that are not released any more. `now` is
    infinite where nobody said that the time is right: then every window may have opened.

    A final backup is the last word of its home, so nothing is assumed beyond it. Afterwards all is in the one file.
    """
    store = Store(path, os.urandom)
    try:
        doubtful = [] if final else [
            study
            for study in store.studies()
            if may_have_released(study, len(store.outbox(study.study)), now)
        ]
        name = b"restored" + os.urandom(8)
        store.restored([study.study for study in doubtful], "" if final else SET_ASIDE, name)
        return len(doubtful)
    finally:
        store.close()
        if path.with_name(f"{path.name}-wal").exists():
            raise STORE_KEPT.full(path, say("its log could not be emptied"))


def may_have_released(study: Study, decided: int, now: float) -> bool:
    """True if packets unknown to the backup may have left: a slot was open then, and a window has opened since."""
    if study.refused:
        return study.unchecked or study.state is State.CHECKED
    if now < study.manifest.timetable.settled:
        return False
    return study.unchecked or (study.state is State.CHECKED and decided < study.manifest.packets)
