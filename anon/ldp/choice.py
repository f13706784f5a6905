"""From a name and an epsilon, or from a document's integers, to a mechanism; and the choice among them."""

from __future__ import annotations

from typing import Final

from anon.errors import Refused
from anon.ldp.epsilon import MAX_EPSILON, NanoEpsilon, format_epsilon
from anon.ldp.krr import RandomResponse
from anon.ldp.mechanism import MAX_CATEGORIES, MIN_CATEGORIES, Mechanism
from anon.ldp.unary import Perturbation, Rappor

MECHANISMS: Final[dict[str, type[RandomResponse] | type[Rappor] | type[Perturbation]]] = {
    mechanism.name: mechanism for mechanism in (RandomResponse, Perturbation, Rappor)
}
AUTO = "auto"


def build(name: str, m: int, epsilon: NanoEpsilon) -> Mechanism:
    """Return the named mechanism, or for "auto" the choice, whose loss is at most epsilon and within 1e-9 of it.

    Raises `Refused` for an unknown name, for m outside 2..4096 and for epsilon outside (0, 20].
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
    """Return the mechanism of least expected error by eq. 4 (section VII-D3), compared exactly. Raises as `build`."""
    return min((build(name, m, epsilon) for name in MECHANISMS), key=lambda mechanism: mechanism.squared_error())


def from_spec(name: str, m: int, p: int, q: int) -> Mechanism:
    """Return the mechanism a document describes, its epsilon recomputed from p and q.

    Raises `Refused` for an unknown name and for numbers that no such mechanism has. The caller compares
    `.epsilon` with what the document declares.
    """
    return _named(name)(m, p, q)


def _named(name: str) -> type[RandomResponse] | type[Rappor] | type[Perturbation]:
    if name not in MECHANISMS:
        raise Refused(f"unknown mechanism: expected one of {', '.join(MECHANISMS)} (or {AUTO} in a study file)")
    return MECHANISMS[name]
