"""Epsilon as an integer count of 1e-9, so that budgets add up exactly and every rounding is outward.

A loss computed from probabilities is rounded up, a target read from a study is taken exactly or refused. Hence
recomputed <= declared <= consented can be checked by comparing integers.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import NewType

from anon.errors import Refused
from anon.text.foreign import Quoted
from anon.text.sentences import Figure, Sentence, say

NanoEpsilon = NewType("NanoEpsilon", int)
"""A privacy loss in units of 1e-9, rounded up. Natural logarithm, pure (delta = 0)."""

NANO = 10**9
MAX_EPSILON = NanoEpsilon(20 * NANO)
"""The largest loss one mechanism may have. Beyond it a report is hardly noisy and 64-bit probabilities get coarse."""

PRECISION = Context(prec=80)
"""Digits carried when a loss or a probability is computed; integers over 2**64 need 20, differences of them 40."""

_LARGEST_STATED = 1_000_000
_SHOWN = Context(prec=3, rounding=ROUND_CEILING)
MOST_ODDS = 1_000_000
"""Above it a factor of odds is not written out: nobody reads it as a protection."""
_MARGIN = Decimal("1e-60")  # far above the rounding of 80 digits, far below 1e-9


def loss(ratio: Fraction) -> NanoEpsilon:
    """Return ln(ratio) in nano-epsilon, never below the true value and less than 1 + 1e-50 above it.

    `ratio` is a worst ratio of output probabilities, at least 1 (ValueError otherwise).

    >>> loss(Fraction(3))  # a coin that is right three times as often as wrong: ln 3, rounded up
    1098612289
    """
    if ratio < 1:
        raise ValueError("a worst likelihood ratio is at least 1: give the larger probability as the numerator")
    if ratio == 1:
        return NanoEpsilon(0)
    quotient = PRECISION.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    # Decimal's ln rounds half to even in every context, so it may come out below: the margin covers that.
    exact = PRECISION.add(PRECISION.ln(quotient), _MARGIN)
    return NanoEpsilon(int(PRECISION.multiply(exact, Decimal(NANO)).to_integral_value(rounding=ROUND_CEILING)))


def exponential(epsilon: NanoEpsilon) -> Decimal:
    """Return e**epsilon, correctly rounded to the digits of `PRECISION`."""
    return PRECISION.exp(PRECISION.divide(Decimal(epsilon), Decimal(NANO)))


def nano(epsilon: float | str | Decimal) -> NanoEpsilon:
    """Read an epsilon written by a person: positive, with at most nine decimals, taken exactly.

    A float stands for its shortest decimal spelling (0.1 is one tenth). Rounding would either promise more than was
    written or allow less than was meant. So anything finer than 1e-9 raises `Refused`. So do zero, negative and
    non-finite values, and values above a million.

    Amounts add up exactly, which floats do not:

    >>> nano("0.1") + nano("0.2") == nano("0.3"), 0.1 + 0.2 == 0.3
    (True, False)
    >>> nano("1e-10")
    Traceback (most recent call last):
    anon.errors.Refused: epsilon “1E-10” has more than nine decimals: round it to a multiple of 0.000000001
    """
    try:
        # The spelling of 0.1 is one tenth; Decimal(0.1) would have all 55 digits of the double.
        written = Decimal(str(epsilon)) if not isinstance(epsilon, bool) else Decimal("NaN")
    except InvalidOperation:
        raise Refused(say("epsilon is not a number: write a decimal such as 0.5")) from None
    if not written.is_finite() or not 0 < written <= _LARGEST_STATED:
        raise Refused(say(
            "epsilon must be above 0 and at most {largest_stated}: write a decimal such as 0.5",
            largest_stated=_LARGEST_STATED,
        ))
    # Not as a Decimal: its product would be rounded to the 28 digits of the default context.
    scaled = Fraction(written) * NANO
    if scaled.denominator != 1:
        raise Refused(say(
            "epsilon {written} has more than nine decimals: round it to a multiple of 0.000000001",
            written=Quoted(str(written)),
        ))
    return NanoEpsilon(scaled.numerator)


def format_epsilon(epsilon: int) -> Figure:
    """Return nano-epsilon as the shortest exact decimal, such as "0.5" or "2"; `nano` reads it back."""
    sign, (whole, rest) = "-" if epsilon < 0 else "", divmod(abs(epsilon), NANO)
    return Figure(f"{sign}{whole}.{rest:09d}".rstrip("0").rstrip("."))


def odds_moved(epsilon: int) -> Sentence:
    """Return how far nano-epsilon lets odds move, as the end of a sentence. Total: no epsilon is too large for it.

    The factor e**epsilon is rounded up to three digits.

    >>> [str(odds_moved(nano(epsilon))) for epsilon in ("0.5", 2)]
    ['move by at most a factor of 1.65', 'move by at most a factor of 7.39']
    """
    if epsilon > loss(Fraction(MOST_ODDS)):
        return say("may move by a factor of more than a million, which is no protection")
    factor = Figure(f"{_SHOWN.plus(exponential(NanoEpsilon(epsilon))):,f}")
    return say("move by at most a factor of {factor}", factor=factor)
