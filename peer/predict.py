"""Local prediction with a published model: for the owner, or for people who never enrolled (next term's students).

Nothing leaves the machine: the model is a set of tables, and the features are computed here.
"""

from __future__ import annotations

import csv
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from attrs import evolve, field

from anon.errors import Malformed, Refused, of_the_system
from anon.protocols.models.beside import OwnEnsemble, beside
from anon.protocols.models.ensemble import EnsembleModel
from anon.protocols.models.linear import LinearModel
from anon.protocols.models.published import Contribution, PublishedModel
from anon.protocols.models.tables import Model
from anon.protocols.registry import Protocols
from anon.protocols.sizes import longest_body
from anon.queries.answers import LABEL, Question, Request, Value, texts_of, value_of
from anon.queries.lint import Tables, lint
from anon.queries.process import at_once
from anon.queries.records import Draw, drawn
from anon.queries.sandbox import opened, plain_tables_of
from anon.storage.durable import connect
from anon.storage.private_files import new_private_text
from anon.text.foreign import Quoted, whole_place
from anon.text.plain_cells import plain_cell
from anon.text.sentences import Sentence, attributed, joined, listed, say
from anon.transparency.documents import find
from anon.values import frozen
from peer.data.evaluate_here import LONGEST_EVALUATION, evaluate_here
from peer.data.importing import import_file, import_rows
from peer.data.kept import DATA_KEPT
from peer.network.client import AggregatorClient, Hold
from peer.protocols.installed import PROTOCOLS
from peer.rules.checks import check_manifest, check_sizes
from peer.store.held_folder import HeldFolder
from peer.store.home import PEOPLE
from peer.threads import off_loop

MOST_OWN = 2000
"""Of the owner's records, so many at most fit a model beside those of groups: that takes seconds."""
_WORDS = re.compile(r"[a-z][a-z0-9_]*")
_READS = re.compile(r"\b(?:from|join)\s+([a-z][a-z0-9_]*)", re.IGNORECASE)
_DEFINES = re.compile(
    r"\b([a-z][a-z0-9_]*)\s*(?:\([^()]*\)\s*)?\bas\s+(?:(?:not\s+)?materialized\s*)?\(", re.IGNORECASE
)


@frozen
class Prediction:
    """`probability` is the model's score in [0, 1]. `positive` is its answer, a yes from `threshold` on. It is None
    where the model was not shown to beat a guess (`PublishedModel.predict`), and for an owner of whom no value is
    known. `moved_by` tells how much each part of the model added. `value`: the predicted number, of a model that
    predicts one. `values`: what it was predicted from.
    """

    who: str
    probability: float
    threshold: float
    positive: bool | None
    moved_by: tuple[Contribution, ...]
    value: float | None = None
    values: Mapping[str, Value] = field(factory=dict, repr=False)

    @property
    def unread(self) -> bool:
        """True if every value is missing: no score of the model's is then a word about this person."""
        return bool(self.values) and all(value is None for value in self.values.values())


async def fetch_model(client: AggregatorClient, hold: Hold, protocols: Protocols = PROTOCOLS) -> PublishedModel:
    """The published model, under a signed head of the study at its own address, in the chain as `hold` takes it. Raises
    `Refused` when there is none, and `Distrust` for a study of more packets than members or of two stories."""
    body = await _published(
        client,
        hold,
        protocols,
        "model",
        say("heads: the first document is not the manifest; do not use the model"),
        say("no model is published yet; try again later"),
    )
    model = await off_loop(protocols.model, body)
    if model.study != client.invite.study.hex():
        raise Malformed(say("model: of another study than its head says; do not use it"))
    return model


async def fetch_report(client: AggregatorClient, hold: Hold, protocols: Protocols = PROTOCOLS) -> bytes:
    """The published report (HTML of staff), as `fetch_model` fetches a model. Raises `Refused` when there is none."""
    return await _published(
        client,
        hold,
        protocols,
        "report",
        say("heads: the first document is not the manifest; do not use the report"),
        say("no report is published yet; try again later"),
    )


async def _published(
    client: AggregatorClient, hold: Hold, protocols: Protocols, kind: str, misleading: Sentence, unpublished: Sentence
) -> bytes:
    chain, found = await client.opening(hold)
    if "manifest" not in found:
        raise Malformed(misleading)
    manifest = await off_loop(check_manifest, found["manifest"], client.invite, protocols)
    await off_loop(check_sizes, manifest, chain)
    head = find(chain, kind)
    if head is None:
        raise Refused(unpublished)
    return await client.serving(manifest).body(head, longest_body(manifest, kind))


def unfit(model: PublishedModel, database: Path) -> tuple[str, ...]:
    """Which features' queries cannot run on the owner's tables, and why; no file is like an empty one. Never raises."""
    return _unfit(model, plain_tables_of(database))


def _unfit(model: PublishedModel, tables: Tables) -> tuple[str, ...]:
    found = []
    for feature in model.features:
        try:
            lint(feature.query, tables, attributed(feature.name), many=_of_records(model))
        except (Malformed, Refused) as fault:
            found.append(str(fault))
    return tuple(found)


def predicted_name(model: PublishedModel) -> str:
    """The name of what a model predicts: the label, or the column of a real target."""
    return model.target.name if isinstance(model, LinearModel) and model.target else model.label.name


def caution(model: PublishedModel) -> str:
    """One sentence where the model was not shown to beat guessing, or not tested, else nothing: to be said before its
    answer."""
    if model.shown is None and isinstance(model, LinearModel | EnsembleModel):
        return say("This model was not tested against noise: noise alone may have made its weights.")
    if model.shown is not False:
        return ""
    if model.chance is None:
        return say("The study did not show that this model is better than a guess from how common the answer is.")
    return say(
        "The study did not show that this model is better than a guess from how common the answer is: in {cases} such "
        "studies a model looks this good by chance alone.",
        cases=told_cases(model.chance),
    )


def belief(model: PublishedModel) -> tuple[Sentence, ...]:
    """How much of a model staff declared, and how much was heard; nothing of one that starts from answers alone."""
    return model.belief.sentences() if isinstance(model, Model) and model.belief else ()


def told_cases(chance: float) -> Sentence:
    """A probability as cases out of a hundred, never rounded down to none."""
    return say("{cases} of 100", cases=max(1, round(100 * chance)))


def _of_records(model: PublishedModel) -> bool:
    return isinstance(model, LinearModel | EnsembleModel) and model.many


def predict_own(model: PublishedModel, database: Path, as_of: int) -> Prediction:
    """The prediction for the owner, from the owner's tables as they are now, by a child process. A missing
    value counts as declared; where all are missing there is no answer. Raises `Refused` for a model of single records.
    """
    if _of_records(model):
        raise Refused(
            say("this model predicts for one record, not for a person; give it records as a file, one a row (--people)")
        )
    values = at_once(_request(model, database, as_of, _questions(model)), LONGEST_EVALUATION)
    found = _prediction(
        model, "you", {feature.name: value for feature, value in zip(model.features, values, strict=True)}
    )
    return evolve(found, positive=None, value=None) if found.unread else found


def own_beside(model: PublishedModel, database: Path, as_of: int, weighted: bool) -> OwnEnsemble:
    """A model of the owner's own records beside those of groups, by a child process that reads the owner's tables.
    Raises `Refused` for another model, and for too few records."""
    if not isinstance(model, EnsembleModel):
        raise Refused(say("a model of your own stands beside models of groups alone; leave --own out"))
    label = Question(LABEL, model.label.query, texts_of((*model.label.positive, *model.label.negative)))
    request = _request(model, database, as_of, (*_questions(model), label))._replace(most=MOST_OWN)
    found, each = at_once(request, LONGEST_EVALUATION), len(request.questions)
    names = [feature.name for feature in model.features]
    rows = [found[at : at + each] for at in range(0, len(found), each)]
    return beside(model, [(dict(zip(names, row[:-1], strict=True)), row[-1]) for row in rows], weighted)


def _questions(model: PublishedModel) -> tuple[Question, ...]:
    return tuple(Question(feature.kind, feature.query, feature.categories) for feature in model.features)


def _request(model: PublishedModel, database: Path, as_of: int, questions: tuple[Question, ...]) -> Request:
    """The child's part: these questions, and the owner's tables that they name."""
    words = {word for question in questions for word in _WORDS.findall(question.query.lower())}
    tables = {table: columns for table, columns in plain_tables_of(database).items() if table in words}
    return Request(database.absolute(), tables, questions, as_of)


def predict_people(
    model: PublishedModel,
    file: Path,
    person: str | None,
    as_of: int,
    home: Path | None = None,
    own: OwnEnsemble | None = None,
) -> Iterator[Prediction]:
    """One prediction per row of a CSV (or JSON Lines) file, or per value of the column `person`.

    Each person's rows alone are that person's table, as on a peer. Of a model of single records each row is one. Raises
    `Malformed` for a model that reads several tables, and for a file whose columns lack what the model's queries read.
    Raises `Refused` for people of several records. `own`: predicts in the model's place.
    """
    if person is not None and _of_records(model):
        raise Refused(say("this model predicts for one record, and each row is one; leave --person out"))
    table = _only_table(model)
    with _folder(home) as folder:
        everyone, alone = folder / "everyone.sqlite", folder / "alone.sqlite"
        try:
            import_file(everyone, file, table)
        except (Malformed, Refused) as error:
            raise type(error)(say("{file}: {fault}", file=whole_place(file), fault=attributed(str(error)))) from None
        columns = plain_tables_of(everyone)[table]
        if person is not None and person not in columns:
            raise Malformed(
                say(
                    "{name}: expected a column {person}, got {columns}",
                    name=whole_place(file.name),
                    person=Quoted(person),
                    columns=listed(columns),
                )
            )
        faults = _unfit(model, {table: columns})
        if faults:
            raise Malformed(
                say(
                    "{name}: the model cannot be used on its columns. {faults}",
                    name=whole_place(file.name),
                    faults=joined(map(attributed, faults)),
                )
            )
        for who, rows in _people(everyone, table, columns, person):
            import_rows(alone, table, columns, rows, durable=False)
            yield _predict(model, who, alone, as_of, own)


@contextmanager
def _folder(home: Path | None) -> Iterator[Path]:
    """Where people's rows lie meanwhile: in the home if there is one, which removes what a killed process left."""
    if home is None or not home.is_dir():
        with tempfile.TemporaryDirectory(prefix="anonml-people-") as folder:
            yield Path(folder)
        return
    held = HeldFolder(home / PEOPLE, os.urandom)
    try:
        yield held.path
    finally:
        held.remove()


def write_predictions(predictions: Iterable[Prediction], target: Path) -> int:
    """A new CSV for its owner alone, without formulas; how many rows. When a prediction fails, no file is left.

    Raises `Refused` when the file exists or its folder does not.
    """
    try:
        stream = new_private_text(target)
    except OSError as error:
        raise Refused(
            say(
                "{target}: cannot be made ({strerror}); name a new file in a folder of yours",
                target=whole_place(target),
                strerror=of_the_system(error),
            )
        ) from None
    try:
        with stream:
            return _write(csv.writer(stream).writerow, predictions)
    except BaseException:
        target.unlink()
        raise


def _write(writerow: Callable[[Sequence[object]], object], predictions: Iterable[Prediction]) -> int:
    """Scores and answers, or the numbers of a model that predicts numbers."""
    count = 0
    for count, prediction in enumerate(predictions, start=1):
        number = prediction.value is not None
        if count == 1:
            writerow(("who", "value") if number else ("who", "probability", "positive"))
        answer = "" if prediction.positive is None else int(prediction.positive)
        score = (f"{prediction.probability:.6f}", answer)
        writerow((plain_cell(prediction.who), *((f"{prediction.value:.9g}",) if number else score)))
    if not count:
        writerow(("who", "probability", "positive"))
    return count


def _predict(model: PublishedModel, who: str, database: Path, as_of: int, own: OwnEnsemble | None) -> Prediction:
    if not _of_records(model):
        return _prediction(model, who, evaluate_here(database, model.features, model.label, as_of).values)
    with opened(database, seconds=LONGEST_EVALUATION) as sandbox:
        queries = [feature.query for feature in model.features]
        (found,) = (drawn(sandbox, queries, as_of, Draw(1, b"")) if sandbox else None) or [[None] * len(queries)]
    values = {
        feature.name: None if outcome is None else value_of(feature.kind, outcome)
        for feature, outcome in zip(model.features, found, strict=True)
    }
    return _prediction(model, who, values, own)


def _prediction(
    model: PublishedModel, who: str, values: Mapping[str, Value], own: OwnEnsemble | None = None
) -> Prediction:
    found = (own or model).predict(values)
    return Prediction(
        who, found.probability, model.threshold, found.positive, found.moved_by, found.value, values
    )


def _only_table(model: PublishedModel) -> str:
    queries = [feature.query for feature in model.features]
    tables = {name.lower() for query in queries for name in _READS.findall(query)}
    tables -= {name.lower() for query in queries for name in _DEFINES.findall(query)}
    if len(tables) != 1:
        raise Malformed(say("this model reads several tables; predict one person at a time with `anonml peer predict`"))
    return str(tables.pop())


def _people(
    database: Path, table: str, columns: Sequence[str], person: str | None
) -> Iterator[tuple[str, list[tuple[int | float | str | None, ...]]]]:
    connection = connect(database, DATA_KEPT)
    try:
        listed = ", ".join(f'"{column}"' for column in columns)
        if person is None:
            for number, row in enumerate(connection.execute(f'SELECT {listed} FROM "{table}"'), start=1):
                yield str(number), [row]
            return
        column = columns.index(person)
        ordered = connection.execute(f'SELECT {listed} FROM "{table}" ORDER BY "{person}"')
        for who, rows in groupby(ordered, key=lambda row: row[column]):
            yield str(who), list(rows)
    finally:
        connection.close()


def distinct_digits(number: float, other: float) -> tuple[str, str]:
    """Two shares as per cent, with as many of 1 to 6 decimals as it takes to see which is larger."""
    for decimals in range(1, 7):
        first, second = f"{100 * number:.{decimals}f}", f"{100 * other:.{decimals}f}"
        if first != second or number == other:
            break
    return first, second
