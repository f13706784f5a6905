"""How often a test of many examples tries: in `make test` a quarter of what `make test-all` does."""

from __future__ import annotations

from hypothesis import settings

WHOLE, QUARTER = 100, 25


def examples(whole: int) -> int:
    """`whole` under the whole profile, and in proportion under another (`tests/conftest.py`)."""
    return max(1, whole * settings.default.max_examples // WHOLE)
