"""A published model compared with the one that its documents give."""

from __future__ import annotations

from math import isclose
from typing import Any

from anon.wire.strict_json import read_json


def read_result(body: bytes | str) -> Any:
    """The values of a result's JSON. Raises `ValueError`."""
    return read_json(body)


def alike(published: Any, recomputed: Any) -> bool:
    """Equal, but for the last digits that another machine's arithmetic may give."""
    if isinstance(published, dict) and isinstance(recomputed, dict):
        return published.keys() == recomputed.keys() and all(alike(published[k], recomputed[k]) for k in published)
    if isinstance(published, list) and isinstance(recomputed, list):
        return len(published) == len(recomputed) and all(map(alike, published, recomputed))
    if isinstance(published, float) and isinstance(recomputed, float):
        return isclose(published, recomputed, rel_tol=1e-6, abs_tol=1e-9)
    return type(published) is type(recomputed) and bool(published == recomputed)
