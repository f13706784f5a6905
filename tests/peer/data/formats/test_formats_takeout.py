"""Google Takeout's activity: JSON and HTML, in the languages of accounts, as files, folders and archives."""

from __future__ import annotations

import gzip
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from anon.tables.streams import ImportLimits
from peer.data.formats.takeout_dates import iso
from peer.data.importing import import_file
from peer.data.preview import preview
from tests.support.patience import cheap
from tests.support.real_exports import (
    TAKEOUT_INSTANT,
    TAKEOUT_PATHS,
    TAKEOUT_TIMES,
    takeout_html,
    takeout_json,
    takeout_path,
    tarred,
    zipped,
)

COLUMNS = (
    "time", "time_text", "folder", "header", "title", "title_url", "subtitles", "description", "products", "details",
)


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("suffix", ["json", "html"])
@pytest.mark.parametrize("language", TAKEOUT_PATHS)
def test_an_archive_in_any_language(tmp_path: Path, language: str, suffix: str) -> None:
    content = takeout_json() if suffix == "json" else takeout_html(language)
    members: dict[str, str | bytes] = {
        takeout_path(language, suffix): content,
        "Takeout/archive_browser.html": "<html>secret</html>",
        "Takeout/Mail/secret.mbox": "From secret\n",
        "Takeout/Fotos/secret.json": '{"title": "secret"}',
    }
    file = zipped(tmp_path / "takeout-20240205T142100Z-001.zip", members)
    seen = preview(file)
    assert (seen.format, [(one.name, one.count) for one in seen.tables]) == ("takeout", [("takeout_activity", 2)])
    summary = import_file(tmp_path / "d.sqlite", file)
    assert (summary.table, summary.rows, summary.skipped, summary.columns) == ("takeout_activity", 2, 0, COLUMNS)
    found = rows(tmp_path / "d.sqlite", "select folder, header, products from takeout_activity")
    assert found[0] == (TAKEOUT_PATHS[language][1], "Search", '["Search"]')


def test_the_fields_of_json(tmp_path: Path) -> None:
    (tmp_path / "MyActivity.json").write_text(takeout_json())
    assert import_file(tmp_path / "d.sqlite", tmp_path / "MyActivity.json").format == "takeout"
    assert rows(
        tmp_path / "d.sqlite", "select time, title, title_url, subtitles, description, details from takeout_activity"
    ) == [
        (
            "2020-08-26T00:06:44.123Z",
            "Searched for bounded memory",
            "https://www.google.com/search?q=bounded",
            None,
            None,
            None,
        ),
        (
            TAKEOUT_INSTANT,
            "Watched a lecture",
            "https://www.youtube.com/watch?v=1",
            "A channel",
            "Watched at 14:21",
            "From Google Ads",
        ),
    ]


@pytest.mark.parametrize("language", TAKEOUT_TIMES)
def test_the_fields_of_html(tmp_path: Path, language: str) -> None:
    file = tmp_path / "any name.html"
    file.write_text(takeout_html(language), encoding="utf-8")
    assert import_file(tmp_path / "d.sqlite", file).rows == 2
    assert rows(tmp_path / "d.sqlite", "select time, title, title_url, subtitles, products from takeout_activity") == [
        (TAKEOUT_INSTANT, "Searched for a & b", "https://www.google.com/search?q=a&b", None, '["Search"]'),
        (TAKEOUT_INSTANT, "1 notification", "https://www.google.com/maps", "Including topics:\nWeather", '["Search"]'),
    ]
    assert rows(tmp_path / "d.sqlite", "select distinct header from takeout_activity") == [("Search",)]


@pytest.mark.parametrize(("text", "instant"), [
    *((text, TAKEOUT_INSTANT) for text in TAKEOUT_TIMES.values()),
    ("Sep 4, 2020, 11:01:46 AM PDT", "2020-09-04T18:01:46.000Z"),
    ("Jan 1, 2021, 12:00:00 AM UTC", "2021-01-01T00:00:00.000Z"),
    ("Jan 1, 2021, 12:00:00 PM GMT-03:30", "2021-01-01T15:30:00.000Z"),
    ("5 mars 2021, 07:08:09 CET", "2021-03-05T06:08:09.000Z"),
    ("5 sty 2021, 07:08:09 CET", "2021-01-05T06:08:09.000Z"),
    ("05/03/2021, 07:08:09 GMT", "2021-03-05T07:08:09.000Z"),
    ("3/25/2021, 07:08:09 GMT", "2021-03-25T07:08:09.000Z"),
    ("5 mars 2021, 07:08:09 QQQT", "2021-03-05T07:08:09.000"),
    ("31 Feb 2021, 07:08:09 UTC", None),
    ("yesterday", None),
    ("", None),
    ("1" * 5000, None),
])
def test_times_of_pages(text: str, instant: str | None) -> None:
    assert iso(text) == instant


def test_products_and_formats_together_and_as_a_folder(tmp_path: Path) -> None:
    members: dict[str, str | bytes] = {
        takeout_path("de", "html", "Maps"): takeout_html("de", 3),
        takeout_path("de", "json", "YouTube"): takeout_json(4),
        "Takeout/YouTube und YouTube Music/Verlauf/Wiedergabeverlauf.json": takeout_json(1),
    }
    for name, content in members.items():
        place = tmp_path / "unpacked" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(str(content), encoding="utf-8")
    (tmp_path / "unpacked" / "link.json").symlink_to("/etc/hostname")
    sources = (
        zipped(tmp_path / "t.zip", members),
        tarred(tmp_path / "t.tgz", members),
        tmp_path / "unpacked",
        tmp_path / "unpacked" / "Takeout",
    )
    for file in sources:
        assert import_file(tmp_path / "d.sqlite", file).rows == 8
        assert rows(tmp_path / "d.sqlite", "select folder, count(*) from takeout_activity group by 1 order by 1") == [
            ("Maps", 3), ("Verlauf", 1), ("YouTube", 4),
        ]  # fmt: skip


def test_broken_entries_are_passed_over(tmp_path: Path) -> None:
    good = takeout_json(6)
    (tmp_path / "MyActivity.json").write_text(
        "[" + good[1:-1] + ', {"title": 7}, "secret", {"secret": nope}, {"title": "cut'
    )
    summary = import_file(tmp_path / "d.sqlite", tmp_path / "MyActivity.json", limits=ImportLimits(line_bytes=5000))
    assert (summary.rows, summary.skipped, summary.skipped_lines, summary.unit) == (6, 4, (7, 8, 9, 10), "entry")
    assert "secret" not in repr(summary)


def test_broken_activities_of_a_page(tmp_path: Path) -> None:
    page = takeout_html("en", 3)
    broken = (
        '<div class="outer-cell x">secret</div><div class="outer-cell x"><div class="body-1">'
        + "s" * 300_000
        + "</div></div>"
    )
    (tmp_path / "p.html").write_text(page.replace("</body>", broken + "</body>"), encoding="utf-8")
    summary = import_file(tmp_path / "d.sqlite", tmp_path / "p.html", limits=ImportLimits(line_bytes=100_000))
    assert (summary.rows, summary.skipped, summary.skipped_lines) == (3, 2, (4, 5))
    assert summary.reasons == {"could not be read": 1, "longer than the limit": 1}


@pytest.mark.parametrize("part", ["<", "<a", '<a href="', "<div ", "&", "&#", '<div class="', "</", "<!--"])
def test_a_page_made_to_be_slow_takes_linear_time(tmp_path: Path, part: str) -> None:
    """The square of 300,000 would take minutes; measured is a tenth of a second at most."""
    cell = '<div class="outer-cell"><div class="body-1">' + part * (300_000 // len(part))
    (tmp_path / "p.html").write_text(takeout_html() + cell, encoding="utf-8")
    with cheap(4):
        preview(tmp_path / "p.html")


def test_a_language_that_nobody_listed_is_known_by_its_folder_among_many_files(tmp_path: Path) -> None:
    """More pages than are looked into: only the rule of names finds it."""
    others: dict[str, str | bytes] = {f"Takeout/Album/{number}.json": "{}" for number in range(250)}
    file = zipped(tmp_path / "t.zip", others | {takeout_path("xx, a language nobody listed", "html"): takeout_html()})
    assert preview(file).says == "an activity export of Google Takeout (1 file in a zip archive)"


@pytest.mark.slow
def test_an_activity_without_end_is_passed_over_in_bounded_memory(tmp_path: Path) -> None:
    page, end = takeout_html().split("</body>")
    (tmp_path / "p.html").write_text(page + '<div class="outer-cell">' + "secret" * 6_000_000 + end)
    tracemalloc.start()
    summary = import_file(tmp_path / "d.sqlite", tmp_path / "p.html")
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()
    assert (summary.rows, summary.skipped_lines) == (2, (3,))


def test_a_gzip_of_a_page_and_a_lone_json_of_youtube(tmp_path: Path) -> None:
    (tmp_path / "MeineAktivitäten.html.gz").write_bytes(gzip.compress(takeout_html("de").encode()))
    assert preview(tmp_path / "MeineAktivitäten.html.gz").tables[0].count == 2
    (tmp_path / "Wiedergabeverlauf.json").write_text(takeout_json(3))
    assert preview(tmp_path / "Wiedergabeverlauf.json").tables[0].count == 3
