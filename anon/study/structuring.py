"""Strict structuring of plain data into attrs values: unknown keys refused, nothing coerced, errors name their key."""

from __future__ import annotations

import re
import types
import typing
from math import isfinite
from typing import Any, TypeVar

import attrs
from cattrs import Converter
from cattrs.errors import (
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
)
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from anon.errors import InvalidValue, Malformed
from anon.text.foreign import escaped

T = TypeVar("T")

MOST_FAULTS = 20
"""Faults of one list that are found; the others show when these are mended."""
_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", bytes: "bytes"}

LEFT_OUT = {"left out": True}
"""The metadata of an attribute that is not spelled where it has its default: bytes from before it existed stay."""

CARRIED = {"carried": True}
"""The metadata of an attribute that is no part of what is spelled: a reader gives it afterwards, and no bytes can."""

_KEYED = re.compile(r"[a-z_.]+(, [a-z_.]+)*: ")


def kind_of(value: object) -> str:
    """A description of what came, without long content."""
    if isinstance(value, int) and value.bit_length() > 128:
        return "a whole number of more than 38 digits"
    if isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:37] + "...")
    known = {list: "a list", dict: "a table", bytes: "bytes", type(None): "nothing"}
    return known.get(type(value), "a date or a time")


def _exactly(expected: type) -> Any:
    def structure(value: Any, _: Any) -> Any:
        if expected is float and type(value) is int:
            return float(value)
        if type(value) is not expected:
            raise InvalidValue(f"expected {_WORDS[expected]}, got {kind_of(value)}")
        if isinstance(value, float) and not isfinite(value):
            raise InvalidValue("expected a finite number")
        return value

    return structure


def _attrs_hook(converter: Converter) -> Any:
    def factory(cls: type) -> Any:
        fn: Any = make_dict_structure_fn(
            cls, converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=True, **_carried(cls)
        )

        def structure(value: Any, tp: Any) -> Any:
            if not isinstance(value, dict):
                raise InvalidValue(f"expected a table, got {kind_of(value)}")
            return fn(value, tp)

        return structure

    return factory


def make_converter() -> Converter:
    """A converter under the rules of this module; tuples become lists on the way out."""
    converter = Converter(forbid_extra_keys=True, detailed_validation=True, unstruct_collection_overrides={tuple: list})
    converter.register_structure_hook_factory(attrs.has, _attrs_hook(converter))
    for scalar in _WORDS:
        converter.register_structure_hook(scalar, _exactly(scalar))
    converter.register_structure_hook_func(_is_tuple, lambda value, tp: _structure_tuple(converter, value, tp))
    converter.register_structure_hook_func(_is_scalar_union, _structure_union)
    converter.register_unstructure_hook(bytes, lambda value: value)
    converter.register_unstructure_hook_factory(_leaves_out, lambda cls: _spelled_without_defaults(cls, converter))
    return converter


def _left_out(cls: type) -> list[str]:
    return [attribute.name for attribute in attrs.fields(cls) if attribute.metadata.get("left out")]


def _carried(cls: type) -> dict[str, Any]:
    return {attribute.name: override(omit=True) for attribute in attrs.fields(cls) if attribute.metadata.get("carried")}


def _leaves_out(cls: Any) -> bool:
    return isinstance(cls, type) and attrs.has(cls) and bool(_left_out(cls) or _carried(cls))


def _spelled_without_defaults(cls: type, converter: Converter) -> Any:
    left_out: dict[str, Any] = {name: override(omit_if_default=True) for name in _left_out(cls)}
    return make_dict_unstructure_fn(cls, converter, **left_out, **_carried(cls))


def _is_tuple(tp: Any) -> bool:
    return typing.get_origin(tp) is tuple


def _structure_tuple(converter: Converter, value: Any, tp: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        raise InvalidValue(f"expected a list, got {kind_of(value)}")
    inner = typing.get_args(tp)
    if len(inner) == 2 and inner[1] is ...:
        return _structure_items(converter, value, inner[0])
    if len(value) != len(inner):
        raise InvalidValue(f"expected {len(inner)} items, got {len(value)}")
    return tuple(converter.structure(item, kind) for item, kind in zip(value, inner, strict=True))


def _structure_items(converter: Converter, values: list[Any] | tuple[Any, ...], inner: Any) -> tuple[Any, ...]:
    """As the converter's own list, but it stops after so many faults: each takes kilobytes, and a byte can be one."""
    built: list[Any] = []
    faults: list[Exception] = []
    for index, item in enumerate(values):
        try:
            built.append(converter.structure(item, inner))
        except Exception as fault:
            fault.add_note(IterableValidationNote(f"item {index}", index, inner))
            faults.append(fault)
            if len(faults) == MOST_FAULTS:
                break
    if faults:
        raise IterableValidationError(f"{len(faults)} items do not fit", faults, tuple)
    return tuple(built)


def _is_scalar_union(tp: Any) -> bool:
    args = typing.get_args(tp)
    return typing.get_origin(tp) in (typing.Union, types.UnionType) and all(
        arg in (int, float, str, bool, bytes, type(None)) for arg in args
    )


def _structure_union(value: Any, tp: Any) -> Any:
    args = typing.get_args(tp)
    if type(value) in args:
        return _exactly(float)(value, float) if type(value) is float else value
    if type(value) is int and float in args:
        return float(value)
    wanted = " or ".join(_WORDS[arg] for arg in args if arg is not type(None))
    raise InvalidValue(f"expected {wanted}, got {kind_of(value)}")


def structure(converter: Converter, value: Any, cls: type[T], what: str) -> T:
    """Build `cls` from plain data. Raises `Malformed` whose text has one line per fault, each naming its key."""
    try:
        return converter.structure(value, cls)
    except Exception as error:
        raise Malformed("\n".join(escaped(fault) for fault in _faults(error, what))) from None


def _faults(error: BaseException, path: str) -> list[str]:
    if isinstance(error, IterableValidationError):
        with_notes, without = error.group_exceptions()
        lines = [line for exc, note in with_notes for line in _faults(exc, f"{path}[{note.index}]")]
        return lines + [line for exc in without for line in _faults(exc, path)]
    if isinstance(error, BaseValidationError) and hasattr(error, "group_exceptions"):
        with_notes, without = error.group_exceptions()
        lines = [line for exc, note in with_notes for line in _faults(exc, f"{path}.{note.name}")]
        return lines + [line for exc in without for line in _faults(exc, path)]
    if isinstance(error, ForbiddenExtraKeysError):
        known = sorted({field.name for field in attrs.fields(error.cl)} - _carried(error.cl).keys())
        # Keys of CBOR are also bytes, and numbers of more digits than Python spells.
        strange = sorted(key if isinstance(key, str) else "a key that is no text" for key in error.extra_fields)
        return [f"{path}.{key}: unknown key; expected one of {', '.join(known)}" for key in strange]
    if isinstance(error, KeyError):
        return [f"{path}: required, but missing"]
    joint = "." if isinstance(error, InvalidValue) and _KEYED.match(str(error)) else ": "
    return [f"{path}{joint}{error}"]
