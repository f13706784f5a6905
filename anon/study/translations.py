"""A study's texts in further languages: a part of its one signed document, shown piece by piece where one is there.

The fingerprint covers all of them, so everybody agrees to the same texts. No program compares a translation with the
main text: it is as much the word of who asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol, Self

from attrs import evolve, field

from anon.errors import InvalidValue
from anon.study.features import Feature, Label, demand_line, demand_plain
from anon.study.structuring import LEFT_OUT, kind_of
from anon.values import frozen

LANGUAGE_PATTERN: Final = "^[a-z]{2,3}(-[a-z0-9]{2,8}){0,2}$"
"""Of a language's code, such as de or pt-br: a BCP 47 tag in small letters."""
_LANGUAGE = re.compile(LANGUAGE_PATTERN.replace("$", r"\Z"))
MOST_LANGUAGES = 12
LONGEST_TEXTS = 2**16
"""Bytes of all further languages together: a manifest with them stays below its most."""
LONGEST_PURPOSE, LONGEST_DESCRIPTION = 8000, 400
"""Characters."""
PIECES: Final = ("title", "purpose", "data_source")


def _coded(_: object, attribute: Any, value: str) -> None:
    demand_language(attribute.name, value)


def demand_language(name: str, value: str) -> None:
    """Raises `InvalidValue` for what is no code of a language."""
    if not _LANGUAGE.match(value):
        raise InvalidValue(f'{name}: expected a language such as "de" or "pt-br", got {kind_of(value)}')


@frozen
class TranslatedWords:
    """The description of a feature or of the label in another language."""

    name: str
    description: str

    def __attrs_post_init__(self) -> None:
        demand_plain("description", self.description)
        if not self.description.strip() or len(self.description) > LONGEST_DESCRIPTION:
            raise InvalidValue(f"words.{self.name}: expected text of 1 to {LONGEST_DESCRIPTION} characters")


@frozen
class Translation:
    """The texts in one further language. A piece that is empty, or a name without words, is told in the main text."""

    language: str = field(validator=_coded)
    title: str = field(default="", metadata=LEFT_OUT)
    purpose: str = field(default="", metadata=LEFT_OUT)
    data_source: str = field(default="", metadata=LEFT_OUT)
    words: tuple[TranslatedWords, ...] = field(default=(), metadata=LEFT_OUT)

    def __attrs_post_init__(self) -> None:
        demand_line("title", self.title)
        for name in ("purpose", "data_source"):
            demand_plain(name, text := getattr(self, name))
            if len(text) > LONGEST_PURPOSE:
                raise InvalidValue(f"{name}: expected at most {LONGEST_PURPOSE} characters, got {len(text)}")
        if any(text and not text.strip() for text in map(self._piece, PIECES)):
            raise InvalidValue("title, purpose, data_source: expected some text, or none at all")
        if not (any(map(self._piece, PIECES)) or self.words):
            raise InvalidValue(f"{self.language}: expected at least one text; leave the language out")
        names = [words.name for words in self.words]
        if names != sorted(set(names)):
            raise InvalidValue("words: expected different names in their order")

    @property
    def name(self) -> str:
        """By which its texts are named."""
        return self.language

    def _piece(self, name: str) -> str:
        return str(getattr(self, name))


class StudyText(str):
    """A study's text and the code of its language, empty where the study does not say it."""

    language: str

    def __new__(cls, text: str, language: str) -> Self:
        """The text in that language."""
        made = super().__new__(cls, text)
        made.language = language
        return made

    def __getnewargs__(self) -> Any:
        """The parts, for copies between processes."""
        return str.__str__(self), self.language


class TranslatedStudy(Protocol):
    """A manifest, as far as its texts go."""

    @property
    def title(self) -> str: ...
    @property
    def purpose(self) -> str: ...
    @property
    def data_source(self) -> str: ...
    @property
    def label(self) -> Label: ...
    @property
    def features(self) -> tuple[Feature, ...]: ...
    @property
    def language(self) -> str: ...
    @property
    def texts(self) -> tuple[Translation, ...]: ...


@frozen
class Wording:
    """The texts of a study for a reader of one language, each a `StudyText`. `words`: of the label and the features."""

    title: StudyText
    purpose: StudyText
    data_source: StudyText
    words: dict[str, StudyText]

    @property
    def languages(self) -> frozenset[str]:
        """Those that the texts are in."""
        found = (self.title, self.purpose, self.data_source, *self.words.values())
        return frozenset(text.language for text in found if text)


def wording(study: TranslatedStudy, reader: str = "") -> Wording:
    """The study's texts in the reader's language where they are there; every other piece in the main text."""
    chosen = _chosen(study.texts, reader)
    found = {words.name: words.description for words in chosen.words} if chosen else {}

    def told(main: str, other: str) -> StudyText:
        return StudyText(other, chosen.language) if chosen and other else StudyText(main, study.language)

    pieces = {name: told(getattr(study, name).strip(), getattr(chosen, name, "")) for name in PIECES}
    asked = [(study.label.name, study.label.description)]
    asked += [(feature.name, feature.description) for feature in study.features]
    words = {name: told(description, found.get(name, "")) for name, description in asked}
    return Wording(pieces["title"], pieces["purpose"], pieces["data_source"], words)


def _chosen(texts: Sequence[Translation], reader: str) -> Translation | None:
    """The reader's own language, or another form of it: de for de-at, and de-at for de."""
    same = [text for text in texts if text.language.partition("-")[0] == reader.partition("-")[0]]
    return next((text for text in same if text.language == reader), same[0] if same else None)


def in_order(texts: Sequence[Translation]) -> tuple[Translation, ...]:
    """As a manifest has them: by language, without blanks around a text."""
    stripped = (evolve(text, **{name: getattr(text, name).strip() for name in PIECES}) for text in texts)
    return tuple(sorted(stripped, key=lambda text: text.language))


def demand_translations(
    language: str, texts: Sequence[Translation], features: Sequence[Feature], label: Label
) -> None:
    """Raises `InvalidValue` for texts that a study cannot have: two of one language, words about nothing, too much."""
    if language:
        demand_language("language", language)
    elif texts:
        raise InvalidValue('language: expected the language of the main texts, such as "en"; it is shown beside them')
    codes = [language, *(text.language for text in texts)]
    if len(texts) > MOST_LANGUAGES or len(set(codes)) != len(codes):
        raise InvalidValue(f"texts: expected at most {MOST_LANGUAGES} languages, none twice and none the main one")
    names = {label.name, *(feature.name for feature in features)}
    for text in texts:
        if strange := sorted({words.name for words in text.words} - names):
            raise InvalidValue(f"texts.{text.language}.words: no feature and no label is named {strange[0]}")
    pieces = (piece for text in texts for piece in _pieces(text))
    if sum(len(piece.encode()) for piece in pieces) > LONGEST_TEXTS:
        raise InvalidValue(f"texts: expected at most {LONGEST_TEXTS} bytes in all; shorten them")


def _pieces(text: Translation) -> Iterator[str]:
    yield from (getattr(text, name) for name in PIECES)
    yield from (words.description for words in text.words)


def untranslated(study: TranslatedStudy) -> tuple[str, ...]:
    """A line for each language that lacks a piece, for who writes the study: its reader gets the main text there."""
    asked = [study.label.name, *(feature.name for feature in study.features)]
    found = []
    for text in study.texts:
        told = {words.name for words in text.words}
        missing = [name for name in PIECES if getattr(study, name) and not getattr(text, name)]
        missing += [f"words.{name}" for name in asked if name not in told]
        if missing:
            pieces, code = ", ".join(missing), text.language
            found.append(f"texts.{code}: left out: {pieces}; who reads {code} gets the main text there")
    return tuple(found)
