"""HPKE (RFC 9180, base mode, one message): sealed to a public key and to a purpose, with X25519 and ML-KEM-768 both.

One suite: the KEM MLKEM768-X25519 of draft-ietf-hpke-pq (X-Wing, 0x647a), HKDF-SHA256, ChaCha20-Poly1305. A sealed
message stays closed while one of the two problems is hard. `info` names the purpose: a message for another one
does not open.

Sealing and opening (`anon.crypto.sealing.opening`) are `cryptography`'s, or those of `anon.crypto.pure` where it has no
build: `anon.crypto.backend` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anon.crypto.backend import PURE, implementation
from anon.crypto.sealing_sizes import OVERHEAD, PUBLIC_KEY_SIZE, SECRET_SIZE

IMPLEMENTATION = implementation("cryptography")
if TYPE_CHECKING or IMPLEMENTATION != PURE:
    from anon.crypto.sealing.openssl import seal
else:
    from anon.crypto.pure.sealing import seal

__all__ = ["IMPLEMENTATION", "OVERHEAD", "PUBLIC_KEY_SIZE", "SECRET_SIZE", "seal"]
