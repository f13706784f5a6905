"""Moodle's standard log (Moodle Docs, "Logs": Reports > Logs > Download table data as CSV or JSON), in any language.

Headings are translated, their order is not (`report_log`, `table_log`): time, user, affected user, event context,
component, event name, description, origin, IP address, and before them the course where the whole site was asked for.
So columns go by place. The JSON download is one list of sheets, each a list of rows without any heading.

Times are in the site's language and time zone and without a zone. They are kept as they are, and `time_iso` has them as
2024-02-05T14:21:00 so that they sort; day and month are told apart by the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from anon.tables.streams import Cell, ImportLimits, Origin, Record, Skip, Source
from anon.text.sentences import say
from anon.values import frozen
from peer.data.formats.json_text import numbered_entries

TABLE = "moodle_log"
COLUMNS = (
    "time", "user_full_name", "affected_user", "event_context", "component", "event_name", "description", "origin",
    "ip_address",
)  # fmt: skip
WITH_COURSE = ("course", *COLUMNS)
TIME_ISO = "time_iso"
NOTES = {
    True: (say("its times are read as month/day/year, because one of them can only be that"),),
    None: (say("its times do not tell day from month; they are read as day/month/year"),),
    False: (),
}
"""The owner's note about the order of day and month."""
_ORIGINS = {"web", "ws", "cli", "restore"}
_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-f:.]*:[0-9a-f:.]+", re.IGNORECASE)
_HEADINGS = (
    ("time", "user full name", "affected user", "event context", "component", "event name", "description", "origin",
     "ip address"),
    ("zeit", "vollständiger name", "betroffene/r nutzer/in", "ereigniskontext", "komponente", "ereignisname",
     "beschreibung", "herkunft", "ip-adresse"),
    ("heure", "nom complet", "utilisateur touché", "contexte de l'événement", "composant", "nom de l'événement",
     "description", "origine", "adresse ip"),
    ("hora", "nombre completo del usuario", "usuario afectado", "contexto del evento", "componente",
     "nombre del evento", "descripción", "origen", "dirección ip"),
    ("hora", "nome completo", "usuário afetado", "contexto do evento", "componente", "nome do evento", "descrição",
     "origem", "endereço ip"),
)  # fmt: skip
_ENOUGH = 6
_SAMPLE = 20
_ROWS_ASKED = 100_000
_TIME = re.compile(
    r"(\d{1,4})[./\-年]\s*(\d{1,2})[./\-月]\s*(\d{1,4})日?\D{1,4}"
    r"(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?\s*([AaPp]\.?\s?[Mm])?.*"
)


def is_moodle(source: Source) -> bool:
    """By a known heading, or by what the first rows hold: an origin and an address in the last two places."""
    headings = [key.partition("\0")[0].casefold().replace("’", "'") for key in source.keys()]  # noqa: SIM118
    if len(headings) not in (len(COLUMNS), len(WITH_COURSE)):
        return False
    known = headings[-len(COLUMNS) :]
    if any(sum(a == b for a, b in zip(known, row, strict=True)) >= _ENOUGH for row in _HEADINGS):
        return True
    first = islice(source.records(), _SAMPLE)
    return _rows_look_right([list(row.values()) for _number, row in first if not isinstance(row, Skip)])


def is_moodle_list(rows: Sequence[object]) -> bool:
    """True if the first entries of a list of lists are such rows."""
    return _rows_look_right([row for row in rows if isinstance(row, list) and len(row) in (9, 10)])


def _rows_look_right(rows: Sequence[Sequence[object]]) -> bool:
    ends = [(str(row[-2]).strip(), str(row[-1]).strip()) for row in rows]
    right = [origin in _ORIGINS and bool(_ADDRESS.fullmatch(address)) for origin, address in ends if address]
    return sum(right) * 2 > len(right)


@frozen
class MoodleSource:
    """The rows of one download under the names above. `rows` is the CSV or a sheet; without it the origin is the JSON.
    """

    origin: Origin
    limits: ImportLimits
    rows: Source | None = None
    typed: bool = True

    @property
    def unit(self) -> str:
        """Lines of CSV, rows of a sheet, entries of JSON."""
        return self.rows.unit if self.rows is not None else "entry"

    def keys(self) -> Sequence[str]:
        """Every column, by Moodle's English names; the course only where it is there."""
        wide = self.rows is not None and len(self.rows.keys()) == len(WITH_COURSE)
        return (*(WITH_COURSE if wide else COLUMNS), TIME_ISO)

    def records(self) -> Iterator[Record]:
        """Every row with its time in both spellings."""
        order = bool(self.month_first())
        for number, cells in self._cells():
            yield number, cells if isinstance(cells, Skip) else _named(cells, order)

    def month_first(self) -> bool | None:
        """True if times are written month first; None if the first 100,000 rows do not tell."""
        cells = islice(self._cells(), _ROWS_ASKED)
        return _month_first(row[-len(COLUMNS)] for _number, row in cells if not isinstance(row, Skip))

    def _cells(self) -> Iterator[tuple[int, list[Cell] | Skip]]:
        if self.rows is not None:
            for number, row in self.rows.records():
                yield number, row if isinstance(row, Skip) else list(row.values())
            return
        for number, value in numbered_entries(self.origin, self.limits, depth=2):
            yield number, _listed(value)


def _listed(value: object) -> list[Cell] | Skip:
    if not isinstance(value, list):
        return value if isinstance(value, Skip) else Skip.BROKEN
    if len(value) not in (len(COLUMNS), len(WITH_COURSE)):
        return Skip.WIDTH
    return [cell if isinstance(cell, str) else None for cell in value]


def _named(cells: Sequence[Cell], month_first: bool) -> dict[str, Cell]:
    row: dict[str, Cell] = dict(zip(WITH_COURSE[-len(cells) :], (_clean(cell) for cell in cells), strict=True))
    row[TIME_ISO] = _iso(row["time"], month_first)
    return row


def _clean(cell: Cell) -> Cell:
    """A dash stands for nobody; so does an empty cell."""
    text = cell.strip() if isinstance(cell, str) else None
    return text if text and text != "-" else None


def _month_first(times: Iterator[Cell]) -> bool | None:
    unsaid = False
    for time in times:
        if not isinstance(time, str) or len(time) >= 60 or (match := _TIME.fullmatch(time.strip())) is None:
            continue
        if len(match[1]) == 4 or "." in time.partition(" ")[0]:
            continue
        if int(match[1]) > 12 or int(match[2]) > 12:
            return int(match[2]) > 12
        unsaid = True
    return None if unsaid else False


def _iso(time: Cell, month_first: bool) -> str | None:
    if not isinstance(time, str) or len(time) >= 60 or (match := _TIME.fullmatch(time.strip())) is None:
        return None
    first, second, third, hour, minute, sharp = (int(part or 0) for part in match.groups()[:6])
    dotted = "." in time.partition(" ")[0]
    if len(match[1]) == 4:
        year, month, day = first, second, third
    else:
        day, month = (second, first) if month_first and not dotted else (first, second)
        year = third if third >= 100 else 2000 + third
    if match[7]:
        hour = hour % 12 + (12 if match[7][0] in "pP" else 0)
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and sharp < 60):
        return None
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{sharp:02}"
