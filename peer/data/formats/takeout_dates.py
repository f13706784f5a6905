"""Times as Google Takeout writes them into HTML, in the account's language: "Aug 25, 2020, 5:06:44 PM PDT",
"01.04.2023, 12:34:56 MESZ", "30 sept. 2026, 08:00:00 WAT", "2024年2月5日 14:21:00 JST".

No page of Google's documents them; the forms are those of CLDR's medium formats. A zone whose abbreviation is not known
here leaves the time without one.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta, timezone

_MONTHS = (
    "jan january januar januari janv janvier ene enero gennaio gen janeiro sty stycznia ocak oca",
    "feb february februar februari fevr fevrier febrero febbraio fev fevereiro lut lutego subat sub",
    "mar march marz mrz mrt maart mars marzo marco marca mart",
    "apr april avr avril abr abril aprile kwi kwietnia nisan nis",
    "may mai mei mayo maggio mag maio maj maja mayis",
    "jun june juni juin junio giugno giu junho cze czerwca haziran haz",
    "jul july juli juil juillet julio luglio lug julho lip lipca temmuz tem",
    "aug august augustus aout ago agosto sie sierpnia agustos agu",
    "sep sept september septembre septiembre settembre set setembro wrz wrzesnia eylul eyl",
    "oct october okt oktober octobre octubre ottobre ott out outubro paz pazdziernika ekim eki",
    "nov november novembre noviembre novembro lis listopada kasim kas",
    "dec december dez dezember decembre dic diciembre dicembre dezembro gru grudnia aralik ara",
)
_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_ZONES = {
    "utc": 0, "gmt": 0, "z": 0, "wet": 0, "west": 1, "bst": 1, "cet": 1, "mez": 1, "wat": 1, "cest": 2, "mesz": 2,
    "cat": 2, "sast": 2, "eet": 2, "oez": 2, "eest": 3, "oesz": 3, "msk": 3, "eat": 3, "trt": 3, "gst": 4, "pkt": 5,
    "ist": 5.5, "wib": 7, "ict": 7, "hkt": 8, "sgt": 8, "awst": 8, "jst": 9, "kst": 9, "acst": 9.5, "aest": 10,
    "aedt": 11, "nzst": 12, "nzdt": 13, "brt": -3, "art": -3, "ndt": -2.5, "nst": -3.5, "adt": -3, "ast": -4,
    "edt": -4, "est": -5, "cdt": -5, "cst": -6, "mdt": -6, "mst": -7, "pdt": -7, "pst": -8, "akdt": -8, "akst": -9,
    "hst": -10,
}  # fmt: skip
_CLOCK = re.compile(r"(?<![\d.])(\d{1,2})[:.](\d{2})[:.](\d{2})(?!\d)\s*(am|pm|a\. ?m\.|p\. ?m\.)?\s*(.*)")
_OFFSET = re.compile(r"(?:utc|gmt)?\s*([+-])(\d{1,2}):?(\d{2})?")
_WORDS = re.compile(r"[^\W\d_]+|\d+")
LONGEST = 120


def iso(text: str) -> str | None:
    """The instant as 2024-02-05T14:21:00.000Z; without Z where the zone is not known; None for what is no time."""
    if len(text) > LONGEST:
        return None
    plain = _plain(text)
    clock = _CLOCK.search(plain)
    day = _day(plain[: clock.start()]) if clock else None
    if clock is None or day is None:
        return None
    hour = int(clock[1])
    if clock[4]:
        hour = hour % 12 + (12 if clock[4][0] == "p" else 0)
    try:
        moment = datetime(*day, hour, int(clock[2]), int(clock[3]))  # noqa: DTZ001
        offset = _offset(clock[5])
        return written(moment if offset is None else moment.replace(tzinfo=timezone(offset)))
    except (ValueError, OverflowError):
        return None


def iso_of_iso(text: str) -> str | None:
    """The same spelling of what the JSON export holds (RFC 3339)."""
    try:
        return written(datetime.fromisoformat(text)) if len(text) <= LONGEST else None
    except (ValueError, OverflowError):
        return None


def written(moment: datetime) -> str:
    """All alike, so that they sort as text."""
    if moment.tzinfo is None:
        return moment.isoformat(timespec="milliseconds")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(sign for sign in decomposed if not unicodedata.combining(sign))
    return " ".join(kept.replace("ı", "i").replace("ł", "l").split())


def _day(text: str) -> tuple[int, int, int] | None:
    words = _WORDS.findall(text)
    numbers = [int(word) for word in words if word.isdecimal() and len(word) <= 4]
    months = [_MONTH[word] for word in words if word in _MONTH]
    if len(numbers) == 2 and len(months) == 1:
        year, day = max(numbers), min(numbers)
        return year, months[0], day
    if len(numbers) == 3 and not months:
        first, second, third = numbers
        if first > 31:
            return first, second, third
        return (third, first, second) if "/" in text and second > 12 else (third, second, first)
    return None


def _offset(text: str) -> timedelta | None:
    word = text.strip()
    if word in _ZONES:
        return timedelta(hours=_ZONES[word])
    match = _OFFSET.fullmatch(word)
    if match is None:
        return None
    sign = -1 if match[1] == "-" else 1
    return sign * timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
