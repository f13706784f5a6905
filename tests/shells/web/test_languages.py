"""The owner's page in every language: nothing bypasses the catalogues, and each catalogue is whole and fits."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog, Message

from anon.text.foreign import Quoted
from anon.text.sentences import Figure, Sentence, Term, from_store, joined, say, say_many, to_store
from bundle.languages import found_in
from peer.rules.advice import Advice, Limit, NextStep
from peer.web.languages import NAMES, catalogue, localised, preferred, speaking

ROOT = Path(__file__).parents[3]
OTHERS = sorted(set(NAMES) - {"en"})
_PERCENT = re.compile(r"%\((\w+)\)s")
_TAG = re.compile(r"</?(\w+)")
SECOND_WORDS = {
    "de": r"Abschrift|Mitgliederliste|deinem Gerät|\berklärte|reserviert|für jeden deiner Datensätze für sich",
    "es": r"(?<!\{)(?<!%\()\b[Ee]psilon|equipo(?! del estudio)|transcripción|lista de participantes",
    "nl": r"\b[Ss]tudies?\b|deze machine|je apparaat|\bronden\b|verslag|verzonden|afschrift|deelnemerslijst|policy",
}
"""Language -> words for things that have another name everywhere else in its catalogue."""


@pytest.fixture(scope="module")
def program() -> Catalog:
    """Every sentence of the program."""
    return found_in(ROOT)


def _ids(found: Catalog) -> set[str | tuple[str, ...]]:
    return {tuple(each.id) if isinstance(each.id, (tuple, list)) else each.id for each in found if each.id}


def _texts(message: Message) -> list[tuple[str, str]]:
    """Each pattern with its translation."""
    if isinstance(message.id, str):
        return [(message.id, str(message.string))]
    return list(zip(message.id, message.string, strict=True))


def _fields(pattern: str) -> set[str]:
    """The names that a pattern is filled from; the plural's number may be spelled out in a language."""
    if _PERCENT.search(pattern) or "%%" in pattern:
        return set(_PERCENT.findall(pattern)) - {"num"}
    return {name for _, name, _, _ in Formatter().parse(pattern) if name} - {"count"}


@pytest.mark.slow
@pytest.mark.parametrize("code", OTHERS)
def test_a_catalogue_has_the_sentences_of_the_program_and_no_others(code: str, program: Catalog) -> None:
    """`make languages` brings it up to date."""
    assert _ids(catalogue(code)) ^ _ids(program) == set()


@pytest.mark.parametrize("code", OTHERS)
def test_every_sentence_is_translated_with_its_values_and_its_tags(code: str) -> None:
    for message in catalogue(code):
        for pattern, translation in _texts(message) if message.id else ():
            assert translation, pattern
            assert _fields(translation) == _fields(pattern), pattern
            assert sorted(_TAG.findall(translation)) == sorted(_TAG.findall(pattern)), pattern
            assert "fuzzy" not in message.flags, pattern


@pytest.mark.parametrize("code", OTHERS)
def test_a_catalogue_has_one_word_for_a_thing(code: str) -> None:
    """Where the Spanish "equipo" was the reader's computer too, a machine read as the study's staff."""
    second = re.compile(SECOND_WORDS[code])
    texts = [translation for message in catalogue(code) if message.id for _, translation in _texts(message)]
    assert [(found[0], text) for text in texts if (found := second.search(text))] == []


def test_a_sentence_is_english_text_and_remembers_what_it_is_made_of() -> None:
    sentence = say("{title} costs {epsilon}", title=Quoted("A"), epsilon=Figure("0.5"))
    assert sentence == "“A” costs 0.5"
    assert str(ValueError(sentence)) is sentence
    with speaking("de"):
        assert localised(Figure("1,024.5")) == "1.024,5"
        assert localised(sentence) == "\u2068„A“\u2069 costs 0,5"
    assert localised(say_many("{count} day", "{count} days", 1)) == "1 day"


def test_a_stored_sentence_comes_back_with_its_parts() -> None:
    inner = say_many("{count} packet", "{count} packets", 2)
    advice = Advice(say("{what}: {why}", what=inner, why=Figure("1.5")), NextStep(Limit.LIFETIME, "2"))
    stored = from_store(to_store(joined([advice, Term("plain")])))
    assert stored == "2 packets: 1.5; plain"
    with speaking("de"):
        assert localised(stored) == localised(joined([advice, Term("plain")])) != stored
    assert from_store("an old home's text") == "an old home's text"
    assert to_store("plain") == "plain"


def test_a_pattern_reads_no_attribute_of_a_value() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Sentence("{x.__class__}", "", {"x": 1})


@pytest.mark.parametrize(
    ("chosen", "accepted", "code"),
    [
        (None, "de-AT,de;q=0.9,en;q=0.8", "de"),
        (None, "fr,nl;q=0.5,es;q=0.7", "es"),
        (None, "en;q=0.1,nl", "nl"),
        ("es", "de", "es"),
        ("xx", "de", "de"),
        (None, "", "en"),
        (None, "fr;q=nonsense,,;", "en"),
        (None, "de;q=0", "en"),
    ],
)
def test_a_browser_is_answered_in_the_first_language_that_is_known(
    chosen: str | None, accepted: str, code: str
) -> None:
    assert preferred(chosen, accepted) == code
