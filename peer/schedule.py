"""When packets leave: drawn at random, stored, never flushed. Pure; instants are unix seconds.

A packet's time is uniform over its survey's window without the clock margin at both ends, or over what is left of that
when the packet is made late. It is drawn from the operating system's randomness and from nothing in the data.

Retries. At most three, each at a time drawn anew and uniformly over what is left of the window, so that an aggregator
that never acknowledges cannot collect a pattern of arrival times. The attempt is counted before the first byte leaves.
Where nothing can carry a byte yet (no tor runs), there is no attempt: the packet is drawn again like an overdue one.

Overdue packets (a machine that slept, a run days later): each is drawn again on its own over what is left. They never
leave in a bunch on waking.

The rule for missed windows. When nothing is left of a window, its packet is never sent. If it was journalled, its
charge stays: bytes may have left before a crash. If it was never made, nothing was charged and the reservation returns
at the study's end. Neither depends on what the packet says.
"""

from __future__ import annotations

from collections.abc import Callable

from anon.study.manifest import Timetable, Window

MAX_RETRIES = 3
MAX_ATTEMPTS = 1 + MAX_RETRIES
TOLERANCE = 10.0
"""Seconds (or the margin, if that is less) that a packet may be late without being drawn again."""

LONGEST_ALLOWANCE = 60.0

RandomBytes = Callable[[int], bytes]


def uniform(low: float, high: float, random_bytes: RandomBytes) -> float:
    """An instant uniform from low to high (which rounding may reach), from eight random bytes."""
    return low + (high - low) * (int.from_bytes(random_bytes(8), "big") >> 11) / 2**53


def draw_send_time(window: Window, margin: float, now: float, random_bytes: RandomBytes) -> float | None:
    """Uniform over what is left of the window within its margins; None when nothing is left (missed)."""
    low, high = max(now, window.opens + margin), window.closes - margin
    return uniform(low, high, random_bytes) if low < high else None


def overdue(send_at: float, margin: float, now: float) -> bool:
    """Whether the packet is so late that it must be drawn again instead of leaving now."""
    return now - send_at > min(TOLERANCE, margin)


def evaluation_allowance(table: Timetable) -> float:
    """Seconds that evaluating the features may take, and is always treated as having taken: a quarter of the settling
    time, at least 1 and at most 60. Everything that follows is drawn from the end of it, so that how long a query ran
    on somebody's data moves nothing that leaves."""
    return min(LONGEST_ALLOWANCE, max(1.0, (table.settled - table.enrol_closes) / 4))


def draw_enrolment_time(table: Timetable, spread: float, now: float, random_bytes: RandomBytes) -> float:
    """At once when `spread` is 0, else uniform over the next `spread` seconds or what is left before closing."""
    left = table.enrol_closes - now
    return now + uniform(0, max(0.0, min(spread, left * 0.9)), random_bytes)


def draw_fetch_time(published: float, needed: float, now: float, random_bytes: RandomBytes) -> float:
    """Uniform over the gap between a closing and the next opening, a little after its start; now, when that is past."""
    gap = needed - published
    return max(now, uniform(published + 0.05 * gap, published + 0.6 * gap, random_bytes))


def draw_backoff(failures: int, base: float, random_bytes: RandomBytes) -> float:
    """Seconds to wait after the given number of failures: doubling up to 64 times `base`, spread by half each way."""
    return float(base * 2 ** min(failures, 6) * uniform(0.5, 1.5, random_bytes))
