"""Queries of many rows: a record for each key, a seeded draw of too many, and a message of one size for every data
set."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from anon.errors import Malformed
from anon.queries import process
from anon.queries.answers import LABEL, Question, Request, answered, nothing, parse_answers
from anon.queries.lint import Bounds, lint
from anon.queries.records import Draw
from anon.queries.sandbox import opened

TABLES = {"visit": ("day", "minutes", "late")}
ASKED = (
    Question("numeric", "SELECT day, minutes FROM visit"),
    Question(LABEL, "SELECT day, late FROM visit", ("yes", "no")),
)
SEED = bytes(range(32)).hex()


def data(folder: Path, rows: list[tuple[object, object, object]]) -> Path:
    path = folder / "data.sqlite"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE visit (day, minutes, late)")
        connection.executemany("INSERT INTO visit VALUES (?, ?, ?)", rows)
        connection.commit()
    return path


def asked(
    path: Path, most: int = 5, seed: str = SEED, questions: tuple[Question, ...] = ASKED, **more: object
) -> Request:
    return Request(path, TABLES, questions, 0, most=most, seed=seed, **more)  # type: ignore[arg-type]


def message(request: Request) -> bytes:
    with opened(request.database, request.tables, request.bounds) as sandbox:
        return answered(sandbox, request)


def records(request: Request) -> list[tuple[object, ...]]:
    values = parse_answers(request, message(request))
    each = len(request.questions)
    return [values[at : at + each] for at in range(0, len(values), each)]


def test_a_record_is_a_key_with_the_values_beside_it(tmp_path: Path) -> None:
    path = data(tmp_path, [(1, 10, "yes"), ("b", 20.5, "no"), (3.0, None, "maybe"), (4, "late", 1)])
    assert sorted(records(asked(path)), key=str) == sorted(
        [(10.0, "yes"), (20.5, "no"), (None, None), (None, 1.0)], key=str
    )


def test_a_key_that_comes_twice_has_no_value_and_one_that_is_none_no_record(tmp_path: Path) -> None:
    keys = [1, 1, 1, None, b"x", 0.5, float("inf"), "k" * 1001]
    assert records(asked(data(tmp_path, [(key, 5, "yes") for key in keys]))) == [(None, None)]


def test_a_key_that_one_query_alone_gives_is_a_record(tmp_path: Path) -> None:
    few = (Question("numeric", "SELECT day, minutes FROM visit WHERE day > 1"), ASKED[1])
    path = data(tmp_path, [(1, 5, "yes"), (2, 6, "no")])
    assert set(records(asked(path, questions=few))) == {(None, "yes"), (6.0, "no")}


ROWS: list[tuple[object, object, object]] = [(day, day, "yes") for day in range(300)]


@pytest.mark.slow
def test_too_many_are_cut_by_a_draw_that_depends_on_seed_and_keys_alone(tmp_path: Path) -> None:
    first = records(asked(data(tmp_path, ROWS), 40))
    assert len(first) == 40 == len(set(first))
    assert records(asked(data(tmp_path, list(reversed(ROWS))), 40)) == first
    changed = records(asked(data(tmp_path, [(day, -1, "no") for day, _, _ in ROWS]), 40))
    assert changed == [(-1.0, "no")] * 40
    other = records(asked(data(tmp_path, ROWS), 40, bytes(32).hex()))
    assert other != first and 40 < len({*first, *other}) < 80
    days = [
        float(str(value))
        for seed in range(60)
        for value, _ in records(asked(tmp_path / "data.sqlite", 40, f"{seed:064x}"))
    ]
    assert 140 < sum(days) / len(days) < 159  # of 2400 draws; the standard error is 1.6


@pytest.mark.parametrize("most", [1, 7, 40])
def test_a_record_in_place_of_another_changes_at_most_one_of_those_kept(tmp_path: Path, most: int) -> None:
    kept = {*records(asked(data(tmp_path, ROWS), most))}
    apart = set()
    for place in range(0, 300, 12):
        rows = [*ROWS[:place], (1000 + place, 1000 + place, "no"), *ROWS[place + 1 :]]
        found = {*records(asked(data(tmp_path, rows), most))}
        assert len(found) == most
        apart.add(len(kept - found))
    assert apart <= {0, 1} and (most < 40 or apart == {0, 1})


@pytest.mark.parametrize("rows", [[], ROWS[:3], ROWS, [(day, None, "x") for day in range(5)]])
def test_a_message_has_one_size_and_no_more_records_than_declared(
    tmp_path: Path, rows: list[tuple[object, object, object]]
) -> None:
    request = asked(data(tmp_path, rows), 5)
    sent = message(request)
    assert len(sent) == request.size == 4 + 5 * 2 * 9 == len(nothing(request))
    assert len(records(request)) == min(len(rows), 5)


def test_a_query_that_does_not_end_leaves_no_value(tmp_path: Path) -> None:
    endless = Question(
        "numeric", "SELECT a.day, a.minutes FROM visit a, visit b, visit c, visit d ORDER BY b.day, c.day, d.day"
    )
    failing = Question("numeric", "SELECT day, abs(-9223372036854775807 - (day > 3)) FROM visit")
    path = data(tmp_path, ROWS[:30])
    found = records(asked(path, 40, questions=(endless, failing, *ASKED), bounds=Bounds(steps=50_000)))
    assert len(found) == 30 and {one[:2] for one in found} == {(None, None)}
    assert {one[2:] for one in found} == {(float(day), "yes") for day in range(30)}


def test_a_message_that_was_altered_has_no_record(tmp_path: Path) -> None:
    request = asked(data(tmp_path, ROWS[:3]))
    sent = message(request)
    assert len(parse_answers(request, sent)) == 6
    for wrong in (
        sent[:-1],
        sent + b"\0",
        b"\6" + sent[1:],
        b"\2" + sent[1:],
        sent[:-1] + b"\1",
        sent[:4] + b"\7" + sent[5:],
    ):
        assert parse_answers(request, wrong) == ()


@pytest.mark.process
def test_children_answer_messages_that_no_socket_holds(tmp_path: Path) -> None:
    rows: list[tuple[object, object, object]] = [(day, day / 7, "no") for day in range(30_000)]
    request = asked(data(tmp_path, rows), 20_000)
    assert request.size > 300_000
    expected = parse_answers(request, message(request))
    assert len(expected) == 40_000 and process.at_once(request, 600.0) == expected

    async def is_whole() -> bool:
        """A query that the clock cuts leaves its column empty: of more time, some is enough."""
        await process.start()
        for seconds in (2.0, 8.0, 30.0, 120.0):
            if parse_answers(request, await process.by_deadline(process.queries(request), seconds)) == expected:
                return True
        return False

    assert asyncio.run(is_whole())


def test_the_lint_demands_two_columns() -> None:
    lint("SELECT day, minutes FROM visit", TABLES, many=True)
    for query in ("SELECT minutes FROM visit", "SELECT day, minutes, late FROM visit"):
        with pytest.raises(Malformed, match="expected two columns, the key of a record and its value"):
            lint(query, TABLES, many=True)
    with pytest.raises(Malformed):
        lint("SELECT day, minutes FROM visit", TABLES)


def test_ranks_tell_a_number_from_its_text_and_hide_the_seed() -> None:
    draw = Draw(3, b"seed")
    assert len({draw.rank(1), draw.rank("1"), Draw(3, b"seed ").rank(1), draw.rank("\ud800")}) == 4
    assert draw.rank(1) == Draw(9, b"seed").rank(1)
