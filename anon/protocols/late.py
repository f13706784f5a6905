"""Parts and designs of protocols whose code is loaded when a study of theirs asks it: no other command waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

from anon.study.designs import Design
from anon.values import frozen


def late(place: str, *contracts: type, also: Sequence[str] = (), **known: object) -> Any:
    """A part that has the methods of these contracts, and what is known of it without its code, such as its name.

    `place`: module and class, as `anon.protocols.sum.shared:SumShared`. Its methods are real ones, so that `isinstance`
    tells which contracts it keeps without loading anything. `also`: methods of a contract that is itself loaded late.
    """
    module, _, name = place.partition(":")

    @cache
    def part() -> Any:
        return getattr(import_module(module), name)()

    def method(asked: str) -> Callable[..., Any]:
        return lambda _self, *values, **named: getattr(part(), asked)(*values, **named)

    declared = (
        asked
        for contract in contracts
        for base in contract.__mro__
        for asked, value in vars(base).items()
        if isinstance(value, FunctionType) and not asked.startswith("_")
    )
    methods = {asked: method(asked) for asked in (*declared, *also)}
    kept = (place, contracts, tuple(also), known)
    own = {"__repr__": lambda _self: f"{name}()", "__reduce__": lambda _self: (_again, kept)}
    return type(f"Late{name}", (), {**methods, **own, **known})()


def _again(place: str, contracts: tuple[type, ...], also: tuple[str, ...], known: dict[str, object]) -> Any:
    """The same part in another process."""
    return late(place, *contracts, also=also, **known)


@frozen
class LateFunction:
    """A function whose module is loaded when it is called. `place`: module and name."""

    place: str

    def __call__(self, *values: Any, **named: Any) -> Any:
        """As the function itself."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)(*values, **named)


class LateDesigns(Mapping[str, Design]):
    """Designs by kind, in this order, whose module is loaded when one is asked for. `place`: module and name."""

    def __init__(self, place: str, *kinds: str) -> None:
        self._place, self._kinds = place, kinds

    def __getitem__(self, kind: str) -> Design:
        if kind not in self._kinds:
            raise KeyError(kind)
        module, _, name = self._place.partition(":")
        design: Design = getattr(import_module(module), name)[kind]
        return design

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)
