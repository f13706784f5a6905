"""The generated cohort: the same bytes for the same seed, and lines that a reader of edX tracking logs would accept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from examples.mooc import course
from examples.mooc.generate import Student, generate, write_cohort

STUDENTS = 40
OBSERVED_UNTIL = course.START + timedelta(weeks=course.OBSERVED_WEEKS)


@pytest.fixture(scope="module")
def cohort() -> list[Student]:
    return list(generate(STUDENTS, seed=5))


@pytest.fixture(scope="module")
def records(cohort: list[Student]) -> list[dict[str, Any]]:
    return [json.loads(line) for student in cohort for line in student.lines]


def _moment(record: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(record["time"])


@pytest.mark.slow
def test_the_seed_decides_everything(cohort: list[Student]) -> None:
    assert cohort == list(generate(STUDENTS, seed=5))
    assert cohort[:7] == list(generate(7, seed=5))
    assert cohort != list(generate(STUDENTS, seed=6))


@pytest.mark.slow
def test_every_line_has_the_fields_of_a_tracking_log(records: list[dict[str, Any]]) -> None:
    for record in records:
        assert {"username", "event_source", "event_type", "time", "session", "event", "context", "ip", "agent", "host",
                "page"} == set(record)
        assert record["event_source"] in ("browser", "server")
        assert record["context"]["course_id"] == course.COURSE_ID
        assert len(record["session"]) == 32
        assert record["time"].endswith("+00:00")
        assert course.START <= _moment(record) < course.START + timedelta(weeks=course.WEEKS, days=1)


@pytest.mark.slow
def test_browser_events_hold_text_and_server_events_an_object(records: list[dict[str, Any]]) -> None:
    for record in records:
        kind, event = record["event_type"], record["event"]
        if record["event_source"] == "browser" or kind.startswith("/"):
            assert isinstance(event, str)
            if kind not in ("page_close", "problem_check"):
                assert isinstance(json.loads(event), dict)
        else:
            assert isinstance(event, dict)


@pytest.mark.slow
def test_all_kinds_of_events_occur(records: list[dict[str, Any]]) -> None:
    found = Counter((record["event_source"], record["event_type"]) for record in records)
    browser = ("play_video", "pause_video", "seek_video", "stop_video", "seq_next", "seq_goto", "page_close")
    assert all(found["browser", kind] for kind in (*browser, "problem_check", "problem_show"))
    forum = ("thread.created", "response.created", "comment.created", "searched")
    assert all(found["server", f"edx.forum.{kind}"] for kind in forum)
    assert found["server", "problem_check"] == found["browser", "problem_check"] > 0
    assert found["server", "showanswer"] > 0


@pytest.mark.slow
def test_checked_problems_tell_a_consistent_story(cohort: list[Student]) -> None:
    for student in cohort:
        attempts: Counter[str] = Counter()
        for record in map(json.loads, student.lines):
            if record["event_type"] != "problem_check" or record["event_source"] != "server":
                continue
            event = record["event"]
            attempts[event["problem_id"]] += 1
            assert event["attempts"] == attempts[event["problem_id"]] <= 4
            assert event["success"] in ("correct", "incorrect")
            assert (event["grade"], event["max_grade"]) == (int(event["success"] == "correct"), 1)


def test_a_log_is_one_persons_and_in_order(cohort: list[Student]) -> None:
    seen: set[int] = set()
    for student in cohort:
        own = [json.loads(line) for line in student.lines]
        assert {record["username"] for record in own} == {student.name}
        seen.add(*{record["context"]["user_id"] for record in own})
        assert all(_moment(earlier) <= _moment(later) for earlier, later in pairwise(own))
    assert len(seen) == STUDENTS


def test_everyone_is_still_active_in_week_six(cohort: list[Student]) -> None:
    for student in cohort:
        moments = [_moment(json.loads(line)) for line in student.lines]
        assert any(OBSERVED_UNTIL - timedelta(weeks=1) <= moment < OBSERVED_UNTIL for moment in moments)


@pytest.mark.slow
def test_shuffling_exchanges_only_what_comes_after_week_six(cohort: list[Student]) -> None:
    def parts(students: list[Student]) -> tuple[list[list[str]], list[list[str]]]:
        bound = OBSERVED_UNTIL.isoformat()
        early = [[line for line in student.lines if json.loads(line)["time"] < bound] for student in students]
        late = [[json.loads(line)["time"] for line in student.lines[len(first) :]]
                for student, first in zip(students, early, strict=True)]
        return early, late

    shuffled = list(generate(STUDENTS, seed=5, shuffle_labels=True))
    assert shuffled == list(generate(STUDENTS, seed=5, shuffle_labels=True))
    (early, late), (early_shuffled, late_shuffled) = parts(cohort), parts(shuffled)
    assert early == early_shuffled
    assert sorted(late) == sorted(late_shuffled)
    assert sum(own == other for own, other in zip(late, late_shuffled, strict=True) if own) < STUDENTS / 2
    assert all({json.loads(line)["username"] for line in student.lines} == {student.name} for student in shuffled)


def test_files_hold_the_lines(tmp_path: Path, cohort: list[Student]) -> None:
    files = write_cohort(tmp_path / "logs", 3, seed=5)
    assert [file.name for file in files] == [f"{student.name}.jsonl" for student in cohort[:3]]
    assert [tuple(file.read_text(encoding="utf-8").splitlines()) for file in files] == [
        student.lines for student in cohort[:3]
    ]
    with pytest.raises(FileExistsError, match="empty folder"):
        write_cohort(tmp_path / "logs", 3, seed=5)


def test_the_command_writes_the_same(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "examples.mooc.generate", "--students", "2", "--seed", "9", "--shuffle-labels"]
    done = subprocess.run([*command, "--out", str(tmp_path)], cwd=root, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("2 logs")
    expected = ["".join(line + "\n" for line in s.lines) for s in generate(2, seed=9, shuffle_labels=True)]
    assert [file.read_text(encoding="utf-8") for file in sorted(tmp_path.glob("*.jsonl"))] == expected


def test_an_empty_cohort_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        next(generate(0, seed=1))


def test_the_calendar_is_the_one_the_queries_hold() -> None:
    study = (Path(__file__).resolve().parents[2] / "examples" / "mooc" / "study.toml").read_text(encoding="utf-8")
    observed = course.START + timedelta(weeks=course.OBSERVED_WEEKS)
    dropout = course.START + timedelta(weeks=course.DROPOUT_WEEK - 1)
    ends = course.START + timedelta(weeks=course.WEEKS)
    assert course.START.weekday() == 0
    assert course.START.tzinfo is UTC
    for moment in (observed, dropout, ends):
        assert f"'{moment.date().isoformat()}'" in study
    assert f"epoch(time) - {int(course.START.timestamp())}" in study
