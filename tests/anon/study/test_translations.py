"""A study's texts in further languages: one document for everybody, and each piece in the reader's language or the main
one."""

from __future__ import annotations

import pickle
import re

import pytest
from attrs import evolve

from aggregator.lab.planning.study_file import to_toml
from anon.errors import Malformed
from anon.study.manifest import Manifest, parse_manifest
from anon.study.translations import StudyText, in_order, untranslated, wording
from anon.wire.cbor import decode, encode
from tests.support.fake_aggregator import DECLARED, FakeAggregator
from tests.support.protocols import PROTOCOLS

GERMAN = """
[texts.de]
title = "Schlaf und Kaffee"
purpose = "Um einen Peer zu prüfen."

[texts.de.words]
tired = "Du bist müde."
cups = "Wie viel Kaffee du trinkst."
"""
DUTCH = '[texts.nl]\ntitle = "Slaap en koffie"\n'


def translated(more: str = GERMAN, language: str = 'language = "en"\n') -> str:
    return language + DECLARED + more


def manifest_of(text: str) -> Manifest:
    return FakeAggregator.with_study(text).manifest


def test_each_piece_is_told_in_the_readers_language_or_in_the_main_one() -> None:
    study = manifest_of(translated(DUTCH + GERMAN))
    told = wording(study, "de")
    assert (told.title, told.title.language) == ("Schlaf und Kaffee", "de")
    assert (told.words["cups"], told.words["cups"].language) == ("Wie viel Kaffee du trinkst.", "de")
    assert (told.words["age"], told.words["age"].language) == ("Your age.", "en")
    assert told.languages == {"de", "en"}
    assert wording(study, "nl").title == "Slaap en koffie" and wording(study, "nl").purpose.language == "en"
    for reader in ("en", "es", ""):
        assert wording(study, reader).languages == {"en"} and wording(study, reader).title == study.title


def test_another_form_of_the_language_serves_its_reader() -> None:
    study = manifest_of(translated(DUTCH.replace("nl", "nl-be") + GERMAN))
    assert wording(study, "de-at").title.language == "de" and wording(study, "nl").title.language == "nl-be"


def test_all_languages_are_one_document_and_a_changed_word_is_another() -> None:
    study = manifest_of(translated(DUTCH + GERMAN))
    assert [text.language for text in study.texts] == ["de", "nl"]  # whatever their order in the file
    assert PROTOCOLS.manifest(study.to_bytes()) == study
    words = study.texts[0].words
    other = evolve(study, texts=(evolve(study.texts[0], words=(evolve(words[0], description="X"), words[1])),))
    assert other.study_id != study.study_id


def test_a_study_of_one_language_has_the_bytes_of_before() -> None:
    plain = decode(manifest_of(DECLARED).to_bytes(), "manifest")
    assert isinstance(plain, dict) and not {"language", "texts"} & plain.keys()


def test_a_study_file_is_written_and_read_back() -> None:
    proposal = PROTOCOLS.proposal(translated(DUTCH + GERMAN))
    assert PROTOCOLS.proposal(to_toml(proposal)) == evolve(proposal, texts=proposal.texts)


def test_the_pieces_that_a_language_lacks_are_named() -> None:
    (german,) = untranslated(manifest_of(translated()))
    assert german == "texts.de: left out: words.age; who reads de gets the main text there"
    (dutch,) = untranslated(manifest_of(translated(DUTCH)))
    assert "left out: purpose, words.tired, words.age, words.cups;" in dutch
    assert untranslated(manifest_of(DECLARED)) == ()


@pytest.mark.parametrize(("text", "fault"), [
    (translated(language=""), "language: expected the language of the main texts"),
    (translated(language='language = "English"\n'), "language: expected a language such as"),
    (translated(language='language = "de"\n'), "none twice and none the main one"),
    (translated('[texts.de]\ntitel = "X"\n'), "texts[0].titel: unknown key"),
    (translated("[texts.de]\n"), "de: expected at least one text"),
    (translated('[texts.de]\ntitle = "  "\n'), "expected some text, or none at all"),
    (translated('[texts.DE]\ntitle = "X"\n'), "language: expected a language such as"),
    (translated('[texts.de]\nlanguage = "nl"\ntitle = "X"\n'), "expected a table for each language"),
    (translated('[texts]\nde = "X"\n'), "expected a table for each language"),
    (translated('[texts.de]\nwords = "X"\n'), "texts.de.words: expected a table"),
    (translated('[texts.de.words]\nsleep = "X"\n'), "texts.de.words: no feature and no label is named sleep"),
    (translated('[texts.de.words]\nage = ""\n'), "words.age: expected text of 1 to 400 characters"),
    (translated(f'[texts.de]\ntitle = "{"x" * 401}"\n'), "title: expected one line of at most 400"),
    (translated(f'[texts.de]\npurpose = "{"x" * 8001}"\n'), "purpose: expected at most 8000 characters"),
    (translated('[texts.de]\ntitle = "a\\u202eb"\n'), "title: expected plain text"),
    (translated('[texts.de]\ntitle = "a\\u200bb"\n'), "texts.de.title"),
    (translated("".join(f'[texts.a{chr(97 + n)}]\ntitle = "X"\n' for n in range(13))), "at most 12 languages"),
    (
        translated("".join(f'[texts.a{chr(97 + n)}]\npurpose = "{"ä" * 8000}"\n' for n in range(5))),
        "texts: expected at most 65536 bytes",
    ),
])  # fmt: skip
def test_texts_that_a_study_cannot_have_are_refused(text: str, fault: str) -> None:
    with pytest.raises(Malformed, match=re.escape(fault)):
        PROTOCOLS.proposal(text)


def test_a_manifest_has_one_spelling_of_its_texts() -> None:
    study = manifest_of(translated(DUTCH + GERMAN))

    def spelled(change: str) -> bytes:
        plain = decode(study.to_bytes(), "manifest")
        assert isinstance(plain, dict)
        texts = plain["texts"]
        if change == "order":
            texts.reverse()
        elif change == "words":
            texts[0]["words"].reverse()
        elif change == "empty":
            texts[1]["purpose"] = ""
        else:
            texts[1]["title"] = " Slaap"
        return encode(plain)

    for change in ("order", "words", "empty", "blank"):
        with pytest.raises(Malformed):
            parse_manifest(spelled(change))
    assert in_order(study.texts) == study.texts


def test_a_text_keeps_its_language_between_processes() -> None:
    assert pickle.loads(pickle.dumps(StudyText("Schlaf", "de"))).language == "de"
