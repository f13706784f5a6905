"""Sentences that stay translatable: each is its English text and remembers the pattern and the values it is made of.

A `Sentence` is a `str`, so that terminals, logs and tests read English and know of no language. A page translates it by
its pattern when it is shown (`peer.web.languages`), long after it was made or stored.

A value is a number, text of ours (`Sentence`, `Figure`, `Term`) or a stranger's (`Quoted`). A plain `str` is nobody's:
mypy refuses it, and a sentence that is given one marks it as a stranger's. So no text that came from elsewhere can
speak in our voice, wherever it passed before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any, Final, Self

from anon.text.foreign import LONGEST_PLACE, LONGEST_TOLD, Marked, Quoted

_STORED: Final = "\x02"
"""The first character of a stored sentence; no text of an owner or a study may hold it."""


class Sentence(Marked):
    """English text made of a pattern with `{names}` and its values. `many` is the pattern's plural, empty without one;
    the value `count` then says which of the two is meant.

    Joining it to other text with + or in an f-string gives a plain `str`: nest it as a value instead.
    """

    pattern: str
    many: str
    values: Mapping[str, object]

    def __new__(cls, pattern: str, many: str = "", values: Mapping[str, object] | None = None) -> Self:
        """The sentence in English."""
        values = {name: marked(value) for name, value in (values or {}).items()}
        made = super().__new__(cls, filled(chosen(pattern, many, values), values))
        made.pattern, made.many, made.values = pattern, many, values
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """The parts, for copies between processes."""
        return self.pattern, self.many, dict(self.values)


class JoinedSentence(Sentence):
    """Several texts, one after the other. There is nothing of its own to translate."""

    separator: str
    parts: tuple[str, ...]

    def __new__(cls, parts: Iterable[str], separator: str = "; ") -> JoinedSentence:
        """The parts with the separator between them."""
        parts = tuple(str(marked(part)) for part in parts)
        made: JoinedSentence = str.__new__(cls, separator.join(parts))
        made.pattern, made.many, made.values = "", "", {}
        made.parts, made.separator = parts, separator
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """The parts, for copies between processes."""
        return self.parts, self.separator


class Figure(Marked):
    """A number in English digits, such as 1,024.5. A page writes it with its language's signs."""


class Term(Marked):
    """A word of ours that is the same in every language: a command, a sign, a name out of this program's own tables.

    A test finds one that is made of anything that comes from elsewhere.
    """


Ours = Sentence | Figure | Term | Quoted
"""Text whose author is known."""
Sayable = Ours | int | float
"""The value of a sentence."""


def marked(value: object) -> object:
    """A sentence's value: as it is where its author is known, and any other as a stranger's text."""
    return value if isinstance(value, Marked | int | float) else Quoted(str(value), LONGEST_TOLD)


def attributed(text: str) -> Ours:
    """Text that was carried as a `str`: ours where it says so, and otherwise a stranger's."""
    return text if isinstance(text, Ours) else Quoted(text, LONGEST_TOLD)


def listed(texts: Iterable[str]) -> JoinedSentence:
    """Strangers' texts one after the other, each between marks of its own."""
    return JoinedSentence(map(Quoted, texts), ", ")


def say(pattern: str, /, **values: Sayable) -> Sentence:
    """A sentence. The pattern is a literal: the catalogue of translations is made from such calls.

    A stranger's text stands in marks of its own, so that it cannot speak in our voice:

    >>> say("{study} costs {count} packets", study=Quoted("Nothing at all"), count=3)
    '“Nothing at all” costs 3 packets'
    >>> say("{count} packets", count=3).pattern
    '{count} packets'
    """
    return Sentence(pattern, "", values)


def say_many(one: str, many: str, count: int, /, **values: Sayable) -> Sentence:
    """A sentence about `count` things, with its plural; both patterns may hold `{count}`."""
    return Sentence(one, many, {"count": count, **values})


def joined(parts: Iterable[Ours], separator: str = "; ") -> JoinedSentence:
    """Sentences one after the other."""
    return JoinedSentence(parts, separator)


def chosen(pattern: str, many: str, values: Mapping[str, object]) -> str:
    """Singular or plural, as English has them."""
    return many if many and values.get("count") != 1 else pattern


def filled(pattern: str, values: Mapping[str, object], formatter: Formatter | None = None) -> str:
    """The pattern with its values. A field is a plain name with an optional format. Raises `ValueError`."""
    try:
        return (formatter or _ENGLISH).vformat(pattern, (), values)
    except (KeyError, ValueError, IndexError, TypeError) as fault:
        raise ValueError(f"a sentence's pattern does not fit its values: {pattern!r}") from fault


class PlainFields(Formatter):
    """Fields are names: no attribute and no index of a value is read."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        """The value of that name."""
        if not field_name.isidentifier():
            raise ValueError(field_name)
        return self.get_value(field_name, args, kwargs), field_name


_ENGLISH: Final = PlainFields()
NOTHING: Final = joined(())
"""No words, as a value of a sentence."""


def to_store(text: str) -> str:
    """Text for a store: a sentence with its parts, other text as it is."""
    return _STORED + json.dumps(_packed(text), ensure_ascii=False) if isinstance(text, Sentence) else text


def from_store(text: str) -> str:
    """The sentence or text that `to_store` wrote. Raises `ValueError`."""
    if not text.startswith(_STORED):
        return text
    try:
        return str(_unpacked(json.loads(text[1:])))
    except (ValueError, KeyError, TypeError) as fault:
        raise ValueError("a stored sentence cannot be read") from fault


def _packed(value: object) -> object:
    match value:
        case JoinedSentence():
            return {"parts": [_packed(part) for part in value.parts], "separator": value.separator}
        case Sentence():
            values = {name: _packed(each) for name, each in value.values.items()}
            return {"pattern": value.pattern, "many": value.many, "values": values}
        case Figure():
            return {"figure": str.__str__(value)}
        case Term():
            return {"term": str.__str__(value)}
        case Quoted():
            return {"quoted": value.said}
        case bool() | int() | float() | None:
            return value
        case _:
            return str(value)


def _unpacked(value: object) -> object:
    match value:
        case {"parts": list(parts), "separator": str(separator)}:
            return JoinedSentence((str(_unpacked(part)) for part in parts), separator)
        case {"pattern": str(pattern), "many": str(many), "values": dict(values)}:
            return Sentence(pattern, many, {name: _unpacked(each) for name, each in values.items()})
        case {"figure": str(figure)}:
            return Figure(figure)
        case {"term": str(term)}:
            return Term(term)
        case {"quoted": str(said)}:
            return Quoted(said, LONGEST_PLACE)
        case str() | bool() | int() | float() | None:
            return value
        case _:
            raise ValueError(value)
