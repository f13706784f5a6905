"""edX tracking logs and Moodle logs as these systems write them."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from examples.mooc import edx
from examples.mooc.behaviour import Action
from peer.data.importing import import_file
from peer.data.preview import preview
from tests.support.real_exports import MOODLE_HEADINGS, edx_lines, moodle_csv, moodle_json, moodle_rows, tarred, zipped


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("name", ["tracking.log", "tracking.log.gz", "edx-events-2024-02-05.log.gz", "log.jsonl"])
def test_an_edx_log_becomes_the_table_events(tmp_path: Path, name: str) -> None:
    file, data = tmp_path / name, ("\n".join(edx_lines()) + "\n").encode()
    file.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    seen = preview(file)
    assert (seen.format, [(one.name, one.count) for one in seen.tables], seen.problems) == ("edx", [("events", 6)], ())
    summary = import_file(tmp_path / "d.sqlite", file)
    assert (summary.table, summary.rows, summary.skipped, summary.format) == ("events", 6, 0, "edx")
    assert summary.columns[:14] == (
        "time", "username", "session", "event_source", "event_type", "name", "event", "context", "page", "referer",
        "ip", "host", "agent", "accept_language",
    )  # fmt: skip
    assert summary.columns[14:] == ("context_extra",), "what an event brings beyond the common fields is kept"
    found = rows(
        tmp_path / "d.sqlite",
        "select event_source, json_extract(event, '$.id') from events where event_type like '%video%'",
    )
    assert found == [("browser", "v1"), ("mobile", "v1"), ("browser", "v1")], (
        "a string of JSON and an object read alike"
    )
    assert rows(tmp_path / "d.sqlite", "select distinct json_extract(context, '$.user_id') from events") == [(7,)]


def test_every_common_field_is_a_column_even_where_no_event_has_it(tmp_path: Path) -> None:
    file = tmp_path / "tracking.log"
    file.write_text('{"time": "2024-02-05T10:00:00+00:00", "event_type": "seq_next", "event_source": "browser"}\n')
    assert len(import_file(tmp_path / "d.sqlite", file).columns) == 14
    assert rows(tmp_path / "d.sqlite", "select session, event from events") == [(None, None)]


def test_the_example_courses_own_logs_are_edx_logs(tmp_path: Path) -> None:
    lines = edx.render(edx.identity(0), [Action(60.0, 1, "check", "p1"), Action(90.0, 1, "play_video", "v1")])
    (tmp_path / "own.log").write_text("".join(line + "\n" for line in lines))
    assert preview(tmp_path / "own.log").format == "edx"


def test_broken_lines_of_a_log_are_counted_by_number_and_reason(tmp_path: Path) -> None:
    good = edx_lines(6)
    lines = [
        good[0],
        good[1][:40],
        "",
        "secret",
        good[2],
        '{"secret": ' + "[" * 5000,
        json.dumps({"event": "x" * 2**21}),
    ]
    (tmp_path / "t.log").write_text("\n".join([*lines, *good[2:]]))
    summary = import_file(tmp_path / "d.sqlite", tmp_path / "t.log", "t")
    assert (summary.rows, summary.skipped, summary.skipped_lines) == (6, 4, (2, 4, 6, 7))
    assert summary.reasons == {"could not be read": 3, "longer than the limit": 1}
    assert "secret" not in repr(summary)


def test_the_parts_of_an_edx_package_become_one_table(tmp_path: Path) -> None:
    lines = edx_lines()
    parts: dict[str, str | bytes] = {
        "edx/events/2024-02-05.log": "\n".join(lines[:3]),
        "edx/events/2024-02-06.log": "\n".join([*lines[3:], "secret"]),
    }  # fmt: skip
    folder = tmp_path / "package"
    for name, content in parts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.gz").write_bytes(gzip.compress(str(content).encode()))
    for file in (zipped(tmp_path / "p.zip", parts), tarred(tmp_path / "p.tar.gz", parts), folder):
        summary = import_file(tmp_path / "d.sqlite", file)
        assert (summary.format, summary.table, summary.rows, summary.skipped) == ("edx", "events", 6, 1)
        assert rows(tmp_path / "d.sqlite", "select count(*) from events") == [(6,)], "again replaces"


# --- Moodle ---


@pytest.mark.parametrize("language", MOODLE_HEADINGS)
def test_a_moodle_log_in_any_language_has_the_same_columns(tmp_path: Path, language: str) -> None:
    (tmp_path / "logs_CS1_20240205-1421.csv").write_text(moodle_csv(language), encoding="utf-8")
    seen = preview(tmp_path / "logs_CS1_20240205-1421.csv")
    assert (seen.format, seen.tables[0].name, seen.tables[0].count, seen.problems) == ("moodle", "moodle_log", 2, ())
    summary = import_file(tmp_path / "d.sqlite", tmp_path / "logs_CS1_20240205-1421.csv")
    assert summary.columns == (
        "time", "user_full_name", "affected_user", "event_context", "component", "event_name", "description", "origin",
        "ip_address", "time_iso",
    )  # fmt: skip
    assert rows(
        tmp_path / "d.sqlite", "select time_iso, affected_user, event_name, origin, ip_address from moodle_log"
    ) == [
        ("2024-02-05T14:21:00", None, "Quiz attempt started", "web", "198.51.100.7"),
        ("2024-01-28T09:05:00", "Ada Beispiel", "Course viewed", "ws", "2001:db8::7"),
    ]


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_a_moodle_log_saved_again_by_a_spreadsheet(tmp_path: Path, delimiter: str, encoding: str) -> None:
    lines = [MOODLE_HEADINGS["de"].split(","), *([cell.replace('"', "'") for cell in row] for row in moodle_rows("de"))]
    (tmp_path / "l.csv").write_bytes("\r\n".join(delimiter.join(line) for line in lines).encode(encoding))
    assert import_file(tmp_path / "d.sqlite", tmp_path / "l.csv").format == "moodle"
    assert rows(tmp_path / "d.sqlite", "select user_full_name, time_iso from moodle_log") == [
        ("Ada Beispiel", "2024-02-05T14:21:00"), ("Ada Beispiel", "2024-01-28T09:05:00"),
    ]  # fmt: skip


def test_moodles_json_has_no_headings(tmp_path: Path) -> None:
    (tmp_path / "logs.json").write_text(moodle_json(), encoding="utf-8")
    summary = import_file(tmp_path / "d.sqlite", tmp_path / "logs.json")
    assert (summary.format, summary.rows, summary.skipped) == ("moodle", 2, 0)
    assert rows(tmp_path / "d.sqlite", "select event_context, time_iso from moodle_log")[0] == (
        'Quiz: Week 1, part "b"',
        "2024-02-05T14:21:00",
    )
    (tmp_path / "none.json").write_text("[[]]")
    assert import_file(tmp_path / "d.sqlite", tmp_path / "none.json").rows == 0, "a log of somebody who did nothing"


def test_the_sites_log_has_the_course_before_the_rest(tmp_path: Path) -> None:
    lines = ["Course," + MOODLE_HEADINGS["en"], 'CS1,"5/02/24, 14:21",Ada,-,x,System,Course viewed,y,web,198.51.100.7']
    (tmp_path / "l.csv").write_text("\n".join(lines) + "\n")
    import_file(tmp_path / "d.sqlite", tmp_path / "l.csv")
    assert rows(tmp_path / "d.sqlite", "select course, time from moodle_log") == [("CS1", "5/02/24, 14:21")]


@pytest.mark.parametrize(("times", "iso", "says"), [
    (("2/05/24, 02:21 PM", "1/28/24, 09:05 AM"), ["2024-02-05T14:21:00", "2024-01-28T09:05:00"], "month/day/year"),
    (("5/02/24, 14:21", "4/02/24, 09:05"), ["2024-02-05T14:21:00", "2024-02-04T09:05:00"], "do not tell"),
    (("2024-02-05 14:21:07", "Monday"), ["2024-02-05T14:21:07", None], ""),
])
def test_day_and_month_are_told_apart_by_the_whole_file(
    tmp_path: Path, times: tuple[str, str], iso: list[str | None], says: str
) -> None:
    body = "".join(f'"{time}",Ada,-,x,System,y,z,web,198.51.100.7\n' for time in times)
    (tmp_path / "l.csv").write_text(MOODLE_HEADINGS["en"] + "\n" + body)
    summary = import_file(tmp_path / "d.sqlite", tmp_path / "l.csv")
    assert [time for (time,) in rows(tmp_path / "d.sqlite", "select time_iso from moodle_log")] == iso
    assert [says in note for note in summary.notes] == [True] * bool(says)


def test_another_csv_of_nine_columns_is_no_moodle_log(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("a,b,c,d,e,f,g,h,i\n" + "1,2,3,4,5,6,7,8,9\n" * 3)
    assert import_file(tmp_path / "d.sqlite", tmp_path / "own.csv").table == "own"
