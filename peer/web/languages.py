"""The languages of the owner's page: which one a browser is answered in, and every sentence, number and date in it.

English is written in the program. Every other language is a catalogue, `languages/CODE.po`, of all its sentences; a
sentence that a catalogue lacks is shown in English. A test allows none to lack any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from babel import Locale, UnknownLocaleError, negotiate_locale
from babel.dates import format_datetime
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from markupsafe import Markup, escape

from anon.text.foreign import FSI, PDI, Marked, Quoted
from anon.text.html import seen
from anon.text.instants import zone
from anon.text.sentences import Figure, JoinedSentence, PlainFields, Sentence, Term, filled, marked
from anon.values import frozen

ENGLISH: Final = "en"
NAMES: Final[Mapping[str, str]] = {"en": "English", "de": "Deutsch", "es": "Español", "nl": "Nederlands"}
"""Code -> the language's name in itself, in the order of the menu."""
COOKIE: Final = "anonml-language"
_DATES: Final = {
    "en": "EEE d MMM y, HH:mm",
    "de": "EEE, d. MMM y, HH:mm",
    "es": "EEE, d MMM y, HH:mm",
    "nl": "EEE d MMM y, HH:mm",
}
QUOTES: Final = {"en": "“”", "de": "„“", "es": "«»", "nl": "“”"}
"""The marks around a stranger's text. It can hold none of them (`anon.text.foreign.Quoted`)."""
_NUMERALS = str.maketrans({".": "\x00", ",": "\x01"})


@frozen
class Language:
    """A language: its locale and the pattern in it for each English pattern."""

    code: str
    locale: Locale
    pattern_of: Callable[[str, str, int | None], str]
    """(pattern, its plural or "", count) -> the pattern in this language; English where it has none."""


_current: ContextVar[str] = ContextVar("language", default=ENGLISH)


def current() -> Language:
    """The language of the page that is being made."""
    return language(_current.get())


def set_current(code: str) -> None:
    """The language for what the running task makes from now on."""
    _current.set(code)


@contextmanager
def speaking(code: str) -> Iterator[None]:
    """The language within a block."""
    token = _current.set(code)
    try:
        yield
    finally:
        _current.reset(token)


def preferred(chosen: str | None, accepted: str) -> str:
    """The code of the language to answer in: the one chosen before, else the first known of `Accept-Language`."""
    if chosen in NAMES:
        return str(chosen)
    parts = accepted.split(",")[:16]
    wanted = sorted((-_quality(part), place, part.split(";")[0].strip()) for place, part in enumerate(parts))
    codes = [code for quality, _, code in wanted if quality < 0]
    return negotiate_locale(codes, list(NAMES), sep="-") or ENGLISH


def _quality(part: str) -> float:
    try:
        return float(part.split(";q=")[1]) if ";q=" in part else 1.0
    except ValueError:
        return 0.0


@cache
def language(code: str) -> Language:
    """A language with its catalogue."""
    locale = Locale.parse(code)
    if code == ENGLISH:
        return Language(code, locale, _english)
    return Language(code, locale, _patterns(catalogue(code)))


def catalogue(code: str) -> Catalog:
    """The translations of a language, as they lie in the program."""
    with files("peer.web").joinpath("languages", f"{code}.po").open("rb") as stream:
        return read_po(stream, locale=code)


def _english(pattern: str, many: str, count: int | None) -> str:
    return many if many and count != 1 else pattern


def _patterns(known: Catalog) -> Callable[[str, str, int | None], str]:
    def pattern_of(pattern: str, many: str, count: int | None) -> str:
        message = known.get(pattern)
        if message is None or not message.string:
            return _english(pattern, many, count)
        if isinstance(message.string, str):
            return message.string
        # German, Dutch and Spanish have the plurals of English: one, and all others.
        return message.string[0 if count == 1 else 1] or _english(pattern, many, count)

    return pattern_of


# Showing


def localised(value: object) -> object:
    """A value as the page's language has it: sentences by their pattern, figures by their signs, strangers' texts
    between its marks and isolated, the rest as it is."""
    match value:
        case JoinedSentence():
            return Marked(value.separator.join(str(localised(part)) for part in value.parts))
        case Sentence():
            count = value.values.get("count")
            pattern = current().pattern_of(value.pattern, value.many, count if isinstance(count, int) else None)
            return Marked(filled(pattern, value.values, _FIELDS))
        case Quoted():
            return Marked(f"{FSI}{value.said.join(QUOTES[current().code])}{PDI}")
        case Figure():
            return figure(value)
        case BaseException():
            return localised(str(value))
        case _:
            return value


def language_name(code: str) -> Term | Quoted:
    """The name of a language in the page's; the code itself where Babel knows none."""
    try:
        name = Locale.parse(code, sep="-").get_display_name(current().locale)
    except (UnknownLocaleError, ValueError):
        name = None
    return Term(name) if name else Quoted(code)


def figure(text: str) -> Marked:
    """A number in English digits, with the signs of the page's language."""
    signs = current().locale.number_symbols["latn"]
    written = str.__str__(text).translate(_NUMERALS)
    return Marked(written.replace("\x00", signs["decimal"]).replace("\x01", signs["group"]))


def instant(seconds: float) -> Markup:
    """Unix seconds as this machine's clock shows them, with its zone, for people and for programs."""
    at = datetime.fromtimestamp(seconds).astimezone()
    said = format_datetime(at, _DATES[current().code], tzinfo=at.tzinfo, locale=current().locale)
    return Markup('<time datetime="{}">{} {}</time>').format(at.isoformat(timespec="seconds"), said, zone(at))


def shown(value: object) -> object:
    """The filter of every expression of every template: in the page's language, and as it can be seen."""
    return seen(localised(value))


def gettext(pattern: str, /, **values: object) -> Markup:
    """The text of a template in the page's language, with its values (`%(name)s`)."""
    return Markup(current().pattern_of(pattern, "", None)) % _escaped(values)  # noqa: S704  (catalogues are ours)


def ngettext(pattern: str, many: str, num: int, /, **values: object) -> Markup:
    """The same with a plural; `num` decides."""
    return Markup(current().pattern_of(pattern, many, num)) % _escaped(values | {"num": num})  # noqa: S704


def _escaped(values: Mapping[str, object]) -> dict[str, Any]:
    """A template has no types: a plain text is a stranger's here, and marked as one."""
    return {name: escape(shown(_marked(value))) for name, value in values.items()}


def _marked(value: object) -> object:
    return value if hasattr(value, "__html__") else marked(value)


class _Fields(PlainFields):
    """Values within a sentence, each in the page's language."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        """A number with a format is written as English does and then with this language's signs."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return figure(format(value, format_spec)) if format_spec else _number(value)
        return format(str(localised(value)), format_spec)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else str(format_decimal(value, locale=current().locale))


_FIELDS: Final = _Fields()
