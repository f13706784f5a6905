"""Every parser of strangers' bytes takes them or refuses them with an error of ours, whatever they are.

The soak searches for more, guided by the lines that are reached, and keeps in `tests/corpus` what it finds.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fuzzing import CORPUS, keep, kept, parsers, searched
from tests.support.patience import cheap

NAMES = sorted(path.stem for path in CORPUS.glob("*.cbor"))


def test_every_parser_has_a_corpus_and_takes_what_is_honest() -> None:
    assert sorted(parsers()) == NAMES and all(kept(name) for name in NAMES)
    for name, parser in parsers().items():
        assert parser.honest, name
        for one in parser.honest:
            parser.read(one)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_found_before_is_taken_or_refused(name: str) -> None:
    with cheap(20.0):
        for data in kept(name):
            parsers()[name].demand_sound(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_changed_bytes_are_taken_or_refused(name: str) -> None:
    searched(name, 40, random.Random(name))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_taken_or_refused(name: str, data: bytes) -> None:
    parsers()[name].demand_sound(data)


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_no_search_finds_bytes_that_a_parser_stumbles_over(name: str) -> None:
    keep(name, searched(name, 20_000, random.Random()))
