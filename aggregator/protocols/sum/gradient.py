"""Logistic regression from the published sums of all rounds: the documents between them, and the model after the last.

`Descent.after` is exact arithmetic, so a document is recomputed by peers and audit to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from aggregator.protocols.sum.published import NoisySum
from anon.errors import Malformed
from anon.sums.columns import Linear
from anon.sums.gradient import Descent, GradientSums, Standing


def standings(design: GradientSums, way: Descent, rounds: Sequence[NoisySum]) -> tuple[Standing, ...]:
    """The standing after each round; `units` of the way is the number of members. Raises `Malformed` for sums of
    another length, or other noise than declared."""
    if any(one.variance != way.noise for one in rounds):
        raise Malformed("sums: expected the noise that the descent declares")
    found, standing = [], way.start(len(design.columns))
    for one in rounds:
        gradients, units = design.heard(one.values, way.units)
        standing = evolve(way, units=units).after(standing, gradients, design.scale)
        found.append(standing)
    return tuple(found)


def learn_gradient(design: GradientSums, way: Descent, rounds: Sequence[NoisySum]) -> Linear:
    """The model after the last round. Raises `Malformed` before it."""
    reached = standings(design, way, rounds)
    return Linear(design.columns, way.final(reached[-1] if reached else way.start(len(design.columns))))
