"""Frozen values are compared, hashed and shown as attrs' own are: the same fields, in the same words."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from attrs import evolve, field

from anon import values


def _classes(frozen: Callable[..., Any]) -> tuple[type, type, type, type]:
    @frozen
    class Several:
        number: int
        secret: bytes = field(default=b"", repr=False)
        shown: str = field(default="", repr=str.upper)
        beside: object = field(default=None, eq=False)

    @frozen(kw_only=True)
    class Fewer(Several):
        more: tuple[int, ...] = ()

    @frozen
    class Nothing:
        pass

    @frozen(eq=False)
    class Itself:
        number: int

        def __repr__(self) -> str:
            return "its own words"

    return Several, Fewer, Nothing, Itself


OURS, THEIRS = _classes(values.frozen), _classes(attrs.frozen)


def _seen(classes: tuple[type, ...]) -> list[object]:
    several, fewer, nothing, itself = classes
    first = several(1, b"a", "x")
    others = [several(1, b"a", "x", beside=5), several(1, b"b", "x"), fewer(number=1, secret=b"a", shown="x"), 1]
    same = itself(1)
    return [
        [first == other for other in others], [first != other for other in others],
        hash(first) == hash(others[0]), len({first, *others[:2]}),
        nothing() == nothing(), hash(nothing()) == hash(nothing()), nothing() == first,
        same == same, same == itself(1), same in {same},
        repr(first).rpartition(".")[2], repr(fewer(number=2, more=(3,))).rpartition(".")[2], repr(nothing()),
        repr(same), str(first).rpartition(".")[2], evolve(first, number=7) == several(7, b"a", "x"),
    ]


def test_they_compare_hash_and_show_what_those_of_attrs_do() -> None:
    assert _seen(OURS) == _seen(THEIRS)
    assert _seen(OURS)[0] == [True, False, False, False]


def test_a_hidden_field_is_not_shown() -> None:
    assert repr(OURS[0](1, b"hidden", "x")).endswith("Several(number=1, shown=X, beside=None)")


def test_a_value_that_holds_itself_is_shown() -> None:
    held: list[object] = []
    value = OURS[0](1, beside=held)
    held.append(value)
    assert repr(value).endswith("beside=[...])")


def test_they_do_not_change_and_survive_pickling() -> None:
    value = Kept(1)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        value.number = 2  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(value)) == value and not hasattr(value, "__dict__")


def test_a_way_of_comparing_of_its_own_is_refused() -> None:
    with pytest.raises(TypeError, match="as they are"):

        @values.frozen
        class Folded:
            name: str = field(eq=str.lower)


@values.frozen
class Kept:
    """A value at the top of a module."""

    number: int
