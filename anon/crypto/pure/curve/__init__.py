"""BLS12-381 on Python's integers alone, for machines that the native curve library has no build for.

Same groups, encodings and values as the native library: equal inputs give equal bytes (tests/anon/credential). **Not
constant-time**: every step takes a time that depends on the secrets it works on, more visibly than in the native
library. Fast enough to prove (a token in some 20 ms) and to check one credential (0.3 s), not to run a server.
"""

from anon.crypto.pure.curve.g1 import G1
from anon.crypto.pure.curve.g2 import G2
from anon.crypto.pure.curve.multiexp import multiexp
from anon.crypto.pure.curve.pairing import pairing_product_is_one
from anon.crypto.pure.curve.scalar import Scalar

__all__ = ["G1", "G2", "Scalar", "multiexp", "pairing_product_is_one"]
