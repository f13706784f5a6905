"""The raw events of ten courses through the real feature queries: what each student's own machine would compute.

Each student's events are imported into a data file of their own by the peer's importer, and the study's SQL runs over
it in the peer's sandbox. The result is kept in a file, for the queries of 10,558 students take some minutes.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from aggregator.lab.simulation.people import People, people_from_values
from anon.protocols.categories import Value
from anon.protocols.histogram.sections import OnePacket, Paper
from anon.study.features import Feature, Label, Learning, Table
from anon.study.proposal import Proposal
from benchmarks.paper.studies import proposal, rounded
from peer.data.evaluate_here import evaluate_here
from peer.data.importing import import_rows

FILE = "kddcup2015_events_10courses.csv.gz"
TITLE = "Leaving an online course (XuetangX, raw events of ten courses)"
EVENTS = ("time", "source", "event", "object_no", "object_category")
TABLES = (Table("events", EVENTS), Table("outcome", ("dropout",)))
GUESS = 0.8
WINDOW = 30 * 86400

_GAPS = "SELECT epoch(time) - lag(epoch(time)) OVER (ORDER BY time) AS gap FROM events"

# (name, range, scale, missing, description, query); :as_of is the end of the course's 30 days.
QUERIES: tuple[tuple[str, tuple[float, float], str, float, str, str], ...] = (
    ("actions", (0, 3000), "log", 0, "How many events your log has.", "SELECT count(*) FROM events"),
    (
        "active_days", (0, 30), "linear", 0, "On how many days you were there.",
        "SELECT count(DISTINCT substr(time, 1, 10)) FROM events",
    ),
    (
        "last_seen", (0, 30), "linear", 30, "Days from your last event to the end of the window.",
        "SELECT (:as_of - max(epoch(time))) / 86400.0 FROM events",
    ),
    (
        "first_seen", (0, 30), "linear", 30, "Days from the start of the window to your first event.",
        f"SELECT (min(epoch(time)) - (:as_of - {WINDOW})) / 86400.0 FROM events",
    ),
    (
        "last_ten_days", (0, 1000), "log", 0, "How many events in the last ten days of the window.",
        "SELECT count(*) FROM events WHERE epoch(time) >= :as_of - 864000",
    ),
    (
        "longest_gap", (0, 30), "linear", 30, "The longest time that passed without you, in days.",
        f"SELECT max(gap) / 86400.0 FROM ({_GAPS})",
    ),
    (
        "sittings", (0, 100), "log", 0, "How many sittings you had, half an hour or more apart.",
        f"SELECT 1 + total(gap > 1800) FROM ({_GAPS})",
    ),
    (
        "videos", (0, 500), "log", 0, "How often you used a video.",
        "SELECT count(*) FROM events WHERE event = 'video'",
    ),
    (
        "problems", (0, 500), "log", 0, "How often you worked on a problem.",
        "SELECT count(*) FROM events WHERE event = 'problem'",
    ),
    (
        "discussion", (0, 500), "log", 0, "How often you were in the discussion.",
        "SELECT count(*) FROM events WHERE event = 'discussion'",
    ),
    (
        "objects", (0, 300), "log", 0, "How many different parts of the course you opened.",
        "SELECT count(DISTINCT object_no) FROM events",
    ),
    (
        "hour_variance", (0, 60), "linear", 60, "How much the hour of the day at which you study varies.",
        "SELECT variance((epoch(time) % 86400) / 3600.0) FROM events",
    ),
    (
        "browser_share", (0, 1), "linear", 0, "Which share of your events came from your browser.",
        "SELECT avg(source = 'browser') FROM events",
    ),
)  # fmt: skip

LABEL = Label(
    "dropout", "No event in the ten days after the window.", "SELECT dropout FROM outcome", (1,), (0,), "negative"
)


def features(bins: int) -> list[Feature]:
    """The thirteen features, as many as the paper has, with so many bins each."""
    return [
        Feature(name, "numeric", text, query, missing, span, bins, scale=scale)
        for name, span, scale, missing, text, query in QUERIES
    ]


def papers() -> Proposal:
    """By the paper's design."""
    design = Paper("paper", epsilon_histogram=0.5, epsilon_binning=0.5)
    return proposal(TITLE, LABEL, features(2), design, Learning("logistic", "vote", "f1", 0.3), TABLES)


def ours(bins: int) -> Proposal:
    """One packet per student."""
    design = OnePacket("one-packet", epsilon=1.0)
    return proposal(TITLE, LABEL, features(bins), design, Learning(score_share=0.1), TABLES)


def people(study: Proposal, file: Path, cache: Path) -> People:
    """Every student's features and label, by the study's own queries."""
    return people_from_values(study.label, _values(study, file, cache))


def _values(study: Proposal, file: Path, cache: Path) -> Iterator[tuple[dict[str, Value], Value]]:
    asked = json.dumps([[one.name, one.query] for one in study.features] + [study.label.query])
    kept = cache / f"courses-{hashlib.sha256(asked.encode()).hexdigest()[:12]}.json"
    if not kept.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        found = [[dict(values), label] for values, label in evaluate(study, file)]
        kept.write_text(json.dumps(found))
    for values, label in json.loads(kept.read_text()):
        yield {name: value if value is None else rounded(value) for name, value in values.items()}, label


def evaluate(study: Proposal, file: Path) -> Iterator[tuple[dict[str, Value], Value]]:
    """Import each student's events as a peer does, and run every query in the peer's sandbox at the window's end."""
    tables = {table.name: table.columns for table in study.tables}
    students, ends = _students(file)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "student.sqlite"
        for (course, _), rows in students.items():
            events = [tuple(row[name] for name in EVENTS) for row in rows]
            import_rows(database, "events", EVENTS, events, durable=False)
            import_rows(database, "outcome", ("dropout",), [(int(rows[0]["dropout"]),)], durable=False)
            found = evaluate_here(database, study.features, study.label, ends[course], tables=tables)
            yield dict(found.values), found.label


def _students(file: Path) -> tuple[dict[tuple[str, str], list[dict[str, str]]], dict[str, int]]:
    """Each student's rows, and the end of each course's 30 days, which the platform publishes."""
    students: dict[tuple[str, str], list[dict[str, str]]] = {}
    starts: dict[str, str] = {}
    with gzip.open(file, "rt", newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if not row["dropout"]:  # one enrolment of one event, which its publisher could not link to a label
                continue
            students.setdefault((row["course_id"], row["enrollment_id"]), []).append(row)
            starts[row["course_id"]] = min(starts.get(row["course_id"], row["time"]), row["time"])
    begun = {course: datetime.fromisoformat(first[:10]).replace(tzinfo=UTC) for course, first in starts.items()}
    return students, {course: int(day.timestamp()) + WINDOW for course, day in begun.items()}
