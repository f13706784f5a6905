"""A published model compared with the one that its documents give."""

from __future__ import annotations

import json
from math import isclose
from typing import Any


def read_model(body: bytes | str) -> Any:
    """A model's JSON. Raises `ValueError`, also for a key that is there twice."""
    return json.loads(body, object_pairs_hook=_without_repeats)


def score_of(model: Any) -> Any:
    """The declared score of a model, if it is one."""
    return model.get("score") if isinstance(model, dict) else None


def alike(published: Any, recomputed: Any) -> bool:
    """Equal, but for the last digits that another machine's arithmetic may give."""
    if isinstance(published, dict) and isinstance(recomputed, dict):
        return published.keys() == recomputed.keys() and all(alike(published[k], recomputed[k]) for k in published)
    if isinstance(published, list) and isinstance(recomputed, list):
        return len(published) == len(recomputed) and all(map(alike, published, recomputed))
    if isinstance(published, float) and isinstance(recomputed, float):
        return isclose(published, recomputed, rel_tol=1e-6, abs_tol=1e-9)
    return type(published) is type(recomputed) and bool(published == recomputed)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key twice would be read as one value here and as another elsewhere."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)
