"""All that anybody but the owner can see of a peer's life, to be compared with another life of the same random
bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from attrs import frozen

from peer.app import PeerApp
from peer.rules.lifecycle import State

Exchange = tuple[str, int, float]
"""The kind of a request, the bytes that it posted, and its time in seconds."""


@frozen
class Observed:
    """A peer's state, exchanges, sizes of random draws, receipts and charge; the packets that were `kept`."""

    state: State
    exchanges: tuple[Exchange, ...]
    random_sizes: tuple[int, ...]
    receipts: tuple[tuple[Any, ...], ...]
    charge: tuple[int, int]
    kept: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(
        cls,
        app: PeerApp,
        exchanges: Iterable[Exchange],
        random_sizes: list[int],
        kept: Iterable[tuple[int, int, int]] = (),
    ) -> Observed:
        """The life of a peer that was in one study."""
        (status,) = app.status()
        receipts = tuple((slot.slot, slot.survey, slot.epsilon, str(slot.status), slot.word) for slot in status.slots)
        charge = (int(status.reserved), int(status.spent))
        return cls(status.state, tuple(exchanges), tuple(random_sizes), receipts, charge, tuple(kept))

    @property
    def packets(self) -> list[int]:
        """The size of each packet that left, in order."""
        return [size for what, size, _ in self.exchanges if what == "packets"]


def stream(seed: bytes, asked: list[int]) -> Callable[[int], bytes]:
    """The same bytes for the same questions; `asked` takes their sizes."""

    def random_bytes(size: int) -> bytes:
        asked.append(size)
        return hashlib.shake_256(seed + len(asked).to_bytes(4, "big")).digest(size)

    return random_bytes
