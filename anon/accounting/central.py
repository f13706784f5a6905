"""The central (epsilon, delta) of anonymous delivery, per slot and composed over a peer's slots. Replace-one.

It is a second statement beside the local epsilon, never in its place: it enters no ledger, no policy and no consent. It
holds under the `CONDITIONS`, which are printed with it.

The shuffled batch. A slot's table offers several surveys. A hash of a peer's secret tag draws the one that it answers.
The tag is known to nobody else, and does not depend on the peer's data. So survey and report together are one
randomiser, applied by every peer of the slot. Its local epsilon is that of the dearest row. The indistinguishable batch
is every accepted packet of the slot, whatever it answers. (Were the survey of a peer known, only its own row would hide
it.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil, exp, expm1, inf
from typing import Final

from anon.accounting.privacy_loss import Loss, compose, connect
from anon.accounting.shuffle import Crowd, CrowdCurve
from anon.ldp.epsilon import NANO
from anon.ldp.krr import RandomResponse
from anon.ldp.mechanism import SCALE, Mechanism
from anon.ldp.subset import SubsetSelection
from anon.text.sentences import say
from anon.values import frozen

DELTA: Final = 1e-6
"""At which the central epsilon is stated: below one over the largest cohort that a study may have."""

CONDITIONS: Final = (
    say("so many of the accepted packets come from honest members, whom nothing here can count"),
    say("the moment a packet arrives does not depend on who sent it or on what it says"),
    say("nobody links the packets of one member, or a packet with its sender, on the way"),
    say("what is compared are two versions of one member's record; everybody else's is taken as known"),
)

_ALIKE = 20  # nano-epsilon by which rows of one slot may differ and still count as one local epsilon
_LARGEST_LOCAL = 8.0
_POINTS = 64  # of a slot's curve, when slots are composed
_REMAINDER = 1e-10  # delta of a slot beyond its last point

Rows = Sequence[tuple[Mechanism, int]]
"""The surveys of one slot's table with their weights."""


@frozen
class Blanket:
    """The part of a mechanism that does not depend on its input (Balle et al. 2019, section 5). It is the minimum of
    the likelihood over inputs, normalised. `rate` is its probability. `only` is the probability that it supports one of
    two categories and not the other, `both` that it supports both."""

    rate: float
    only: float
    both: float

    @staticmethod
    def of(mechanism: Mechanism) -> Blanket:
        """The blanket of k-RR (uniform), subset selection (a uniform set) and unary encodings (m bits of chance q)."""
        m, p, q = mechanism.m, mechanism.p / SCALE, mechanism.q / SCALE
        if isinstance(mechanism, RandomResponse):
            return Blanket(m * q, 1 / m, 0.0)
        if isinstance(mechanism, SubsetSelection):
            w = mechanism.w
            return Blanket((1 - p) * m / (m - w), w * (m - w) / (m * (m - 1)), w * (w - 1) / (m * (m - 1)))
        return Blanket((1 - p) / (1 - q), q * (1 - q), q * q)


def signal(mechanism: Mechanism) -> float:
    """Return how likely a report supports the true category and not a given other: there the loss is epsilon.

    With (epsilon, this) as `Loss.of_response` it is the whole privacy loss distribution of one report: +epsilon,
    -epsilon where it supports only the other, 0 where it supports both or neither.
    """
    first, _ = mechanism.joint()
    return mechanism.p / SCALE - float(first)


def crowds(rows: Rows) -> list[Crowd]:
    """The crowds that hide a peer of a slot, each of which alone gives a bound.

    1. The privacy blanket, if all rows have one local epsilon.
    2. Clones: any likelihood is at least e**-epsilon0 times the mean of the peer's two (Feldman, McMillan, Talwar
       2021).
    3. Paired clones (Feldman, McMillan, Talwar 2022, arXiv 2208.04591). The peer's two likelihoods are alpha
       (e**epsilon0, 1) and alpha (1, e**epsilon0) on two distributions, and equal elsewhere. Any likelihood is at least
       alpha on both. The observer is told here if the peer's report is of the equal part. Without that the bound is
       not one, see the erratum to that paper's lemma 3.5.
    """
    total = sum(weight for _, weight in rows)
    shares = [(mechanism, weight / total) for mechanism, weight in rows]
    growth = exp(local_epsilon(rows) / NANO)
    moved = sum(share * signal(mechanism) * (1 - exp(-mechanism.epsilon / NANO)) for mechanism, share in shares)
    alpha = moved / (growth - 1)
    crowds = [Crowd(1 / growth, 0.5), Crowd(2 * alpha, 0.5, 0.0, min(alpha * (growth + 1), 1.0))]
    if max(mechanism.epsilon for mechanism, _ in rows) - min(mechanism.epsilon for mechanism, _ in rows) <= _ALIKE:
        blankets = [(Blanket.of(mechanism), share) for mechanism, share in shares]
        rate = sum(share * blanket.rate for blanket, share in blankets)
        only = sum(share * blanket.rate * blanket.only for blanket, share in blankets) / rate
        both = sum(share * blanket.rate * blanket.both for blanket, share in blankets) / rate
        crowds.append(Crowd(rate, only, both))
    return crowds


def local_epsilon(rows: Rows) -> int:
    """The local nano-epsilon of a slot: its dearest row's."""
    return max(mechanism.epsilon for mechanism, _ in rows)


@frozen
class SlotCurve:
    """An upper bound of delta by epsilon for one slot with so many honest reports.

    It is that of the crowd whose delta is smallest where the last one's, the blanket's if there is one, is `DELTA`; and
    never above the local curve.
    """

    local: float
    loss: Loss
    curve: CrowdCurve | None

    @staticmethod
    def of(rows: Rows, honest: int) -> SlotCurve:
        """The curve of a slot's table. With one honest report or none, or a local epsilon above 8, the local one."""
        local = local_epsilon(rows) / NANO
        if honest < 2 or local > _LARGEST_LOCAL:
            return SlotCurve(local, slot_loss(rows), None)
        curves = [CrowdCurve(crowd, exp(local), honest) for crowd in crowds(rows)]
        probe = solve(curves[-1].delta, DELTA, local)
        return SlotCurve(local, slot_loss(rows), min(curves, key=lambda curve: curve.delta(probe)))

    def delta(self, epsilon: float) -> float:
        """The bound at epsilon >= 0; 0 from the local epsilon on."""
        if epsilon >= self.local:
            return 0.0
        return min(self.loss.delta(epsilon), self.curve.delta(epsilon) if self.curve else 1.0)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at which the bound is at most delta, rounded up."""
        return solve(self.delta, delta, self.local)


def slot_loss(rows: Rows) -> Loss:
    """A loss that dominates every row's: the dearest epsilon, and as much signal as the worst row needs.

    For delta(t) = a (1 - e**(t - epsilon)) of each row the ratio to the dominating one is largest at t = 0.
    """
    dearest = local_epsilon(rows)
    cap = -expm1(-dearest / NANO)
    needed = max(signal(mechanism) * -expm1(-mechanism.epsilon / NANO) / cap for mechanism, _ in rows)
    # Outward by more than the last digits of doubles.
    return Loss.of_response(dearest, min(needed * (1 + 1e-12), 1.0))


def solve(curve: Callable[[float], float], delta: float, highest: float) -> float:
    """The smallest epsilon in [0, highest] at which a falling curve is at most delta, rounded up by highest / 2**30."""
    low, high = 0.0, highest
    if curve(0.0) <= delta:
        return 0.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if curve(middle) <= delta else (middle, high)
    return high


@frozen
class Central:
    """The central epsilon for so many honest reports in each slot; `amplified` if it is below the local one."""

    honest: tuple[int, ...]
    epsilon: float
    amplified: bool


def central(slots: Sequence[Rows], honest: Sequence[int], local: int, delta: float = DELTA) -> Central:
    """The central (epsilon, delta) of all of a peer's packets together, of which one is in each slot.

    `honest`: for each slot how many of its accepted reports are honest, the peer's own among them. `local`: the
    record-level nano-epsilon, which is never exceeded and is what remains among nobody. Slots are composed by their
    privacy-loss distributions (`anon.accounting.privacy_loss`); packets of different slots must not be linkable.

    A local epsilon of 1 among ever more honest reports, at a delta of 1e-6:

    >>> from anon.ldp import build, nano
    >>> slot = [(build("krr", 4, nano(1)), 1)]
    >>> [round(central([slot], [honest], nano(1)).epsilon, 2) for honest in (1, 100, 10_000)]
    [1.0, 0.4, 0.03]
    """
    kinds = Counter((tuple(rows), max(count, 0)) for rows, count in zip(slots, honest, strict=True))
    curves = [(SlotCurve.of(rows, count), times) for (rows, count), times in kinds.items()]
    alone = len(curves) == 1 and curves[0][1] == 1
    bound = curves[0][0].epsilon(delta) if alone else _composed(curves, delta)
    limit = local / NANO
    amplified = bound < limit and any(curve.curve for curve, _ in curves)
    return Central(tuple(honest), bound if amplified else limit, amplified)


def _composed(curves: Sequence[tuple[SlotCurve, int]], delta: float) -> float:
    """Each curve so many times. The step is fine beside the slot that loses most; inf if delta is out of reach."""
    reach = [curve.epsilon(_REMAINDER) for curve, _ in curves]
    step = max(int(max(reach) * NANO / _POINTS), 1)
    losses: list[Loss] = []
    for (curve, times), far in zip(curves, reach, strict=True):
        losses += [connect(curve.delta, step, max(1, ceil(far * NANO / step)))] * times
    total = compose(losses)
    return solve(total.delta, delta, total.highest) if total.delta(total.highest) <= delta else inf
