"""Sealing and opening in Python alone, for phones: the same bytes for the same randomness. **Not constant-time.**"""

from __future__ import annotations

from anon.crypto.pure.sealing.hpke import Opener, seal, seal_with

__all__ = ["Opener", "seal", "seal_with"]
