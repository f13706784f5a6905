"""Classes of frozen values: attrs' `frozen`, with comparison and words that need no compiling.

attrs writes the text of `__eq__`, `__hash__` and `__repr__` for each class and compiles it whenever a program starts.
A peer's command has some 200 such classes: a seventh of its processor time went there. Here functions that exist take
the class's fields instead. They compare and hash the same fields, and show them letter by letter as attrs does.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

import attrs

__all__ = ["frozen"]


def _frozen(cls: type | None = None, *, eq: bool = True, **named: bool) -> Any:
    """As `attrs.frozen`; it has no `order`, and raises `TypeError` for a field that has its own way of comparing."""

    build: Any = attrs.frozen

    def made(own: type) -> Any:
        built = build(own, eq=False, repr=False, **named)
        methods: dict[str, Any] = {"__repr__": _shown}
        if eq:
            methods |= _compared(attrs.fields(built))
        for name, method in methods.items():
            if name not in own.__dict__:
                setattr(built, name, method)
        return built

    return made if cls is None else made(cls)


def _compared(fields: Any) -> dict[str, Callable[..., Any]]:
    if any(field.eq_key or field.hash is not None for field in fields):
        raise TypeError("expected fields that are compared as they are")
    names = [field.name for field in fields if field.eq]
    parts: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()

    def equal(self: Any, other: object) -> Any:
        return parts(self) == parts(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(parts(self))

    return {"__eq__": equal, "__hash__": hashed}


@recursive_repr("...")
def _shown(self: Any) -> str:
    known = attrs.fields(type(self))
    fields = [(field.name, repr if field.repr is True else field.repr) for field in known if field.repr]
    shown = ", ".join(f"{name}={show(getattr(self, name, attrs.NOTHING))}" for name, show in fields)
    return f"{type(self).__qualname__.rpartition('>.')[2]}({shown})"


if TYPE_CHECKING:
    from attrs import frozen  # its types, and what mypy knows of it
else:
    frozen = _frozen
