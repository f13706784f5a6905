"""From a name and an epsilon, or from a document's integers, to a mechanism; and the choice among them."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

from anon.errors import Refused
from anon.ldp.epsilon import MAX_EPSILON, NanoEpsilon, exponential, format_epsilon
from anon.ldp.krr import RandomResponse
from anon.ldp.mechanism import MAX_CATEGORIES, MIN_CATEGORIES, SCALE, Mechanism
from anon.ldp.subset import SubsetSelection
from anon.ldp.unary import Perturbation, Rappor

Kind = type[RandomResponse] | type[SubsetSelection] | type[Perturbation] | type[Rappor]

MECHANISMS: Final[dict[str, Kind]] = {
    mechanism.name: mechanism for mechanism in (RandomResponse, SubsetSelection, Perturbation, Rappor)
}
AUTO = "auto"


def build(name: str, m: int, epsilon: NanoEpsilon) -> Mechanism:
    """Return the named mechanism, or for "auto" the choice, whose loss is at most epsilon and within 1e-9 of it.

    Raises `Refused` for an unknown name, for m outside 2..4096 and for epsilon outside (0, 20].

    >>> from anon.ldp import nano
    >>> coin = build("krr", 2, nano(1))
    >>> round(coin.p / SCALE, 3), round(coin.q / SCALE, 3), coin.report_size
    (0.731, 0.269, 2)
    >>> coin.epsilon <= nano(1)  # recomputed from p and q
    True
    """
    if name == AUTO:
        return choose(m, epsilon)
    kind = _named(name)
    if not MIN_CATEGORIES <= m <= MAX_CATEGORIES:
        raise Refused(
            f"a survey has {MIN_CATEGORIES} to {MAX_CATEGORIES} categories, got {m}: use fewer features or coarser bins"
        )
    if not 0 < epsilon <= MAX_EPSILON:
        raise Refused(
            f"the epsilon of one survey lies above 0 and is at most {format_epsilon(MAX_EPSILON)}, "
            f"got {format_epsilon(epsilon)}: state another epsilon"
        )
    return kind.build(m, epsilon)


def choose(m: int, epsilon: NanoEpsilon) -> Mechanism:
    """Return the mechanism of least expected error of the histogram by eq. 4 (section VII-D3), compared exactly.

    For binning surveys, which have no label. Ties go to the shorter report. Raises as `build`.

    >>> from anon.ldp import nano
    >>> [(m, epsilon, choose(m, nano(epsilon)).name) for m, epsilon in ((2, 1), (16, 4), (16, "0.5"))]
    [(2, 1, 'krr'), (16, 4, 'krr'), (16, '0.5', 'subset')]
    """
    return min((build(name, m, epsilon) for name in MECHANISMS), key=lambda mechanism: mechanism.squared_error())


def choose_for_label(m: int, epsilon: NanoEpsilon) -> Mechanism:
    """Return the mechanism of least `label_contrast_error` for m = 2 x cells categories. Raises as `build`.

    It is what "auto" means for a histogram survey: learning feels the label contrast, and at small m the two criteria
    pick different mechanisms. The set size of subset selection is chosen by the same criterion.
    """
    named = [build(name, m, epsilon) for name in MECHANISMS]
    sized = SubsetSelection.of_size(m, best_set_size(m, epsilon), epsilon)
    # `build` sizes its sets for eq. 4. This criterion may want another size, so that one competes too.
    return min((*named, sized), key=lambda mechanism: label_contrast_error(mechanism, m // 2, 1))


def label_contrast_error(mechanism: Mechanism, cells: int, n: int) -> Fraction:
    """Return the variance of the label contrasts of all cells, summed, estimated from n reports; exact.

    A cell holds two neighbouring categories, of label 0 and 1, and its contrast is the difference of their shares. With
    s, t = `joint`, g = p - q and the n categories drawn uniformly from the m = 2 x cells, the sum is

        2 cells (r - j) / (n g^2),   r = q + g / m,   j = t + 2 (s - t) / m:

    a cell contributes whenever a report supports exactly one of its two categories. (k-RR: 1 / (n g^2).) Raises
    `ValueError` unless m = 2 x cells and n >= 1.
    """
    if mechanism.m != 2 * cells or n < 1:
        raise ValueError("a label contrast needs two categories for each cell and at least one report")
    first, second = mechanism.joint()
    gap = Fraction(mechanism.p - mechanism.q, SCALE)
    rate = Fraction(mechanism.q, SCALE) + gap / mechanism.m
    both = second + 2 * (first - second) / mechanism.m
    return 2 * cells * (rate - both) / (n * gap**2)


def best_set_size(m: int, epsilon: NanoEpsilon) -> int:
    """Return the w at which subset selection has the least label contrast error, by its continuous probabilities."""
    # Doubles may choose a size: `of_size` finds the probabilities of any size exactly.
    growth = float(exponential(epsilon))

    def error(w: int) -> float:
        p = w * growth / (w * growth + m - w)
        q = (w - p) / (m - 1)
        pairs = 0.0 if m == 2 else (w - 1) / (m - 1) * (p * (w - 2) + (1 - p) * w) / (m - 2)
        both = pairs + 2 * (p * (w - 1) / (m - 1) - pairs) / m
        return (w / m - both) / (p - q) ** 2

    return min(range(1, max(m // 2, 1) + 1), key=error)


# Types count: without them 4.0 would find the mechanism of 4, and pass by the check for integers.
@lru_cache(maxsize=1024, typed=True)
def from_spec(name: str, m: int, p: int, q: int) -> Mechanism:
    """Return the mechanism a document describes, its epsilon recomputed from p and q. Kept: every packet asks for one.

    Raises `Refused` for an unknown name and for numbers that no such mechanism has. The caller compares
    `.epsilon` with what the document declares.
    """
    return _named(name)(m, p, q)


def _named(name: str) -> Kind:
    if name not in MECHANISMS:
        raise Refused(f"unknown mechanism: expected one of {', '.join(MECHANISMS)} (or {AUTO} in a study file)")
    return MECHANISMS[name]
