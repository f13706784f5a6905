"""The course's people and the village's clock serve here too: real peers, real aggregators, one clock set by hand."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "peer"), str(TESTS / "several")]
