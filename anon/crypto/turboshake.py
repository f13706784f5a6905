"""TurboSHAKE128 (RFC 9861): PyCryptodome's where it is installed, and that of `anon.crypto.pure` where it has no build.

`anon.crypto.backend` decides. Both give the same bytes; the one in Python takes 200 times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from anon.crypto.backend import PURE, implementation

IMPLEMENTATION = implementation("Crypto")
if TYPE_CHECKING or IMPLEMENTATION != PURE:
    from Crypto.Hash import TurboSHAKE128

    def turboshake128(message: bytes, domain: int) -> Callable[[int], bytes]:
        """Return how to read the next bytes of the message's stream. `domain`: 1 to 127."""
        return TurboSHAKE128.new(domain=domain, data=message).read
else:
    from anon.crypto.pure.turboshake import turboshake128

__all__ = ["IMPLEMENTATION", "turboshake128"]
