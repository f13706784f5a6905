"""When packets leave: drawn at random, stored, never flushed. Pure; instants are unix seconds.

`peer.run.plan` decides which job is due next; this module only draws the times.

A packet's time is uniform over its survey's window without the clock margin at both ends, or over what is left of that
when the packet is made late. It is drawn from the operating system's randomness and from nothing in the data.

Retries. At most three, each at a time drawn anew and uniformly over what is left of the window, so that an aggregator
that never acknowledges cannot collect a pattern of arrival times. The attempt is counted before the first byte leaves.
Where nothing can carry a byte yet (no tor runs), there is no attempt: the packet is drawn again like an overdue one.

Where the aggregator is away, heads and documents are asked for again after waits that double, and that never take more
than 3/8 of what is left until the next window's end. So an aggregator that is away for most of a window, and back
before its end, meets every peer in time. A packet whose look at the heads brought nothing is drawn again over what is
left, and no attempt is counted: none of its bytes left. An attempt that no proxy and no port took is not one either.

Overdue packets (a machine that slept, a run days later): each is drawn again on its own over what is left. They never
leave in a bunch on waking.

The rule for missed windows. When nothing is left of a window, its packet is never sent. If it was journalled, its
charge stays: bytes may have left before a crash. If it was never made, nothing was charged and the reservation returns
at the study's end. Neither depends on what the packet says. Making it takes a fixed allowance of time, which begins
with a start of this peer's own: one that has less than that left misses the window (`in_time`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from anon.study.manifest import Manifest, Timetable, Window

MAX_RETRIES = 3
MAX_ATTEMPTS = 1 + MAX_RETRIES
TOLERANCE = 10.0
"""Seconds (or the margin, if that is less) that a packet may be late without being drawn again."""

LONGEST_ALLOWANCE = 60.0
QUERYING = 0.5
"""Of the first allowance, what the queries may take; the rest is for what is made of their answers."""

LONGEST_OPENING = 3600.0
"""Seconds in which a peer fetches its buckets of roster and credentials."""

LEAST_WAIT = 0.25
"""Seconds between two attempts to fetch something."""
LEAST_LOOK = 60.0
"""Seconds before enrolment closes from which on nobody looks for the roster any more."""

RandomBytes = Callable[[int], bytes]


def uniform(low: float, high: float, random_bytes: RandomBytes) -> float:
    """An instant uniform from low to high (which rounding may reach), from eight random bytes."""
    # A double holds 53 bits: with them all values are alike likely, with 64 the rounding would favour some.
    return low + (high - low) * (int.from_bytes(random_bytes(8), "big") >> 11) / 2**53


def draw_send_time(window: Window, margin: float, now: float, random_bytes: RandomBytes) -> float | None:
    """Uniform over what is left of the window within its margins; None when nothing is left (missed).

    >>> window, zeros = Window(opens=0, closes=3600), bytes
    >>> draw_send_time(window, 60, now=0, random_bytes=zeros), draw_send_time(window, 60, now=3550, random_bytes=zeros)
    (60.0, None)
    """
    low, high = max(now, window.opens + margin), window.closes - margin
    return uniform(low, high, random_bytes) if low < high else None


def overdue(send_at: float, margin: float, now: float) -> bool:
    """True if the packet is so late that it must be drawn again instead of leaving now."""
    return now - send_at > min(TOLERANCE, margin)


def evaluation_allowance(table: Timetable) -> float:
    """Seconds that evaluating the features, and making what the first packets say of them, may take, and are always
    treated as having taken: a quarter of the settling time, at least 1 and at most 60. Everything that follows is drawn
    from the end of it, so that how long a query ran on somebody's data moves nothing that leaves."""
    return _allowed(table.settled - table.enrol_closes)


def making_allowance(manifest: Manifest, window: Window) -> float:
    """The same of a later window, whose packets wait for documents: a quarter of the time between these and it."""
    return _allowed(window.opens - published_before(manifest, window))


def _allowed(gap: float) -> float:
    return min(LONGEST_ALLOWANCE, max(1.0, gap / 4))


def published_before(manifest: Manifest, window: Window) -> int:
    """When the documents were published that a window's packets can wait for, in unix seconds."""
    closings = (survey.window.closes for survey in manifest.surveys if survey.window.closes <= window.opens)
    return max(closings, default=manifest.timetable.enrol_closes)


def in_time(manifest: Manifest, window: Window, ready: float) -> bool:
    """True if something is left of a window when what its packets say is ready: by the clock alone, before the data is
    opened."""
    return ready < window.closes - manifest.timetable.margin


def draw_enrolment_time(table: Timetable, spread: float, now: float, random_bytes: RandomBytes) -> float:
    """At once when `spread` is 0, else uniform over the next `spread` seconds or what is left before closing."""
    left = table.enrol_closes - now
    return now + uniform(0, max(0.0, min(spread, left * 0.9)), random_bytes)


def draw_fetch_time(published: float, needed: float, now: float, random_bytes: RandomBytes) -> float:
    """Uniform over the gap between a closing and the next opening, a little after its start; now, when that is past."""
    gap = needed - published
    return max(now, uniform(published + 0.05 * gap, published + 0.6 * gap, random_bytes))


def draw_begin(manifest: Manifest, now: float, random_bytes: RandomBytes) -> float:
    """When a peer goes on if its buckets of roster and credentials are here by then. They are fetched until then, each
    at its own time. So no answer moves the instant: one that comes later counts at the next of them, drawn alike.

    That is after half of what is left of the settling time, or an eighth of what is left of the next window if that is
    more, an hour at most; by chance up to half of it sooner.
    """
    table = manifest.timetable
    longest = max((table.settled - now) / 2, (next_end(manifest, now) - now) / 8, evaluation_allowance(table))
    return now + min(LONGEST_OPENING, longest) * uniform(0.5, 1.0, random_bytes)


def draw_spread(published: float, needed: float, now: float, random_bytes: RandomBytes) -> float:
    """Uniform over the gap between what published it and when it is needed, or over what is left of that; at least over
    a tenth of the gap from now on, so that what is late does not leave in a bunch."""
    gap = needed - published
    low = max(now, published + 0.05 * gap)
    return uniform(low, max(published + 0.6 * gap, low + 0.1 * gap), random_bytes)


def draw_backoff(failures: int, base: float, random_bytes: RandomBytes) -> float:
    """Seconds to wait after the given number of failures: doubling up to 64 times `base`, spread by half each way."""
    return float(base * 2 ** min(failures, 6) * uniform(0.5, 1.5, random_bytes))


def draw_wait(failures: int, base: float, left: float, margin: float, random_bytes: RandomBytes) -> float:
    """Seconds to wait after a failure: as `draw_backoff` says, and never more than 3/8 of the seconds that are `left`,
    so that whatever comes back before the end is met before the end. Close to it, a twentieth of the clock margin."""
    share = uniform(0.125, 0.375, random_bytes)
    return min(draw_backoff(failures, base, random_bytes), max(LEAST_WAIT, margin / 20, left * share))


def next_end(manifest: Manifest, now: float) -> float:
    """The next instant at which something is lost that was not done before: enrolment's or a window's end."""
    margin = manifest.timetable.margin
    ends = [manifest.timetable.enrol_closes, *(window.closes - margin for window in manifest.windows)]
    return min((float(end) for end in ends if end > now), default=inf)


def may_look(table: Timetable, now: float) -> bool:
    """True if so much is left of enrolment that a peer which waits for the roster looks if it is there already."""
    return table.enrol_closes - now > _least_look(table)


def _least_look(table: Timetable) -> float:
    return max(LEAST_LOOK, (table.settled - table.enrol_closes) / 4)


def draw_look(manifest: Manifest, now: float, random_bytes: RandomBytes) -> float:
    """When it looks, once. A peer that finds a roster has a clock that is behind.

    That is before enrolment ends by a quarter of the settling time at least, and by the settling time at most, or by an
    eighth of what follows up to the last window's end if that is more. A clock that is behind by x loses at most the
    packets of the last x of a window. So one that the look does not find loses one in 32 at most where the settling
    time is short. One that it finds still has the settling time before any window that is longer than its error ends.
    """
    table = manifest.timetable
    gap, last = table.settled - table.enrol_closes, max(window.closes for window in manifest.windows)
    least = _least_look(table)
    longest = max(gap, (last - table.enrol_closes) / 8, 2 * least)
    return uniform(max(now, table.enrol_closes - longest), table.enrol_closes - least, random_bytes)
