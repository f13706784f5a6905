"""Every text of a study, found by walking through all of it: a field that is added later is checked like the others.

Proposals with a text that is not shown as it is written are refused. Manifests are not: those published earlier stay
readable, a peer declines them (`peer.rules.consent`), and no surface shows such a character as anything but its number.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache

import attrs

from anon.errors import InvalidValue
from anon.text.foreign import Quoted, fault
from anon.text.sentences import Sentence, Term, say

OF_SEVERAL_LINES = frozenset({"purpose", "data_source", "description", "query"})
_PLAIN = (int, float, bytes, type(None))


@lru_cache(maxsize=64)
def faults_of(study: Hashable) -> tuple[Sentence, ...]:
    """Faults in the texts of a proposal or a manifest: the place, the character, and what to do."""
    faults_by_place = ((place, fault(text, lines=_name(place) in OF_SEVERAL_LINES)) for place, text in texts_of(study))
    return tuple(
        say(
            "{place}: {sign} is not shown as it is written; leave it out, or write it in another way",
            place=Quoted(place),
            sign=Term(wrong),
        )
        for place, wrong in faults_by_place
        if wrong
    )


def demand_seen(study: Hashable) -> None:
    """Raises `InvalidValue` with the first of `faults_of`."""
    for text_fault in faults_of(study):
        raise InvalidValue(text_fault)


def texts_of(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text and its place, such as `features.cups.description`. Raises `InvalidValue` for what no study is made
    of."""
    if isinstance(value, str):
        yield place, value
    elif attrs.has(kind := type(value)):
        for attribute in attrs.fields(kind):
            if attribute.metadata.get("carried"):
                continue
            yield from texts_of(
                getattr(value, attribute.name), f"{place}.{attribute.name}" if place else attribute.name
            )
    elif isinstance(value, tuple | list):
        for number, attribute in enumerate(value, 1):
            yield from texts_of(attribute, f"{place}.{getattr(attribute, 'name', number)}")
    elif not isinstance(value, _PLAIN):
        raise InvalidValue(f"{place}: expected text, numbers or a list, got something else")


def _name(place: str) -> str:
    return place.rpartition(".")[2]
