"""How much a test of many examples or cases does in `make test`. In `make test-all` each does all."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import settings

WHOLE, QUARTER = 100, 25


def examples(whole: int) -> int:
    """`whole` under the whole profile, and in proportion under another (`tests/conftest.py`)."""
    return max(1, whole * settings.default.max_examples // WHOLE)


def every(step: int, *values: Iterable[Any]) -> list[Any]:
    """Cases for `parametrize`: all combinations of the values. One in so many runs in `make test`, the others are
    slow."""
    cases = enumerate(product(*values))
    return [pytest.param(*case, marks=[pytest.mark.slow] if place % step else []) for place, case in cases]


def soaked(step: int, values: Iterable[Any]) -> list[Any]:
    """Cases for `parametrize`: one in so many runs in `make test-all`, and all in the soak."""
    return [pytest.param(value, marks=[pytest.mark.soak] if place % step else []) for place, value in enumerate(values)]
