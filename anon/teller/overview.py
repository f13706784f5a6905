"""How far a teller's studies are, read beside the process that serves them; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from anon.sharing.quorum import Quorum, parse_quorum
from anon.sharing.statements import list_heading, parse_list
from anon.storage.durable import connect, reading
from anon.study.manifest import Manifest, parse_manifest
from anon.teller.journal import KEPT, SCHEMA
from anon.text.sentences import Term
from anon.transparency.fingerprint import words
from anon.values import frozen

OVER = "over"
"""The stage of a study whose keys were erased, at its end or because this teller left it."""
_STUDIES = """SELECT study, manifest, arrangement, teller, offers.sealing != x''
    FROM studies LEFT JOIN offers USING (study) ORDER BY study"""
_MEMBERS = "SELECT members FROM rolls WHERE study = ?"
_COUNTS = "SELECT round, slot, count(*), sum(accepted) FROM shares WHERE study = ? GROUP BY round, slot"
_ENDS = "SELECT round, slot, list, noisy NOT NULL, evidence NOT NULL FROM ends WHERE study = ?"


@frozen
class SumStatus:
    """One sum: its stage, and packets taken and accepted so far.

    Once there is a list, `accepted` is its length. None: not known any more, because the shares are erased.
    """

    round: int
    slot: int
    stage: str
    taken: int | None
    accepted: int | None

    @property
    def said(self) -> str:
        """In a line: the stage, and what is known of the packets."""
        counts = (("taken", self.taken), ("accepted", self.accepted))
        known = ", ".join(f"{word} {count}" for word, count in counts if count is not None)
        return f"round {self.round + 1}, slot {self.slot + 1}: {self.stage}" + (f"; packets {known}" if known else "")


@frozen
class StudyOverview:
    """One study: what was countersigned, its stage, its members once the roster came, and its sums.

    `quorum`: the tellers that make the sums; with a spare one pair of them, and a study has two entries then. `fellow`:
    the other teller of that pair.
    """

    manifest: Manifest
    quorum: Quorum
    stage: str
    members: int | None
    sums: tuple[SumStatus, ...]
    fellow: str = ""

    @property
    def study(self) -> bytes:
        """The study's id."""
        return self.quorum.study

    @property
    def needed_until(self) -> int:
        """Unix seconds: for the last sum the aggregator asks until then at most."""
        return self.manifest.sums_until

    def figures(self) -> dict[str, object]:
        """For `--json`."""
        pair = {"with": self.fellow} if self.fellow else {}
        return {
            "study": self.study.hex(),
            "fingerprint": words(self.study),
            "title": self.manifest.title,
            "contact": self.manifest.contact,
            "aggregator": self.manifest.aggregator_key.hex(),
            "minimum": self.quorum.whole.minimum,
            "enrolment_closes": self.manifest.timetable.enrol_closes,
            "answers_close": self.manifest.windows[-1].closes,
            "needed_until": self.needed_until,
            **pair,
            "stage": self.stage,
            "members": self.members,
            "sums": [
                {
                    "round": status.round,
                    "slot": status.slot,
                    "stage": status.stage,
                    "taken": status.taken,
                    "accepted": status.accepted,
                }
                for status in self.sums
            ],
        }


def overview(file: Path) -> list[StudyOverview]:
    """Every study that this teller countersigned, `by_time`. Raises `Damaged`, and `Refused` for a newer program's
    journal."""
    if not file.exists():
        return []
    SCHEMA.demand_own(file)
    with closing(connect(file, KEPT, isolation_level=None, timeout=30)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'studies'").fetchone():
            return []
        with reading(file, KEPT, Term("a study")):
            found = [_study(connection, *row) for row in connection.execute(_STUDIES).fetchall()]
    return by_time(found)


def by_time(studies: Iterable[StudyOverview]) -> list[StudyOverview]:
    """Those that are not over first, and each time the newest first."""
    return sorted(studies, key=lambda study: (study.stage == OVER, -study.manifest.timetable.published, study.study))


def _study(
    connection: Any, study: bytes, manifest: bytes, arrangement: bytes, teller: int, running: int | None
) -> StudyOverview:
    quorum = parse_quorum(study, arrangement)
    members = next((row[0] for row in connection.execute(_MEMBERS, (quorum.study,)).fetchall()), None)
    counts = {row[:2]: row[2:] for row in connection.execute(_COUNTS, (study,)).fetchall()}
    ends = {row[:2]: row[2:] for row in connection.execute(_ENDS, (quorum.study,)).fetchall() if _is_of(row[2], quorum)}
    sums = [_sum((planned.round, planned.slot), counts, ends, bool(running)) for planned in quorum.arrangement.sums]
    stage = OVER if not running else "countersigned" if members is None else "running"
    fellow = quorum.arrangement.tellers[1 - teller].name if quorum.whole.has_spare else ""
    return StudyOverview(parse_manifest(manifest), quorum, stage, members, tuple(sums), fellow)


def _is_of(listed: bytes | None, quorum: Quorum) -> bool:
    """True for an end of this pair."""
    return listed is None or list_heading(listed).study == quorum.id


def _sum(
    place: tuple[int, int], counts: Mapping[tuple[int, int], Any], ends: Mapping[tuple[int, int], Any], running: bool
) -> SumStatus:
    listed, noisy, stopped = ends.get(place, (None, 0, 0))
    kept = running and not noisy and not stopped
    taken, accepted = counts.get(place, (0, 0) if kept else (None, None))
    if listed is not None:
        accepted = len(parse_list(listed, list_heading(listed)).tags)
    elif taken is not None:
        accepted = accepted or 0
    told = {"stopped: tellers disagree": stopped, "done": noisy, "list signed": listed, "taking packets": taken}
    stage = next((text for text, reached in told.items() if reached), "waiting" if running else "ended without a sum")
    return SumStatus(*place, stage, taken, accepted)
