"""The owner's page in every language: sentences, figures and the choice of a language."""

from __future__ import annotations

import pytest

from anon.text.sentences import Figure, Sentence, from_store, joined, say, say_many, to_store
from peer.rules.advice import Advice, Limit, NextStep
from peer.web.languages import localised, preferred, speaking


def test_a_sentence_is_english_text_and_remembers_what_it_is_made_of() -> None:
    sentence = say("{title} costs {epsilon}", title="A", epsilon=Figure("0.5"))
    assert sentence == "A costs 0.5"
    assert str(ValueError(sentence)) is sentence
    with speaking("de"):
        assert localised(Figure("1,024.5")) == "1.024,5"
        assert localised(sentence) == "A costs 0,5"
    assert localised(say_many("{count} day", "{count} days", 1)) == "1 day"


def test_a_stored_sentence_comes_back_with_its_parts() -> None:
    inner = say_many("{count} packet", "{count} packets", 2)
    advice = Advice(say("{what}: {why}", what=inner, why=Figure("1.5")), NextStep(Limit.LIFETIME, "2"))
    stored = from_store(to_store(joined([advice, "plain"])))
    assert stored == "2 packets: 1.5; plain"
    with speaking("de"):
        assert localised(stored) == localised(joined([advice, "plain"])) != stored
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
def test_a_browser_is_answered_in_the_first_language_that_is_known(chosen: str | None, accepted: str, code: str) -> None:
    assert preferred(chosen, accepted) == code
