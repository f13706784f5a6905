"""Local prediction with a published model: for the owner, or for people who never enrolled (next term's students).

Nothing leaves the machine: the model is a set of tables, and the features are computed here.
"""

from __future__ import annotations

import csv
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from attrs import frozen

from anon.documents import find
from anon.errors import Malformed, Refused
from anon.model import Contribution, Model, from_json
from anon.sql import Tables, lint
from peer.checks import check_manifest
from peer.client import AggregatorClient
from peer.data.features import snapshot
from peer.data.importing import import_file, import_rows
from peer.data.sandbox import plain_tables_of

_READS = re.compile(r"\b(?:from|join)\s+([a-z][a-z0-9_]*)", re.IGNORECASE)
_DEFINES = re.compile(
    r"\b([a-z][a-z0-9_]*)\s*(?:\([^()]*\)\s*)?\bas\s+(?:(?:not\s+)?materialized\s*)?\(", re.IGNORECASE
)


@frozen
class Prediction:
    """`probability` is the model's score in [0, 1]; `positive` its decision, a yes from `threshold` on; `moved_by` what
    each table added."""

    who: str
    probability: float
    threshold: float
    positive: bool
    moved_by: tuple[Contribution, ...]


async def fetch_model(client: AggregatorClient) -> Model:
    """The published model, under a signed head of the study at its own address. Raises `Refused` when there is none."""
    chain = await client.chain()
    first = find(chain, "manifest")
    if first is None:
        raise Malformed("heads: the first document is not the manifest; do not use the model")
    check_manifest(await client.body(first), client.invite)
    head = find(chain, "model")
    if head is None:
        raise Refused("no model is published yet; try again after the study's end (`anonml peer status`)")
    model = from_json((await client.body(head)).decode("utf-8", "replace"))
    if model.study != client.invite.study.hex():
        raise Malformed("model: of another study than its head says; do not use it")
    return model


def load_model(path: Path) -> Model:
    """A model from a file. Raises `Malformed`."""
    try:
        return from_json(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Malformed(f"{path}: cannot be read ({type(error).__name__}); name a model.json") from None


def unfit(model: Model, database: Path) -> tuple[str, ...]:
    """Which features' queries cannot run on the owner's tables, and why; no file is like an empty one. Never raises."""
    return _unfit(model, plain_tables_of(database))


def _unfit(model: Model, tables: Tables) -> tuple[str, ...]:
    found = []
    for feature in model.features:
        try:
            lint(feature.query, tables, feature.name)
        except (Malformed, Refused) as fault:
            found.append(str(fault))
    return tuple(found)


def caution(model: Model) -> str:
    """One sentence where the model was not shown to beat guessing, else nothing: to be said before its answer."""
    if model.shown is not False:
        return ""
    told = "The study did not show that this model is better than a guess from how common the answer is"
    if model.chance is None:
        return f"{told}."
    return f"{told}: noise alone would look as good in {told_cases(model.chance)} such studies."


def told_cases(chance: float) -> str:
    """A probability as cases out of a hundred, never rounded down to none."""
    return f"{max(1, round(100 * chance))} of 100"


def predict_own(model: Model, database: Path, as_of: int) -> Prediction:
    """The prediction for the owner, from the owner's tables as they are now. What is missing counts as declared."""
    return _predict(model, "you", database, as_of)


def predict_people(model: Model, file: Path, person: str | None, as_of: int) -> Iterator[Prediction]:
    """One prediction per row of a CSV (or JSON Lines) file, or per value of the column `person`.

    Each person's rows alone are that person's table, as on a peer. Raises `Malformed` for a model that reads several
    tables, and for a file whose columns lack what the model's queries read.
    """
    table = _only_table(model)
    with tempfile.TemporaryDirectory() as folder:
        everyone, alone = Path(folder) / "everyone.sqlite", Path(folder) / "alone.sqlite"
        try:
            import_file(everyone, file, table)
        except (Malformed, Refused) as error:
            raise type(error)(f"{file}: {error}") from None
        columns = plain_tables_of(everyone)[table]
        if person is not None and person not in columns:
            raise Malformed(f"{file.name}: expected a column {person}, got {', '.join(columns)}")
        faults = _unfit(model, {table: columns})
        if faults:
            raise Malformed(f"{file.name}: the model cannot be used on its columns. " + "; ".join(faults))
        for who, rows in _people(everyone, table, columns, person):
            import_rows(alone, table, columns, rows, durable=False)
            yield _predict(model, who, alone, as_of)


def write_predictions(predictions: Iterable[Prediction], target: Path) -> int:
    """A new CSV of who, probability and decision; how many rows. When a prediction fails, no file is left.

    Raises `Refused` when the file exists or its folder does not.
    """
    try:
        stream = target.open("x", newline="", encoding="utf-8")
    except OSError as error:
        raise Refused(f"{target}: cannot be made ({error.strerror}); name a new file in a folder of yours") from None
    try:
        with stream:
            return _write(csv.writer(stream).writerow, predictions)
    except BaseException:
        target.unlink()
        raise


def _write(writerow: Callable[[Sequence[object]], object], predictions: Iterable[Prediction]) -> int:
    writerow(("who", "probability", "positive"))
    count = 0
    for one in predictions:
        writerow((one.who, f"{one.probability:.6f}", int(one.positive)))
        count += 1
    return count


def _predict(model: Model, who: str, database: Path, as_of: int) -> Prediction:
    values = snapshot(database, model.features, model.label, as_of).values
    categories = model.categories(values)
    probability = model.probability(categories)
    return Prediction(who, probability, model.threshold, model.decide(categories), model.contributions(categories))


def _only_table(model: Model) -> str:
    queries = [feature.query for feature in model.features]
    tables = {name.lower() for query in queries for name in _READS.findall(query)}
    tables -= {name.lower() for query in queries for name in _DEFINES.findall(query)}
    if len(tables) != 1:
        raise Malformed("this model reads several tables; predict one person at a time with `anonml peer predict`")
    return str(tables.pop())


def _people(
    database: Path, table: str, columns: Sequence[str], person: str | None
) -> Iterator[tuple[str, list[tuple[int | float | str | None, ...]]]]:
    connection = sqlite3.connect(database)
    try:
        listed = ", ".join(f'"{column}"' for column in columns)
        if person is None:
            for number, row in enumerate(connection.execute(f'SELECT {listed} FROM "{table}"'), start=1):
                yield str(number), [row]
            return
        place = columns.index(person)
        ordered = connection.execute(f'SELECT {listed} FROM "{table}" ORDER BY "{person}"')
        for who, rows in groupby(ordered, key=lambda row: row[place]):
            yield str(who), list(rows)
    finally:
        connection.close()
