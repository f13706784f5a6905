"""How far a teller's studies are, read beside the process that serves them; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from attrs import frozen

from anon.sharing.arrangement import parse_arrangement
from anon.storage.durable import connect, reading
from anon.study.manifest import parse_manifest
from anon.teller.journal import KEPT, SCHEMA
from anon.transparency.fingerprint import words

_STUDIES = """SELECT study, manifest, arrangement, offers.sealing != x'', rolls.members
    FROM studies LEFT JOIN offers USING (study) LEFT JOIN rolls USING (study) ORDER BY study"""
_COUNTS = "SELECT round, slot, count(*), sum(accepted) FROM shares WHERE study = ? GROUP BY round, slot"
_ENDS = "SELECT round, slot, list NOT NULL, noisy NOT NULL, evidence NOT NULL FROM ends WHERE study = ?"


@frozen
class SumStatus:
    """One sum: packets taken and accepted so far, both 0 once its shares are erased, and its stage."""

    round: int
    slot: int
    stage: str
    taken: int
    accepted: int


@frozen
class StudyOverview:
    """One study: its title and stage, its members once the roster came, and its sums."""

    study: bytes
    title: str
    stage: str
    members: int | None
    sums: tuple[SumStatus, ...]

    def figures(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "study": self.study.hex(),
            "fingerprint": words(self.study),
            "title": self.title,
            "stage": self.stage,
            "members": self.members,
            "sums": [
                {"round": one.round, "slot": one.slot, "stage": one.stage, "taken": one.taken, "accepted": one.accepted}
                for one in self.sums
            ],
        }


def overview(file: Path) -> list[StudyOverview]:
    """Every study that this teller countersigned. Raises `Damaged`, and `Refused` for a newer program's journal."""
    if not file.exists():
        return []
    SCHEMA.demand_own(file)
    with closing(connect(file, KEPT, isolation_level=None, timeout=30)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'studies'").fetchone():
            return []
        with reading(file, KEPT, "a study"):
            return [_study(connection, *row) for row in connection.execute(_STUDIES).fetchall()]


def _study(
    connection: Any, study: bytes, manifest: bytes, arrangement: bytes, running: int | None, members: int | None
) -> StudyOverview:
    counts = {row[:2]: row[2:] for row in connection.execute(_COUNTS, (study,)).fetchall()}
    ends = {row[:2]: row[2:] for row in connection.execute(_ENDS, (study,)).fetchall()}
    sums = [_sum((one.round, one.slot), counts, ends) for one in parse_arrangement(arrangement).sums]
    stage = "over" if not running else "countersigned" if members is None else "running"
    return StudyOverview(study, parse_manifest(manifest).title, stage, members, tuple(sums))


def _sum(
    place: tuple[int, int], counts: Mapping[tuple[int, int], Any], ends: Mapping[tuple[int, int], Any]
) -> SumStatus:
    taken, accepted = counts.get(place, (0, 0))
    signed, noisy, stopped = ends.get(place, (0, 0, 0))
    told = {"stopped: tellers disagree": stopped, "done": noisy, "list signed": signed, "taking packets": taken}
    stage = next((text for text, reached in told.items() if reached), "waiting")
    return SumStatus(*place, stage, taken, accepted or 0)
