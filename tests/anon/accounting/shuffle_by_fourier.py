"""The central epsilon recomputed independently of the code: from integers p and q, by a Fourier transform, in numpy.

delta(epsilon) = E[Z_+] / (h rate (1 + c P(supports x))), Z the sum over h honest reports of a variable of five values:
0 for a report that is not of the blanket, else 1 - t + c (b - t b'), where t = e**epsilon, c = e**epsilon0 - 1 and b,
b' say whether it supports x and x' (Su, Cheng, Wang 2025, arXiv 2504.07414, compute it alike).
"""

from __future__ import annotations

import math

import numpy as np

Row = tuple[str, int, float, float, float]
"""Mechanism, m, p, q and the share of the slot's weight."""

_GRID = 2**17


def blanket(rows: list[Row]) -> tuple[float, float, float]:
    """Rate, and the chances that a report of the blanket supports just x, and both."""
    parts = []
    for name, m, p, q, share in rows:
        if name == "krr":
            parts.append((share * m * q, 1 / m, 0.0))
        elif name == "subset":
            w = round(p + (m - 1) * q)
            parts.append((share * (1 - p) * m / (m - w), w * (m - w) / m / (m - 1), w * (w - 1) / m / (m - 1)))
        else:
            parts.append((share * (1 - p) / (1 - q), q * (1 - q), q * q))
    rate = sum(one for one, _, _ in parts)
    return rate, sum(a * b for a, b, _ in parts) / rate, sum(a * b for a, _, b in parts) / rate


def delta_at(epsilon: float, local: float, rate: float, only: float, both: float, honest: int) -> float:
    gain, factor = math.expm1(local), math.exp(epsilon)
    chances = [1 - rate, rate * (1 - 2 * only - both), rate * only, rate * only, rate * both]
    values = [0.0, 1 - factor, 1 - factor + gain, 1 - factor - factor * gain, (1 - factor) * (1 + gain)]
    mean = sum(c * v for c, v in zip(chances, values, strict=True))
    spread = math.sqrt(honest * sum(c * (v - mean) ** 2 for c, v in zip(chances, values, strict=True)))
    step = max(24 * spread, 4 * max(map(abs, values))) / _GRID
    law = np.zeros(_GRID)
    for chance, value in zip(chances, values, strict=True):
        low = math.floor((value - mean) / step)
        share = (value - mean) / step - low
        law[low % _GRID] += chance * (1 - share)
        law[(low + 1) % _GRID] += chance * share
    total = np.fft.irfft(np.fft.rfft(law) ** honest, _GRID)
    places = np.where(np.arange(_GRID) < _GRID // 2, np.arange(_GRID), np.arange(_GRID) - _GRID) * step + honest * mean
    return float((total * np.maximum(places, 0)).sum() / (honest * rate * (1 + gain * (only + both))))


def epsilon_at(delta: float, local: float, rows: list[Row], honest: int) -> float:
    rate, only, both = blanket(rows)
    low, high = 0.0, local
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle, local, rate, only, both, honest) <= delta else (middle, high)
    return high
