"""Sealing in Python alone, for phones: the same bytes for the same randomness. Not constant-time; opens nothing."""

from __future__ import annotations

from anon.crypto.pure.sealing.hpke import seal, seal_with

__all__ = ["seal", "seal_with"]
