"""A vector in proven shares, one sealed to each teller, and nothing else of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from anon.crypto.sealing import seal
from anon.sharing.arrangement import Arrangement
from anon.vdaf.binding import sharing_nonce
from anon.vdaf.prio3 import Sharing
from anon.wire.packets import Occasion, seal_shares, share_info


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
    sharing = open_shares(arrangement, occasion, measurement, tag, random_bytes)
    keys = [teller.sealing_key for teller in arrangement.tellers]
    return sharing.public_share, seal_shares(occasion, tag, sharing.input_shares, keys)


def open_shares(
    arrangement: Arrangement,
    occasion: Occasion,
    measurement: Sequence[int],
    tag: bytes,
    random_bytes: Callable[[int], bytes],
) -> Sharing:
    """The public share and the shares before they are sealed: they must not leave so. As `sealed_shares`."""
    prio3 = arrangement.prio3(arrangement.sum_of(occasion))
    randomness = random_bytes(prio3.randomness_size)
    return prio3.shard(arrangement.context(occasion), measurement, sharing_nonce(tag), randomness)


def seals(arrangement: Arrangement, occasion: Occasion, tag: bytes) -> tuple[Callable[[bytes], bytes], ...]:
    """For each teller, in their order, the seal of its share."""
    return tuple(
        partial(seal, public_key=teller.sealing_key, info=share_info(occasion, tag, number))
        for number, teller in enumerate(arrangement.tellers)
    )
