"""Consent to a study whose members write: who reads it, and what ties it to its writer."""

from __future__ import annotations

from importlib.resources import files

from anon.ldp import NANO
from anon.protocols.resolve import resolve
from anon.study.manifest import LETTERS, Manifest
from peer.rules.consent import Policy, explain
from peer.rules.ledger import Ledger
from peer.rules.letters_words import about_letters
from tests.support.letters_study import KEYS, asking, resolved
from tests.support.protocols import load_proposal


def said(manifest: Manifest, *words: str) -> list[bool]:
    """For each of some words, whether consent says them."""
    text = " ".join(about_letters(manifest))
    return [word in text for word in words]


def test_consent_says_who_reads_and_what_belongs_together() -> None:
    sheet = explain(resolved(), Policy(), Ledger(10 * NANO), now=0)
    assert set(about_letters(resolved())) <= set(sheet.statements)
    assert all(said(resolved(), "can read them", "used once", "for ever", "one pseudonym", "leaves 5", "silent"))
    assert "There are 5 rounds of letters, and your machine must be awake in each." in " ".join(sheet.statements)


def test_posted_texts_alone_have_no_pseudonym() -> None:
    """The sentences about letters are said where there are letters."""
    study = resolved()
    posted = asking(study, *(survey for survey in study.surveys if survey.mechanism != LETTERS))
    assert said(posted, "used once", "can read them") == [True, True]
    assert said(posted, "pseudonym", "sealed", "awake") == [False, False, False]


def test_other_studies_say_nothing_of_letters() -> None:
    census = load_proposal(files("examples.census") / "study.toml")
    assert about_letters(resolve(census, KEYS, now=0)) == ()
