"""A study's receipt prints the figures that independent code computes from the published manifest's bytes.

cbor2 reads the manifest. Losses are logarithms of fractions. Packets are composed by adding up every combination of
their losses. Central figures come from Fourier transforms of the privacy blanket, composed on a grid.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import cbor2
import numpy as np
import pytest
from numpy.typing import NDArray

from anon.accounting.statement import ACCEPTED, Batch, account, in_words
from tests.anon.accounting import shuffle_by_fourier as fourier
from tests.support.clock import Clock
from tests.support.world import begin, make_app, study_text

pytestmark = pytest.mark.slow

DELTA = 1e-6
WHOLE = 2**64
POINTS = 200

Law = list[tuple[float, float]]
"""Pairs of a privacy loss, in nats, and its probability."""


async def printed(home: Path, design: str, accepted: int) -> tuple[dict[str, Any], str]:
    """The manifest as published, decoded by other code, and the lines of its receipt for so many packets a slot."""
    clock = Clock()
    async with make_app(home, clock) as app:
        manifest = (await begin(app, clock, study_text(design))).live.manifest
    said = in_words(account(manifest, Batch((accepted,) * manifest.packets, ACCEPTED)))
    return cbor2.loads(manifest.to_bytes()), "\n".join(said)


def surveys_of(document: dict[str, Any], slot: dict[str, Any]) -> list[tuple[dict[str, Any], float]]:
    total = sum(row["weight"] for row in slot["rows"])
    return [(document["surveys"][row["survey"]], row["weight"] / total) for row in slot["rows"]]


def most_alike(survey: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """The worst ratio of probabilities of a report, and how likely a report is one of those under its own category."""
    m, p, q = survey["m"], Fraction(survey["p"], WHOLE), Fraction(survey["q"], WHOLE)
    if survey["mechanism"] == "krr":
        return p / q, p
    if survey["mechanism"] == "subset":
        w = p + (m - 1) * q
        return p * (m - w) / ((1 - p) * w), p * (m - w) / (m - 1)
    return p * (1 - q) / ((1 - p) * q), p * (1 - q)


def epsilon_of(law: Law) -> float:
    """The smallest epsilon at which what is lost beyond it weighs at most DELTA."""
    low, high = 0.0, max(loss for loss, _ in law)
    for _ in range(50):
        middle = (low + high) / 2
        beyond = math.fsum(chance * -math.expm1(middle - loss) for loss, chance in law if loss > middle)
        low, high = (low, middle) if beyond <= DELTA else (middle, high)
    return high


def linked(document: dict[str, Any]) -> float:
    """All packets together: the sum over every combination of +epsilon, -epsilon and nothing, slot by slot."""
    laws = []
    for slot in document["slots"]:
        loss, hit = max((most_alike(survey) for survey, _ in surveys_of(document, slot)), key=lambda one: one[0])
        epsilon, chance = math.log(loss), float(hit)
        back = chance * math.exp(-epsilon)
        laws.append([(epsilon, chance), (-epsilon, back), (0.0, 1 - chance - back)])
    return epsilon_of([(sum(l for l, _ in way), math.prod(c for _, c in way)) for way in product(*laws)])  # noqa: E741


def hidden(document: dict[str, Any], honest: int) -> float:
    """The central epsilon of all slots: each slot's curve as a law of losses on a grid, convolved."""
    slots = [surveys_of(document, slot) for slot in document["slots"]]
    local = [math.log(max(most_alike(one)[0] for one, _ in rows)) for rows in slots]
    spelled = [
        tuple((one["mechanism"], one["m"], one["p"] / WHOLE, one["q"] / WHOLE, share) for one, share in rows)
        for rows in slots
    ]
    if len(slots) == 1:
        return fourier.epsilon_at(DELTA, local[0], list(spelled[0]), honest)
    kinds = sorted(set(zip(local, spelled, strict=True)))
    step = max(fourier.epsilon_at(1e-10, one, list(rows), honest) for one, rows in kinds) / POINTS
    laws = {kind: _law(*kind, honest, step) for kind in kinds}
    total = np.array([1.0])
    for kind in zip(local, spelled, strict=True):
        total = np.convolve(total, laws[kind])
    middle = len(total) // 2
    return epsilon_of([((index - middle) * step, float(chance)) for index, chance in enumerate(total)])


def _law(local: float, rows: tuple[fourier.Row, ...], honest: int, step: float) -> NDArray[np.float64]:
    """delta'' gives how likely each loss is: dP(l) = e**l d(e**-l delta'(l)); a loss of -l is e**-l times as likely."""
    places = np.arange(POINTS + 2) * step
    blanket = fourier.blanket(list(rows))
    deltas = np.array([fourier.delta_at(float(one), local, *blanket, honest) for one in places])
    falls = np.exp(-(places[1:] + places[:-1]) / 2) * np.diff(deltas) / step
    positive = np.maximum(np.exp(places[1:-1]) * np.diff(falls), 0.0)
    negative = (positive * np.exp(-places[1:-1]))[::-1]
    rest = max(1 - float(positive.sum() + negative.sum()), 0.0)
    return np.concatenate([negative, [rest], positive])


def figure(said: str, words: str) -> float:
    return float(re.search(rf"{words}: (\d+(?:\.\d+)?)", said)[1])  # type: ignore[index]


@pytest.mark.parametrize("design", ["cuts", "quantile", "median"])
async def test_the_printed_receipt_is_what_the_manifest_s_bytes_give(
    tmp_path: Path, design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums exactly; what is composed from above, within 1 percent linked and 4 percent after anonymous delivery."""
    monkeypatch.setattr(fourier, "_GRID", 2**14)
    document, said = await printed(tmp_path / "home", design, 4000)
    each = [max(math.log(most_alike(one)[0]) for one, _ in surveys_of(document, slot)) for slot in document["slots"]]
    stated = re.search(r"Local epsilon of each packet: ([\d., ]+)\. It", said)[1].split(", ")  # type: ignore[index]
    assert [float(one) for one in stated] == pytest.approx(each, abs=2e-9)
    assert all(float(one) >= true - 1e-12 for one, true in zip(stated, each, strict=True))
    assert figure(said, "Record-level sum") == pytest.approx(sum(each), abs=2e-9 * len(each))
    if len(each) > 1:
        together, true = float(re.search(r"have epsilon ([\d.]+) at", said)[1]), linked(document)  # type: ignore[index]
        assert true * (1 - 1e-9) <= together <= true * 1.01
    for words, honest in (("all of them honest", 4000), ("half of them honest", 2000), ("a tenth of them honest", 400)):
        true, shown = hidden(document, honest), figure(said, words)
        assert true * 0.995 <= shown <= true * 1.04, (words, true, shown)
    assert figure(said, "none of them honest") == figure(said, "Record-level sum")
