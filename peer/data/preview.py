"""The effect of an import, from the beginning of a file: for the page and the command line, before anything is kept.

Nothing is written. It reads at most `SAMPLE` records of each table, so it is quick whatever the file's length; types
and columns are those of the sample, and a later record may still widen them.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from threading import Event

from attrs import field

from anon.tables.columns import columns_of
from anon.tables.numerals import Numerals, readings
from anon.tables.streams import LIMITS, Cell, ImportLimits, Record, Source
from anon.text.foreign import Quoted
from anon.text.sentences import Figure, Sentence, attributed, joined, say
from anon.values import frozen
from peer.data.choices import Choices, NoSuchPerson
from peer.data.foreign import opened
from peer.data.formats.detect import READABLE, FileTable
from peer.data.importing import named_tables
from peer.data.reading import Reading, counted
from peer.data.watching import RecordMeter, said_as_a_bad_file, watched

SAMPLE = 200
COMMAS = {
    Numerals.DECIMAL: say("numbers with a decimal comma, so 1,5 is one and a half"),
    Numerals.THOUSANDS: say("numbers with commas between thousands"),
}
KINDS = {
    "INTEGER": say("whole numbers"),
    "REAL": say("numbers"),
    "TEXT": say("texts"),
    "": say("nothing so far"),
}


@frozen
class PreviewColumn:
    """A column to be; `kind` is INTEGER, REAL or TEXT, or empty where the sample holds nothing of it. `readings` are
    the ways to read its numbers that its owner may choose from."""

    name: str
    kind: str
    numerals: Numerals = Numerals.POINT
    readings: tuple[Numerals, ...] = ()

    @property
    def says(self) -> str:
        """The kind in words."""
        return COMMAS.get(self.numerals, KINDS[self.kind])


@frozen
class PreviewTable:
    """A table to be, with its first rows. The rows are the owner's data: shown to the owner alone, never logged."""

    name: str
    columns: tuple[PreviewColumn, ...]
    rows: tuple[tuple[Cell, ...], ...] = field(repr=False)
    count: int | None
    """Rows of the whole table, where that is known without reading all of it."""
    sample: tuple[tuple[Cell, ...], ...] = field(default=(), repr=False)
    """The first `SAMPLE` rows, as importing would read them."""


@frozen
class Preview:
    """A file's kind, and the tables that importing it would make."""

    format: str
    """csv, tsv, json, json-lines, sqlite, parquet, edx, moodle, takeout; zip, tar or folder where it holds several."""
    says: str
    """The same in a phrase."""
    tables: tuple[PreviewTable, ...]
    problems: tuple[str, ...]
    """Notes for the owner; never any of the data."""


def preview(
    path: Path,
    rows: int = 5,
    *,
    table: str | None = None,
    limits: ImportLimits = LIMITS,
    stop: Event | None = None,
    choices: Choices | None = None,
) -> Preview:
    """Look at a file, a folder or an archive. Raises what `import_file` would: `Malformed` or `Refused`.

    `rows` is how many first rows each table shows; a set `stop` ends it with `Refused`. An unsafe archive is refused
    before anything in it is unpacked. With `choices` it shows what they leave: looking for the rows of one person may
    read all of the file.
    """
    choices = choices or Choices()
    limits = watched(limits, limits.seconds if choices.person else limits.look_seconds, stop)
    with said_as_a_bad_file(), opened(path, limits) as found:
        meter = RecordMeter(limits, found.size)
        seen = [_table(name, source, rows, meter, choices) for name, source in named_tables(found, table, limits)]
        problems = [*found.notes, *(problem for _table, problems in seen for problem in problems)]
        return Preview(found.format, found.says, tuple(sample for sample, _problems in seen), tuple(problems))


def _table(
    name: str, source: Source, rows: int, meter: RecordMeter, choices: Choices
) -> tuple[PreviewTable, list[str]]:
    limits, records = meter.limits, meter.records(source)
    if choices.person:
        records = choices.person.rows(records)
    sample: list[Record] = list(islice(records, SAMPLE + 1))
    whole, sample = len(sample) <= SAMPLE, sample[:SAMPLE]
    if choices.person and not sample:
        raise NoSuchPerson(say(
            "no row has that value in the column {column}; write it as it stands in the file",
            column=Quoted(choices.person.column),
        ))
    columns = columns_of(source, sample, limits, READABLE, choices.numerals)
    renamed = choices.renamed(columns.values())
    reading = Reading(source.typed, columns, limits, lambda _rows: None)
    first = list(reading.rows(sample))
    shown = PreviewTable(
        name,
        tuple(
            PreviewColumn(renamed[column.name], column.kind, column.numerals, readings(column.shapes))
            for column in columns.values()
        ),
        tuple(map(tuple, first[:rows])),
        len(first) if whole else None if choices.person else _count(source),
        tuple(map(tuple, first)),
    )
    return shown, _problems(name, source, reading, whole)


def _count(source: Source) -> int | None:
    return FileTable(None, "", source).count()


def _problems(name: str, source: Source, reading: Reading, whole: bool) -> list[str]:
    def among(counted_things: Sentence) -> Sentence:
        return counted_things if whole else say("{things} among the first {most}", things=counted_things, most=SAMPLE)

    problems: list[str] = []
    if reading.skipped:
        why = joined(joined((Figure(str(count)), attributed(reason)), " ") for reason, count in reading.reasons.items())
        problems.append(
            say(
                "{table}: {things} would be skipped ({why}), by number: {numbers}",
                table=Quoted(name),
                things=among(counted(reading.skipped, source.unit)),
                why=why,
                numbers=joined((Figure(str(number)) for number in reading.numbers), ", "),
            )
        )
    if reading.emptied:
        things = among(counted(reading.emptied, "text"))
        left_out = say("{table}: {things} would be left out: too long, or not text", table=Quoted(name), things=things)
        problems.append(left_out)
    if not reading.read and whole:
        problems.append(say("{table}: no rows", table=Quoted(name)))
    return problems
