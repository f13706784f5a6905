"""A file that does not look as a study wants it: columns are named, one person is picked, commas are read, gaps are
told."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from peer.web.views.data import DeclaredTable, suggested
from tests.support.fake_aggregator import DECLARED
from tests.support.visiting import Got, Visited, visited

SLEEP = b"years,cups,tired\n41,many,0\n"


@pytest.fixture
async def newcomer(tmp_path: Path) -> AsyncIterator[Visited]:
    """With a link that waits for an answer, and without data."""
    async with visited(tmp_path, data=False) as page:
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        await page.get("/start/data")
        yield page


def _place(seen: Got, page: Visited) -> str:
    return seen.url.removeprefix(page.server.address)


async def _told(page: Visited, seen: Got, **fields: str) -> Got:
    """The page after an import, with what it says of it once."""
    place = _place(seen, page)
    return await page.post(place, seen.form(place) | {"answer": "import", "minimum_cohort": "3"} | fields)


async def _import(page: Visited, seen: Got, **fields: str) -> Got:
    done = await _told(page, seen, **fields)
    return await page.get(done.url) if done.status == 200 else done


def _rows(page: Visited, columns: str = "age, cups, tired") -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(page.home.data_path)) as database:
        return database.execute(f"SELECT {columns} FROM person").fetchall()


async def test_a_column_of_another_name_is_named_by_its_owner_and_remembered(newcomer: Visited) -> None:
    page = newcomer
    seen = await page.upload("sleep.csv", SLEEP, "start")
    assert "Which column is age ?" in seen.words and seen.form(_place(seen, page))["table"] == "person"
    left = await _import(page, seen)
    assert (
        left.status == 400
        and "say which column of the file is “age”" in left.words.lower()
        and page.server.site.tables() == {}
    )
    done = await _import(page, seen, **{"column.age": "years"})
    assert done.url.endswith(page.invite) and "Your data lacks" not in done.words
    assert _rows(page) == [(41, "many", 0)]
    again = await page.upload("sleep.csv", SLEEP.replace(b"41", b"42"), "start")
    assert '<option value="years" selected>' in again.text
    assert (await _import(page, again, **{"column.age": "years", "mode": "replace"})).status == 200
    assert _rows(page) == [(42, "many", 0)]


async def test_a_column_that_is_not_there_is_confirmed_and_never_refused(newcomer: Visited) -> None:
    page = newcomer
    seen = await page.upload("sleep.csv", b"age,cups\n41,many\n", "start")
    done = await _import(page, seen, **{"column.tired": "-"})
    assert "no column person.tired" in done.words and page.server.site.tables() == {"person": ("age", "cups")}
    twice = await page.upload("sleep.csv", b"x,y\n1,2\n", "start")
    fields = {"table": "person", "compared": "person", "column.age": "x", "column.cups": "x", "column.tired": "-"}
    assert "chosen twice" in (await _import(page, twice, **fields)).words


async def test_a_column_that_has_all_words_of_the_name_is_suggested(newcomer: Visited) -> None:
    seen = await newcomer.upload("sleep.csv", b"Age in years,cups,tired\n41,many,0\n", "start")
    assert '<option value="age_in_years" selected>' in seen.text


async def test_columns_that_no_study_reads_stay_out_unless_they_are_kept(newcomer: Visited) -> None:
    page = newcomer
    file = b"years,cups,tired,remark\n41,many,0,secret\n"
    seen = await page.upload("sleep.csv", file, "start")
    assert "left out unless you keep them: “years”, “remark”" in seen.words and "Your age." in seen.words
    await _import(page, seen, **{"column.age": "years"})
    assert page.server.site.tables() == {"person": ("age", "cups", "tired")}
    again = await page.upload("sleep.csv", file, "start")
    await _import(page, again, **{"column.age": "years", "unread": "keep", "mode": "replace"})
    assert page.server.site.tables() == {"person": ("age", "cups", "tired", "remark")}


async def test_empty_cells_of_a_computed_column_are_named(tmp_path: Path) -> None:
    text = DECLARED.replace('"SELECT age FROM person"', '"SELECT avg(age) FROM person"')
    assert text != DECLARED
    async with visited(tmp_path, text=text, data=False) as page:
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        await page.get("/start/data")
        seen = await page.upload("sleep.csv", b"age,cups,tired\n41,many,0\n,few,1\n", "start")
        assert "age : empty in 1 of the first 2 rows" in seen.words


async def test_no_column_is_chosen_to_say_whose_row_it_is(newcomer: Visited) -> None:
    seen = await newcomer.upload("sleep.csv", b"age,cups,tired\n41,many,0\n30,few,1\n", "start")
    assert seen.form(_place(seen, newcomer))["person_column"] == "" and "More limits" in seen.words


async def test_a_log_of_many_people_asks_which_one_is_you(newcomer: Visited) -> None:
    page = newcomer
    log = b"User full name,age,cups,tired\nAnn Bee,41,many,0\nBob Cee,old,none,1\nDot Dee,23,some,1\n"
    seen = await page.upload("log.csv", log, "start")
    assert "Which one is you?" in seen.words and '<option value="Bob Cee">' in seen.text
    assert "has several rows. Keep one row" in seen.words
    assert "say which one is you" in (await _import(page, seen)).words.lower() and page.server.site.tables() == {}
    nobody = await _import(page, seen, person="Eve")
    assert nobody.status == 400 and "No row has that value" in nobody.words and page.server.site.tables() == {}
    assert (await _import(page, seen, person=" ann  BEE ")).url.endswith(page.invite)
    assert _rows(page) == [(41, "many", 0)], "one text of somebody else makes no text of my number"


async def test_all_rows_are_taken_where_the_owner_says_so(newcomer: Visited) -> None:
    seen = await newcomer.upload("log.csv", b"student,age,cups,tired\na,1,many,0\nb,2,none,1\n", "start")
    await _import(newcomer, seen, whose="all")
    assert len(_rows(newcomer)) == 2


async def test_a_column_of_people_with_another_name_can_be_chosen(newcomer: Visited) -> None:
    seen = await newcomer.upload("log.csv", b"wer,age,cups,tired\na,1,many,0\nb,2,none,1\n", "start")
    assert "Which one is you?" not in seen.words and "Rows of other people in it?" in seen.words
    await _import(newcomer, seen, person_column="wer", person="b")
    assert _rows(newcomer) == [(2, "none", 1)]


async def test_decimal_commas_are_numbers(newcomer: Visited) -> None:
    seen = await newcomer.upload("sleep.csv", b"age;cups;tired\n41,5;many;0\n", "start")
    assert 'title="numbers with a decimal comma' in seen.text
    await _import(newcomer, seen)
    assert _rows(newcomer) == [(41.5, "many", 0)]


@pytest.mark.parametrize(("reading", "age"), [("decimal", 1.234), ("thousands", 1234.0), ("text", "1,234")])
async def test_a_comma_that_can_mean_two_things_is_asked_about(newcomer: Visited, reading: str, age: object) -> None:
    seen = await newcomer.upload("sleep.csv", b"age;cups;tired\n1,234;many;0\n", "start")
    assert "How are the numbers in age written?" in seen.words
    assert "say how the numbers of “age” are written" in (await _import(newcomer, seen)).words.lower()
    await _import(newcomer, seen, **{"numerals.age": reading})
    assert _rows(newcomer) == [(age, "many", 0)]


async def test_values_that_would_count_as_missing_are_named_before_consent(newcomer: Visited) -> None:
    log = b"age,cups,tired\n41,many,0\n,Many,0\nn/a,none,2\n900,none,1\n"
    seen = await newcomer.upload("sleep.csv", log, "start")
    for said in (
        "age : empty in 1 of the first 4 rows.", "age : no number in 1 of the first 4 rows (n/a).",
        "age : outside of the study's range in 1 of the first 4 rows (900).",
        "cups : none of the study's values in 1 of the first 4 rows (Many).",
        "tired : none of the study's values in 1 of the first 4 rows (2).",
    ):
        assert said in seen.words, (said, seen.words)
    await _import(newcomer, seen, **{"numerals.age": "point", "whose": "all"})
    assert _rows(newcomer, "age") == [(41,), (None,), (None,), (900,)], (
        "one text among numbers makes no text of the numbers"
    )


async def test_a_file_of_other_columns_is_compared_with_the_table_that_studies_read(newcomer: Visited) -> None:
    """A table that is there may have come from the wrong file: the next one takes its place, once it was compared."""
    page = newcomer
    await _import(page, await page.upload("sleep.csv", b"age,cups,tired\n41,many,0\n", "start"))
    seen = await page.upload("old.csv", b"year,place\n1999,here\n")
    assert seen.form(_place(seen, page))["table"] == "person" and "Which column is age ?" in seen.words
    assert "say which column of the file is “age”" in (await _import(page, seen)).words.lower()
    assert page.server.site.tables() == {"person": ("age", "cups", "tired")} and _rows(page) == [(41, "many", 0)]
    shown = await _told(page, seen, table="other")
    assert "other" in page.server.site.tables() and "No study reads this" in shown.words


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text", "fields"), [
    (
        "deutsch.csv",
        b"Alter;Tassen;Matt\n52;none;1\n",
        {"column.age": "alter", "column.cups": "tassen", "column.tired": "matt"},
    ),
    ("mine (2).csv", b"age,cups,tired\n52,none,1\n", {}),
    ("person.csv", b"age,cups,tired\n52,none,1\n", {}),
])
@pytest.mark.parametrize("back", ["start", ""])
async def test_the_values_shown_are_those_of_the_last_file_chosen(
    newcomer: Visited, name: str, text: bytes, fields: dict[str, str], back: str
) -> None:
    page = newcomer
    first = await _import(page, await page.upload("someone.csv", b"age,cups,tired\n41,many,0\n", "start"))
    assert "41" in first.words and first.url.endswith(page.invite)
    seen = await page.upload(name, text, back)
    assert seen.form(_place(seen, page))["table"] == "person"
    done = await _told(page, seen, **fields)
    assert "Imported: 1 row into “person”." in done.words, done.words
    shown = (await page.get(page.invite)).words
    assert "52" in shown and "none" in shown and "41" not in shown.split("What it costs")[0]


async def test_a_file_that_no_study_reads_leads_to_no_consent_with_the_values_before(newcomer: Visited) -> None:
    page = newcomer
    await _import(page, await page.upload("someone.csv", b"age,cups,tired\n41,many,0\n", "start"))
    done = await _told(page, await page.upload("deutsch.csv", b"x\n52\n", "start"), table="deutsch")
    assert done.url.endswith("/start/data"), "not on to a consent screen with somebody else's values"
    assert "Imported: 1 row into “deutsch”. No study reads this: your studies go on reading “person”." in done.words


def test_where_several_tables_are_read_the_owner_says_which() -> None:
    two = (DeclaredTable("log", True, False), DeclaredTable("person", True, False))
    assert suggested(two, "deutsch") == "" and suggested(two[:1], "deutsch") == "log" == suggested(two, "log")
    assert suggested((), "deutsch") == "deutsch"
    assert suggested((DeclaredTable("log", True, True), two[1]), "deutsch") == "log"
    assert suggested((two[0], DeclaredTable("person", False, False)), "deutsch") == "person"


async def test_a_file_of_which_no_column_fits_is_probably_another_one(newcomer: Visited) -> None:
    """The right one is chosen on the same page: two clicks more, and the rows are there."""
    page = newcomer
    near = await page.upload("sleep.csv", SLEEP, "start")
    assert "This is probably another file" not in near.words
    seen = await page.upload("marks.csv", b"x,y\n1,2\n", "start")
    assert "This is probably another file" in seen.words, seen.words[:1]
    assert re.search(r"that the study reads: .?age.?,.?.?cups.?,? .*tired", seen.words)
    assert seen.form("/data/upload")["back"] == "start" and page.server.site.tables() == {}
    right = await page.upload("sleep.csv", b"age,cups,tired\n41,many,0\n", seen.form("/data/upload")["back"])
    assert "This is probably another file" not in right.words
    await _import(page, right)
    assert _rows(page) == [(41, "many", 0)]
