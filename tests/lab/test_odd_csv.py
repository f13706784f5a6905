"""`simulate` on files as people have them: a sensible result or a clear refusal, never a traceback."""

from __future__ import annotations

import csv
import gzip
import io
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aggregator.lab.cli_simulate import app
from aggregator.lab.simulation.csv_file import read_columns
from aggregator.lab.simulation.inference import MOST_FEATURES, infer_study, people_of
from anon.errors import Malformed
from anon.tables.columns import sanitised
from tests.support.tries import every

HEAD = ["Age", "Town", "Left"]
Rows = list[list[str]]


def people(count: int = 200) -> Rows:
    source = random.Random(1)
    ages = [source.randint(18, 80) for _ in range(count)]
    return [[str(age), source.choice("abc"), "yes" if source.random() < age / 100 else "no"] for age in ages]


def spelled(head: list[str], rows: Rows, delimiter: str = ",", end: str = "\n") -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end)
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()


PLAIN = spelled(HEAD, people())

SAME: dict[str, bytes] = {
    "commas": PLAIN.encode(),
    "gzip": gzip.compress(PLAIN.encode()),
    "semicolons": spelled(HEAD, people(), ";").encode(),
    "tabs": spelled(HEAD, people(), "\t").encode(),
    "Excel's hint": ("sep=|\r\n" + spelled(HEAD, people(), "|", "\r\n")).encode(),
    "byte order mark": PLAIN.encode("utf-8-sig"),
    "UTF-16": PLAIN.encode("utf-16"),
    "old line ends": spelled(HEAD, people(), end="\r").encode(),
    "empty lines": PLAIN.replace("\n", "\n\n").encode(),
    "quoted header": spelled(HEAD, people()).replace("Town", '"Town"').encode(),
}


@pytest.mark.parametrize("case", SAME)
def test_the_same_people_however_the_file_is_spelled(tmp_path: Path, case: str) -> None:
    plain, file = tmp_path / "plain.csv", tmp_path / "file.csv"
    plain.write_text(PLAIN)
    file.write_bytes(SAME[case])
    assert read_columns(file) == read_columns(plain)
    assert len(read_columns(file)["age"]) == 200


def changed(place: int, change: Callable[[int, str], str]) -> bytes:
    return spelled(HEAD, [[change(row, cell) if at == place else cell for at, cell in enumerate(line)]
                          for row, line in enumerate(people())]).encode()  # fmt: skip


FINE: dict[str, tuple[bytes, str, str, str]] = {
    "quoted line ends": (changed(1, lambda _, cell: cell + "\r\nx"), "left", "yes", ""),
    "missing cells": (changed(0, lambda row, cell: cell if row % 3 else ""), "left", "yes", ""),
    "missing numbers in words": (changed(0, lambda row, cell: cell if row % 3 else "NA"), "left", "yes", ""),
    "missing labels": (changed(2, lambda row, cell: cell if row % 4 else ""), "left", "yes", "50 of 200 rows"),
    "three labels": (changed(2, lambda row, cell: cell if row % 4 else "maybe"), "left", "yes", "2 other values"),
    "numbers as labels": (changed(2, lambda _, cell: str(float(cell == "yes"))), "left", "1", ""),
    "a constant column": (changed(0, lambda *_: "5"), "left", "yes", "age: left out"),
    "dates": (changed(0, lambda row, cell: f"2020-01-{1 + row % 28:02d}"), "left", "yes", ""),
    "very large numbers": (changed(0, lambda _, cell: cell + "e300"), "left", "yes", ""),
    "numbers beyond all": (changed(0, lambda _, cell: cell + "e999"), "left", "yes", ""),
    "infinities": (changed(0, lambda row, cell: cell if row % 5 else "inf"), "left", "yes", ""),
    "Windows-1252": (PLAIN.replace("Town", "Straße").replace(",a,", ",é,").encode("cp1252"), "left", "yes", ""),
    "unicode header": (PLAIN.replace("Left", "離脱").encode(), "離脱", "yes", ""),
    "a header as written": (PLAIN.encode(), "Left", "yes", ""),
    "no header cell": (PLAIN.replace("Age", "").encode(), "left", "yes", ""),
    "digits first": (PLAIN.replace("Age", "2019").encode(), "left", "yes", ""),
    "words of SQL": (PLAIN.replace("Age", "select").replace("Town", "order").encode(), "left", "yes", ""),
    "quotes": (PLAIN.replace(",a,", ',"a\'\"";",').encode(), "left", "yes", ""),
    "rows of another width": (PLAIN.encode() + b"1,2\n", "left", "yes", "1 rows left out"),
    "one class": (changed(2, lambda *_: "yes"), "left", "yes", ""),
    "three people": (b"Age,Left\n20,yes\n30,no\n40,yes\n", "left", "yes", ""),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("case", every(6, FINE))
@pytest.mark.slow
def test_odd_files_end_in_a_result(tmp_path: Path, case: str) -> None:
    data, label, positive, note = FINE[case]
    found = run(tmp_path / "people.csv", data, label, positive)
    assert found.exit_code == 0, found.output
    assert note in found.stderr


REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "the first line is no header"),
    "a byte order mark alone": (b"\xef\xbb\xbf", "the first line is no header"),
    "a header alone": (b"Age,Town,Left\n", "a header and at least one row"),
    "one row": (b"Age,Town,Left\n20,a,yes\n", "no column besides left"),
    "two people": (b"Age,Left\n20,yes\n30,no\n", "no column besides left"),
    "only a label": (b"Left\nyes\nno\n", "no column besides left"),
    "two columns of one name": (PLAIN.replace("Town", "age").encode(), "column 2 has the same name as another"),
    "cut gzip": (gzip.compress(PLAIN.encode())[:-50], "cannot be read"),
    "no text": (bytes(range(256)) * 20, "cannot be read"),
    "zero bytes": (PLAIN.replace("a", "\0").encode(), "line 6: could not be read; save it as UTF-8"),
    "no row fits": (PLAIN.replace("yes", "yes,").replace("no", "no,").encode(), "3 cells"),
    "a cell without end": (b'Age,Left\n"' + b"x" * 200_000, "quotes"),
    "no such label": (PLAIN.replace("Left", "Gone").encode(), "no column left"),
    "an empty label": (changed(2, lambda *_: ""), "no row has a value"),
    "no such value": (changed(2, lambda *_: "no"), "--positive"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_simulated_is_refused_with_a_reason(tmp_path: Path, case: str) -> None:
    data, reason = REFUSED[case]
    found = run(tmp_path / "people.csv", data, "left", "yes")
    assert isinstance(found.exception, Malformed), found.output
    assert reason in str(found.exception)


def run(path: Path, data: bytes, label: str, positive: str):  # type: ignore[no-untyped-def]
    path.write_bytes(data)
    arguments = ["--data", str(path), "--label", label, "--positive", positive, "--epsilon", "1", "--trials", "1"]
    return CliRunner().invoke(app, [*arguments, "--seed", "1", "--json"])


def test_test_people_whose_numbers_are_words_are_refused(tmp_path: Path) -> None:
    data, test = tmp_path / "data.csv", tmp_path / "test.csv"
    data.write_text(PLAIN)
    test.write_bytes(changed(0, lambda *_: "old"))
    proposal = infer_study(data, "left", ["yes"], 1.0).proposal
    with pytest.raises(Malformed, match="expected numbers in column age"):
        people_of(proposal, test)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_of_a_thousand_columns_the_first_are_asked_about_and_the_others_are_named(
    tmp_path: Path, epsilon: float
) -> None:
    most = MOST_FEATURES
    source, path = random.Random(2), tmp_path / "wide.csv"
    rows = [[*map(str, source.choices(range(10), k=1000)), source.choice(["yes", "no"])] for _ in range(40)]
    path.write_text(spelled([*(f"c{place}" for place in range(1000)), "left"], rows))
    found = infer_study(path, "left", ["yes"], epsilon)
    assert [one.name for one in found.proposal.features] == [f"c{place}" for place in range(most)]
    assert any(f"c{most} and {999 - most} columns after it" in note for note in found.notes)


@pytest.mark.parametrize(
    "title", ["Age", " My  age ", "Straße", "離脱", "2019", "select", "a" * 300, "sqlite_x", "_", "é.è"]
)
def test_columns_are_named_as_the_importer_names_them(tmp_path: Path, title: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(spelled(["x", title, " "], [["1", "2", "3"]]))
    assert list(read_columns(path)) == ["x", sanitised(title.strip()), "column_3"]


def test_identifiers_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("a,b,c,d\n007,12345678901234567890,1,1.5\n008,2,,2\n")
    assert read_columns(path) == {
        "a": ["007", "008"], "b": ["12345678901234567890", "2"], "c": [1, None], "d": [1.5, 2.0]
    }  # fmt: skip
