"""Ways in which a disk spoils a file: a bit, a piece of zeros, an end that is missing; one after the other over a
file."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

PIECE = 64


@frozen
class Harm:
    """One damage, at a byte of a file."""

    how: str
    at: int

    def do(self, file: Path) -> None:
        """Spoil the file."""
        whole = bytearray(file.read_bytes())
        if self.how == "bit":
            whole[self.at] ^= 1 << self.at % 8
        elif self.how == "zeros":
            whole[self.at : self.at + PIECE] = bytes(len(whole[self.at : self.at + PIECE]))
        else:
            del whole[self.at :]
        file.write_bytes(whole)


def harms(file: Path, most: int, seed: int = 11) -> Iterator[Harm]:
    """Damages spread evenly over the file, at most so many of each kind; its first bytes are always among them."""
    size = file.stat().st_size
    drawn = random.Random(seed)  # which bytes are tried protects nobody
    region = max(size // most, 1)
    for start in range(0, size, region):
        for how in ("bit", "zeros", "end"):
            yield Harm(
                how, min(start + (drawn.randrange(region) if start else drawn.randrange(min(region, 16))), size - 1)
            )
