"""Google Takeout's activity: "My Activity" and YouTube's history, as JSON or HTML, in any language of the account.

Google Account Help, "How to download your Google data", and the Data Portability API's "My Activity" schema reference
name the JSON's fields (header, title, titleUrl, subtitles, description, time, products, details, activityControls,
locationInfos). Folder and file names are translated ("Meine Aktivitäten/YouTube/MeineAktivitäten.html"), with plain or
unbreakable spaces. A file is taken for activity by its name in a language listed here; by the rule that it is called
like the folder above its own, which holds in most languages; or by how it begins. Other parts of an export (mail,
photos, contacts) are not opened.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from attrs import field

from anon.tables.streams import Cell, ImportLimits, Origin, Record, Skip
from anon.values import frozen
from peer.data.formats.archives import ArchiveMember
from peer.data.formats.json_text import cell_of, numbered_entries
from peer.data.formats.takeout_dates import iso_of_iso
from peer.data.formats.takeout_html import is_activity_page, numbered_activities

TABLE = "takeout_activity"
COLUMNS = (
    "time", "time_text", "folder", "header", "title", "title_url", "subtitles", "description", "products", "details",
)  # fmt: skip
_NAMES = """
my activity | meine aktivitäten | mon activité | mi actividad | la mia attività | le mie attività | minha atividade |
a minha atividade | mijn activiteit | moja aktywność | etkinliğim | min aktivitet | mina aktiviteter | moje aktivita |
omat tapahtumani | мои действия | 我的活动记录 | 我的活動 | マイ アクティビティ | 내 활동 | نشاطي | أنشطتي |
watch-history | search-history | Wiedergabeverlauf | Suchverlauf | kijkgeschiedenis | zoekgeschiedenis |
historial de reproducciones | historial de búsqueda | historial de búsquedas | izleme geçmişi
"""
_PAGE_HEAD = 512 * 1024
_PROBES = 200
_ENTRY_KEYS = {"header", "title", "time"}
Part = tuple[str, Origin]
"""A product's folder, and a file in it."""


def is_activity_entry(value: Any) -> bool:
    """True if an entry of a JSON list is an activity."""
    return isinstance(value, dict) and value.keys() >= _ENTRY_KEYS


def looks_like_activity(origin: Origin, limits: ImportLimits) -> bool:
    """By how the file begins."""
    if ".json" in origin.suffixes:
        first = next(iter(numbered_entries(origin, limits)), (0, None))[1]
        return is_activity_entry(first)
    return ".html" in origin.suffixes and is_activity_page(origin.start(limits, _PAGE_HEAD))


def activity_parts(members: Sequence[ArchiveMember], limits: ImportLimits) -> list[Part]:
    """The activity files among these; empty where there are none."""
    pages = [member for member in members if member.path.lower().endswith((".json", ".html"))]
    named = [member for member in pages if _named(member.path)]
    if not named:
        named = [member for member in pages[:_PROBES] if looks_like_activity(member.origin, limits)]
    return [(_folder(member.path), member.origin) for member in named]


def _named(path: str) -> bool:
    *folders, name = path.split("/")
    plain = _plain(name.rpartition(".")[0])
    return plain in _PLAIN_NAMES or (len(folders) >= 2 and plain == _plain(folders[-2]) and len(plain) > 3)


def _folder(path: str) -> str:
    folders = path.split("/")[:-1]
    return " ".join(folders[-1].split()) if folders else ""


def _plain(name: str) -> str:
    """Letters alone, without marks and case; every spelling of a space is none."""
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    return "".join(sign for sign in decomposed if sign.isalpha()).replace("ı", "i").replace("ł", "l")


_PLAIN_NAMES = frozenset(map(_plain, _NAMES.split("|")))


@frozen
class TakeoutSource:
    """The activities of all these files, one after another; a record's number counts on."""

    parts: tuple[Part, ...] = field(repr=False)
    limits: ImportLimits
    typed: bool = True
    unit: str = "entry"

    def keys(self) -> Sequence[str]:
        """Always the same, so that a study may name them."""
        return COLUMNS

    def records(self) -> Iterator[Record]:
        """Every activity. An HTML page is read whole however it is cut; a JSON list entry by entry."""
        number = 0
        for folder, origin in self.parts:
            for _number, row in self._activities(origin):
                number += 1
                if not isinstance(row, Skip):
                    row["folder"] = folder
                yield number, row

    def _activities(self, origin: Origin) -> Iterable[Record]:
        if ".html" in origin.suffixes:
            return numbered_activities(origin, self.limits)
        return ((number, _row(value)) for number, value in numbered_entries(origin, self.limits))


def _row(value: Any) -> dict[str, Cell] | Skip:
    if not isinstance(value, dict) or not isinstance(value.get("title"), str):
        return value if isinstance(value, Skip) else Skip.BROKEN
    time = value.get("time")
    row: dict[str, Cell] = {name: cell_of(value.get(name)) for name in ("header", "title", "description")}
    return row | {
        "time": iso_of_iso(time) if isinstance(time, str) else None,
        "time_text": cell_of(time),
        "title_url": cell_of(value.get("titleUrl")),
        "subtitles": _names(value.get("subtitles")),
        "products": _texts(value.get("products")),
        "details": _names(value.get("details")),
    }


def _names(value: Any) -> str | None:
    """One line for each name, as the page shows them."""
    if not isinstance(value, list):
        return None
    names = (part.get("name") for part in value if isinstance(part, dict))
    return "\n".join(name for name in names if isinstance(name, str)) or None


def _texts(value: Any) -> str | None:
    texts = [part for part in value if isinstance(part, str)] if isinstance(value, list) else []
    return json.dumps(texts, ensure_ascii=False) if texts else None
