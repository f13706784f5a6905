"""A vector in proven shares, one sealed to each teller, and nothing else of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anon.sharing.arrangement import Arrangement
from anon.vdaf.binding import sharing_nonce
from anon.wire.packet_v2 import Occasion, seal_shares


def sealed_shares(
    arrangement: Arrangement,
    occasion: Occasion,
    measurement: Sequence[int],
    tag: bytes,
    random_bytes: Callable[[int], bytes],
) -> tuple[bytes, tuple[bytes, ...]]:
    """The public share, and the sealed shares in the tellers' order, for the packet with this tag.

    `random_bytes` must be the operating system's. The vector is safe if one teller keeps its share to itself. Raises
    `InvalidValue` for a measurement that the sum's proof does not accept, `Malformed` for a teller's key to which
    nothing can be sealed.
    """
    prio3 = arrangement.prio3(arrangement.sum_of(occasion))
    randomness = random_bytes(prio3.randomness_size)
    sharing = prio3.shard(arrangement.context(occasion), measurement, sharing_nonce(tag), randomness)
    keys = [teller.sealing_key for teller in arrangement.tellers]
    return sharing.public_share, seal_shares(occasion, tag, sharing.input_shares, keys)
