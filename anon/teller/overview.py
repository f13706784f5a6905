"""How far a teller's studies are, read beside the process that serves them; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from anon.kit.terminal.foreign import short
from anon.sharing.quorum import Quorum, parse_quorum
from anon.sharing.statements import list_heading, parse_disagreement, parse_list
from anon.storage.durable import connect, reading
from anon.study.manifest import Manifest, parse_manifest
from anon.teller.dates import runs_ahead
from anon.teller.journal import KEPT, SCHEMA
from anon.text.sentences import Term
from anon.transparency.fingerprint import words
from anon.values import frozen

OVER = "over"
"""The stage of a study whose keys were erased, at its end or because this teller left it."""
_STUDIES = "SELECT study, manifest, arrangement, teller, ended FROM studies ORDER BY study"
_MEMBERS = "SELECT members FROM rolls WHERE study = ?"
_PARTS = "SELECT teller FROM parts WHERE study = ?"
_COUNTS = """SELECT round, slot, count(*), sum(accepted), sum(accepted IS NULL)
    FROM shares WHERE study = ? GROUP BY round, slot"""
_ENDS = "SELECT round, slot, list, noisy NOT NULL, evidence FROM ends WHERE study = ?"


@frozen
class SumStatus:
    """One sum: its stage, packets taken and accepted so far, and why there is no noisy share of it yet, or ever.

    Once there is a list, `accepted` is its length. None: not known any more, because the shares are erased.
    `alone`: its round has no other.
    """

    round: int
    slot: int
    stage: str
    taken: int | None
    accepted: int | None
    why: str = ""
    alone: bool = True

    @property
    def said(self) -> str:
        """In a line: the stage, what is known of the packets, and why the sum is missing."""
        counts = (("taken", self.taken), ("accepted", self.accepted))
        known = ", ".join(f"{word} {count}" for word, count in counts if count is not None)
        told = [self.stage, *([f"packets {known}"] if known else []), *([self.why] if self.why else [])]
        which = "" if self.alone else f", sum {self.slot + 1}"
        return f"round {self.round + 1}{which}: {'; '.join(told)}"


@frozen
class StudyOverview:
    """One study: what was countersigned, its stage, its members once the roster came, and its sums. `ended`: unix
    seconds, once it is over.

    `quorum`: the tellers that make the sums; with a spare one pair of them, and a study has two entries then. `fellow`:
    the other teller of that pair.
    """

    manifest: Manifest
    quorum: Quorum
    stage: str
    members: int | None
    sums: tuple[SumStatus, ...]
    ended: int | None = None
    fellow: str = ""

    @property
    def study(self) -> bytes:
        """The study's id."""
        return self.quorum.study

    @property
    def needed_until(self) -> int:
        """Unix seconds: for the last sum the aggregator asks until then at most."""
        return self.manifest.sums_until

    def runs_ahead(self, now: float) -> bool:
        """True where it came before its own dates, by now (unix seconds) or by its end (`anon.teller.dates`)."""
        rounds = {status.round for status in self.sums if status.taken or status.accepted}
        at = now if self.ended is None else self.ended
        return self.members is not None and runs_ahead(self.manifest, rounds, at)

    def figures(self, now: float) -> dict[str, object]:
        """For `--json`. `noise`: the standard deviation of each teller's, in the units of that sum's integers."""
        pair = {"with": self.fellow} if self.fellow else {}
        return {
            "study": self.study.hex(),
            "fingerprint": words(self.study),
            "title": self.manifest.title,
            "contact": self.manifest.contact,
            "aggregator": self.manifest.aggregator_key.hex(),
            "minimum": self.quorum.whole.minimum,
            "runs_ahead": self.runs_ahead(now),
            "enrolment_closes": self.manifest.timetable.enrol_closes,
            "answers_close": self.manifest.windows[-1].closes,
            "needed_until": self.needed_until,
            **pair,
            "stage": self.stage,
            "ended": self.ended,
            "members": self.members,
            "sums": [
                {
                    "round": status.round,
                    "slot": status.slot,
                    "stage": status.stage,
                    "taken": status.taken,
                    "accepted": status.accepted,
                    "why": status.why,
                    "noise": float(planned.sigma_squared) ** 0.5,
                }
                for status, planned in zip(self.sums, self.quorum.whole.sums, strict=True)
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
    connection: Any, study: bytes, manifest: bytes, arrangement: bytes, teller: int, ended: int | None
) -> StudyOverview:
    quorum = parse_quorum(study, arrangement)
    members = next((row[0] for row in connection.execute(_MEMBERS, (quorum.study,)).fetchall()), None)
    parts = {row[0] for row in connection.execute(_PARTS, (study,)).fetchall()}
    counts = {row[:2]: row[2:] for row in connection.execute(_COUNTS, (study,)).fetchall()}
    ends = {row[:2]: row[2:] for row in connection.execute(_ENDS, (quorum.study,)).fetchall() if _is_of(row[2], quorum)}
    knows = _Knows(quorum, teller, members is not None, parts, ended is None)
    sums = [_sum((planned.round, planned.slot), counts, ends, knows) for planned in quorum.arrangement.sums]
    stage = OVER if ended is not None else "countersigned" if members is None else "running"
    fellow = quorum.arrangement.tellers[1 - teller].name if quorum.whole.has_spare else ""
    return StudyOverview(parse_manifest(manifest), quorum, stage, members, tuple(sums), ended, fellow)


def _is_of(listed: bytes | None, quorum: Quorum) -> bool:
    """True for an end of this pair."""
    return listed is None or list_heading(listed).study == quorum.id


@frozen
class _Knows:
    """The knowledge of a teller about a study beside its sums. `parts`: the fellows whose parts of the key are here."""

    quorum: Quorum
    teller: int
    has_roster: bool
    parts: set[int]
    runs: bool

    def names(self, numbers: Iterable[int]) -> str:
        return " and ".join(short(self.quorum.arrangement.tellers[number].name) for number in sorted(numbers))

    @property
    def fellows(self) -> set[int]:
        return {number for number in range(len(self.quorum.arrangement.tellers)) if number != self.teller}

    def why(self, listed: bool, taken: int | None, unsettled: int | None, evidence: bytes | None) -> str:
        """The reason why a sum has no noisy share: what it waits for or, once the study is over, what never came."""
        never = "" if self.runs else " never came"
        if evidence is not None:
            told = parse_disagreement(evidence, self.quorum.study, self.quorum.whole)
            signed = sorted({told.arrangement.tellers[number].name for number in told.tellers})
            return f"two lists were signed by {' and '.join(map(short, signed))}"
        if listed:
            missing = f"the signature of {self.names(self.fellows)} under the list"
        elif unsettled:
            missing = f"what {self.names(self.fellows)} found in {unsettled} packets"
        elif taken:
            missing = "the list of packets, which the staff's program makes"
        elif not self.has_roster:
            missing = "the list of members, which the staff's program makes"
        elif self.runs and self.parts != self.fellows:
            missing = f"a part of the key, by {self.names(self.fellows - self.parts)}"
        else:
            missing = "packets, until the last member may have answered" if self.runs else "a list of enough packets"
        return missing + never if never else f"waits for {missing}"


def _sum(
    place: tuple[int, int], counts: Mapping[tuple[int, int], Any], ends: Mapping[tuple[int, int], Any], knows: _Knows
) -> SumStatus:
    listed, noisy, evidence = ends.get(place, (None, 0, None))
    kept = knows.runs and not noisy and evidence is None
    taken, accepted, unsettled = counts.get(place, (0, 0, 0) if kept else (None, None, None))
    why = "" if noisy else knows.why(listed is not None, taken, unsettled, evidence)
    if listed is not None:
        accepted = len(parse_list(listed, list_heading(listed)).tags)
    elif taken is not None:
        accepted = accepted or 0
    told = {
        "stopped: tellers disagree": evidence is not None,
        "done": noisy,
        "list signed": listed,
        "taking packets": taken,
    }
    otherwise = "waiting" if knows.runs else "ended without a sum"
    stage = next((text for text, reached in told.items() if reached), otherwise)
    alone = sum(planned.round == place[0] for planned in knows.quorum.arrangement.sums) == 1
    return SumStatus(*place, stage, taken, accepted, why, alone)
