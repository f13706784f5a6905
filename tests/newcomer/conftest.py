"""Makes the browser's tools importable here."""

from __future__ import annotations

import sys
from pathlib import Path

_TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), *(str(_TESTS / name) for name in ("web", "peer", "peer_cli"))]
