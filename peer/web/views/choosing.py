"""The owner's choices beside a previewed file: which column is which, whose rows are taken, how numbers are read."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from anon.errors import Malformed, Refused
from anon.study.features import Table
from anon.study.manifest import Manifest
from anon.tables.numerals import Numerals
from anon.text.foreign import Quoted
from anon.text.sentences import say
from anon.values import frozen
from peer.data.choices import Choices, Person, remembered
from peer.data.fitting import Fit, PeopleColumn, fit_of, likely, people_in
from peer.data.preview import PreviewColumn, PreviewTable
from peer.web.forms import form_text
from peer.web.site import Site

NONE = "-"
"""The owner's word that the file has no such column. No column has this name."""
_COMMAS = {Numerals.DECIMAL, Numerals.THOUSANDS}


@frozen
class NumberReading:
    """A column whose numbers can be read in several ways, and the likely one."""

    column: PreviewColumn
    likely: Numerals | None


@frozen
class FileOffer:
    """Everything that an owner may choose for one file of one table. `fit` is None where no study reads its table."""

    columns: tuple[str, ...]
    fit: Fit | None
    people: PeopleColumn | None
    readings: tuple[NumberReading, ...]
    several: bool
    unread: tuple[str, ...] = ()
    """Columns that no study reads, where one reads others of this table."""


async def offer_of(site: Site, table: PreviewTable, wanted: Table | None, studies: Sequence[Manifest]) -> FileOffer:
    """The choices for a previewed table that is to become this table of the studies."""
    fit = None
    if wanted is not None:
        known = await site.threads.asked(remembered, site.data_path, wanted.name)
        fit = await site.threads.asked(fit_of, table, wanted, studies, known)
    columns = tuple(column.name for column in table.columns)
    several = table.count is None or table.count > 1
    readings, unread = tuple(_readings(table, wanted, fit)), _unread(columns, wanted, studies)
    return FileOffer(columns, fit, people_in(table), readings, several, unread)


def _unread(columns: Sequence[str], wanted: Table | None, studies: Sequence[Manifest]) -> tuple[str, ...]:
    if wanted is None:
        return ()
    read = {name for study in studies for table in study.tables if table.name == wanted.name for name in table.columns}
    return tuple(name for name in columns if name not in read)


def _readings(table: PreviewTable, wanted: Table | None, fit: Fit | None) -> list[NumberReading]:
    read = {*(wanted.columns if wanted else ()), *(fit.guessed.values() if fit else ())}
    return [
        NumberReading(column, likely(column, [row[place] for row in table.sample]))
        for place, column in enumerate(table.columns)
        if column.readings and (column.name in read or _COMMAS & set(column.readings))
    ]


async def choices_of(request: web.Request, offer: FileOffer) -> Choices:
    """The owner's choices in the form. Raises `Refused` for what is left open, with what to say."""
    names = await _names(request, offer)
    kept = offer.unread if await form_text(request, "unread") == "keep" else names
    left_out = frozenset(offer.unread) - frozenset(kept)
    if left_out == frozenset(offer.columns):
        left_out = frozenset()
    numerals = {name: how for name, how in (await _numerals(request, offer)).items() if name not in left_out}
    return Choices(names, await _person(request, offer), numerals, left_out=left_out)


async def _names(request: web.Request, offer: FileOffer) -> dict[str, str]:
    names: dict[str, str] = {}
    for lacking in offer.fit.guessed if offer.fit is not None else ():
        chosen = await form_text(request, f"column.{lacking}")
        if not chosen:
            raise Refused(say(
                "say which column of the file is {lacking}, or that it has none; nothing was imported",
                lacking=Quoted(lacking),
            ))
        if chosen in names:
            raise Refused(say("one column of the file was chosen twice; choose another, or say that it has none"))
        if chosen in offer.columns:
            names[chosen] = lacking
    return names


async def _person(request: web.Request, offer: FileOffer) -> Person | None:
    column, value = await form_text(request, "person_column"), await form_text(request, "person")
    if await form_text(request, "whose") == "all" or (offer.people is None and not value):
        return None
    if column not in offer.columns:
        raise Refused(say("say which column tells whose row it is; nothing was imported"))
    if not value:
        raise Refused(say("say which one is you, as the file has it, or that all rows are yours; nothing was imported"))
    return Person(column, value)


async def _numerals(request: web.Request, offer: FileOffer) -> dict[str, Numerals]:
    found: dict[str, Numerals] = {}
    for reading in offer.readings:
        name = reading.column.name
        chosen = await form_text(request, f"numerals.{name}") or reading.likely
        if chosen is None:
            raise Refused(say("say how the numbers of {name} are written; nothing was imported", name=Quoted(name)))
        if chosen not in set(reading.column.readings):
            raise Malformed(say("a way to write numbers that this page does not offer; load it again"))
        found[name] = Numerals(chosen)
    return found
