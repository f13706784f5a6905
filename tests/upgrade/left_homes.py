"""The homes that an older program left."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen


@frozen
class Left:
    """The homes, and the clock's last word."""

    folder: Path
    clock: float
