"""Workbooks of Excel become the table that a person sees in them."""

from __future__ import annotations

import csv
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from anon.errors import AnonmlError
from peer.data.importing import import_file
from peer.data.preview import preview
from tests.support.real_exports import moodle_csv
from tests.support.workbooks import MAIN, SHEET, encrypted, repacked, sheet, with_shared_texts, workbook

pytest.importorskip("openpyxl", reason="openpyxl is missing: install the extra `test`")
MORNING, MIDNIGHT = datetime.fromisoformat("2024-02-05T08:30"), datetime.fromisoformat("2024-02-06")


def _imported(folder: Path, content: bytes, name: str = "own.xlsx") -> list[tuple[Any, ...]]:
    (folder / name).write_bytes(content)
    done = import_file(folder / "d.sqlite", folder / name)
    with closing(sqlite3.connect(folder / "d.sqlite")) as database:
        found = database.execute(f"SELECT * FROM {done.table}").fetchall()
    assert preview(folder / name, rows=len(found)).tables[0].rows == tuple(found), "the preview shows what is imported"
    return [done.columns, *found]


def _saved(folder: Path, content: bytes) -> Path:
    (folder / "own.xlsx").write_bytes(content)
    return folder / "own.xlsx"


def test_numbers_dates_times_and_truths_are_as_a_person_sees_them(tmp_path: Path) -> None:
    def shown(book: Any) -> None:
        book.active["F2"].number_format, book.active["C3"].number_format = "0%", "yyyy-mm-dd hh:mm"

    rows = [
        ["Day", "Hours", "When", "Tired", "Slept", "Rate", "Sum", "At"],
        [date(2024, 2, 5), 7, MORNING, True, timedelta(hours=31, minutes=30), 0.45, 0.1 + 0.2, time(8, 5)],
        [date(2024, 2, 6), 7.5, MIDNIGHT, False, timedelta(minutes=5), 1, 3, None],
    ]  # fmt: skip
    assert _imported(tmp_path, workbook(rows, shown)) == [
        ("day", "hours", "when", "tired", "slept", "rate", "sum", "at"),
        ("2024-02-05", 7.0, "2024-02-05T08:30:00", 1, "31:30:00", 0.45, 0.3, "08:05:00"),
        ("2024-02-06", 7.5, "2024-02-06T00:00:00", 0, "00:05:00", 1.0, 3.0, None),
    ]


def test_a_number_typed_as_text_is_read_as_in_csv(tmp_path: Path) -> None:
    assert _imported(tmp_path, workbook([["hours", "id"], ["7,5", "007"], ["8", "008"], [9, 9]])) == [
        ("hours", "id"), (7.5, "007"), (8.0, "008"), (9.0, "9"),
    ]  # fmt: skip


def test_the_heading_is_found_below_a_title_and_beside_empty_columns(tmp_path: Path) -> None:
    def title(book: Any) -> None:
        book.active.merge_cells("A1:E1")

    table = [[None, "hours", None, "tired"], [None, 7, None, 0], [], [None, 8, None, 1]]
    rows = [["Sleep diary"], [], [None, "Ada"], *table]
    assert _imported(tmp_path, workbook(rows, title)) == [("hours", "tired"), (7, 0), (8, 1)]
    assert "2 rows above the heading are left out" in preview(tmp_path / "own.xlsx").problems


def test_a_column_without_a_name_that_holds_something_is_one(tmp_path: Path) -> None:
    assert _imported(tmp_path, workbook([["hours", None, "tired"], [7, None, 0], [8, "x", 1]])) == [
        ("hours", "tired", "column_2"), (7, 0, None), (8, 1, "x"),
    ]  # fmt: skip


def test_a_formula_counts_as_what_it_last_gave_and_an_error_as_nothing(tmp_path: Path) -> None:
    texts = "<si><t>hours</t></si><si><t>more</t></si>"
    rows = (
        '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row>'
        '<row><c><f>3+4</f><v>7</v></c><c t="e"><f>1/0</f><v>#DIV/0!</v></c></row>'
        '<row><c><f>3+4</f></c><c t="str"><f>"a"</f><v>a</v></c></row>'
    )
    found = _imported(tmp_path, with_shared_texts(workbook([]), texts, rows))
    assert found == [("hours", "more"), (7, None), (None, "a")]


def test_the_first_visible_sheet_with_rows_is_read_and_the_others_are_named(tmp_path: Path) -> None:
    def more(book: Any) -> None:
        hidden, filled, other = (book.create_sheet(name) for name in ("list", "diary", "notes"))
        for place, each in enumerate((hidden, filled, other)):
            each.append(["hours"])
            each.append([place])
        hidden.sheet_state = "hidden"

    assert _imported(tmp_path, workbook([], more)) == [("hours",), (1,)]
    assert preview(tmp_path / "own.xlsx").problems == (
        "it has 4 sheets, and only sheet 3 is read; to import another, move that one to the front in Excel and save",
    )


def test_a_sheet_that_says_it_is_smaller_than_it_is_is_read_whole(tmp_path: Path) -> None:
    pairs = (f'<c t="str"><v>{text}</v></c><c><v>{number}</v></c>' for number, text in enumerate("ab"))
    rows = "".join(f"<row>{pair}</row>" for pair in pairs)
    told = f'<worksheet {MAIN}><dimension ref="A1"/><sheetData>{rows}</sheetData></worksheet>'
    assert _imported(tmp_path, repacked(workbook([]), {SHEET: told.encode()})) == [("a", "x_0"), ("b", 1)]


def test_a_moodle_log_saved_as_excel_is_one(tmp_path: Path) -> None:
    seen = preview(_saved(tmp_path, workbook(list(csv.reader(moodle_csv("de").splitlines())))))
    assert (seen.format, seen.tables[0].name) == ("moodle", "moodle_log")


# --- wrong files: each is told with the step that leads on ---


def test_content_counts_and_not_the_name(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"hours,tired\n7,0\n")
    (tmp_path / "b.csv").write_bytes(workbook([["hours"], [7]]))
    assert preview(tmp_path / "a.xlsx").format == "csv"
    assert preview(tmp_path / "b.csv").format == "excel"


WRONG: dict[str, tuple[Callable[[], bytes], str]] = {
    "old kind": (lambda: encrypted("Workbook"), r"\(\.xls\): open it in Excel and save it as \.xlsx or CSV"),
    "password": (lambda: encrypted("EncryptedPackage"), "has a password: open it in Excel, take the password away"),
    "Word of old": (lambda: encrypted("WordDocument"), "another office program: copy its table"),
    "empty": (lambda: workbook([]), "no sheet with rows; check that it is the right file"),
    "binary": (lambda: repacked(workbook([]), {"xl/workbook.bin": b"x"}), r"\.xlsb"),
    "LibreOffice": (
        lambda: repacked(workbook([]), {"mimetype": b"x", "content.xml": b"x"}),
        "LibreOffice: open it there and save it",
    ),
    "Word": (lambda: repacked(workbook([]), {"word/document.xml": b"x", "xl/workbook.xml": None}), "a Word file"),
    "wide": (lambda: workbook([[f"c{place}" for place in range(201)]] * 2), "more than 200 columns"),
    "twice": (lambda: workbook([["a", "A"], [1, 2]]), "column 2 has the same name as another"),
    "damaged": (lambda: repacked(workbook([["a"], [1]]), {SHEET: b"<"}), "damaged or unusual"),
    "cut off": (lambda: workbook([["a"], [1]])[:-300], "download it again"),
    "far column": (
        lambda: repacked(workbook([]), {SHEET: sheet('<row><c r="ZZZ1"><v>1</v></c></row>')}), "than Excel allows"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_told_with_the_next_step(tmp_path: Path, name: str) -> None:
    make, said = WRONG[name]
    file = _saved(tmp_path, make())
    for read in (lambda: preview(file), lambda: import_file(tmp_path / "d.sqlite", file)):
        with pytest.raises(AnonmlError, match=said) as caught:
            read()
        assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_without_openpyxl_one_sentence_says_what_to_do(tmp_path: Path) -> None:
    file = _saved(tmp_path, workbook([["hours"], [7]]))
    script = (
        "import sys; sys.modules['openpyxl'] = None\n"
        "from pathlib import Path\n"
        "from peer.data import foreign; foreign.has_children = lambda: False\n"
        "from peer.data.preview import preview\n"
        "try: preview(Path(sys.argv[1]))\n"
        "except Exception as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", script, file], capture_output=True, text=True, check=True).stdout
    assert said.startswith("this is an Excel file, which needs openpyxl: save it as CSV in Excel (File > Save As > CSV")
    assert "excel" in said.partition("or `pipx install")[2]
