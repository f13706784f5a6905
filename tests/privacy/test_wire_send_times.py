"""When packets arrive, over five hundred simulated peers whose machines sleep, restart and fail to reach the route.

The stated test: for the arrival times of a peer's two packets (the first arrival of each), distance covariance of ranks
within strata of peers whose machines are away at about the same times (60 s more or less), by 999 permutations within
strata, level 0.01. A machine's long absence delays both of its packets, and no schedule hides that (docs/threats.md).
Beyond it the two times may have nothing in common. Fixed seeds: a run repeats, and over seeds one in a hundred fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from math import sqrt

import pytest

from peer.rules.schedule import MAX_ATTEMPTS
from peer.run.departures import DepartureTimes
from tests.privacy.independence import p_value, worst_distance
from tests.support.many_peers import HABITS, Arrivals, Habit, Origin, Weather, common_journal, live_all

pytestmark = pytest.mark.slow

LEVEL = 0.01
SILENT = Weather(lost=0.0, unanswered=0.0, seconds=1e-3, acknowledges=False)


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    with common_journal() as origin:
        yield origin


def both_arrived(origin: Origin, strata: Sequence[Sequence[Arrivals]]) -> list[list[tuple[float, float]]]:
    """Per stratum, the first arrivals of the peers whose packets both came."""
    one, other = origin.bodies
    return [
        [(seen.times[one][0], seen.times[other][0]) for seen in peers if one in seen.times and other in seen.times]
        for peers in strata
    ]


def test_arrival_times_of_two_packets_of_a_peer_are_independent(origin: Origin) -> None:
    """Five hundred peers, five habits. Three hundred are enough to find what is flushed together, below; the soak has
    two thousand."""
    strata = asyncio.run(live_all(origin, HABITS, 100, Weather(), "independent"))
    arrived = both_arrived(origin, strata)
    assert sum(map(len, arrived)) > 450
    assert all(origin.opens < at < origin.closes for pairs in arrived for pair in pairs for at in pair)
    assert p_value(arrived) > LEVEL
    assert max(max(seen.left.values()) for peers in strata for seen in peers if seen.left) <= MAX_ATTEMPTS


def test_the_test_finds_packets_that_are_flushed_together_on_waking(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: the same test, with 300 peers that send what is overdue at once."""
    monkeypatch.setattr("peer.run.plan.overdue", lambda _send_at, _margin, _now: False)
    monkeypatch.setattr("peer.run.plan.held_up", lambda _times, _job, _due, _now: False)
    strata = asyncio.run(live_all(origin, HABITS[1:], 75, Weather(), "flushed"))
    assert p_value(both_arrived(origin, strata)) <= LEVEL


def retries(origin: Origin, strata: Sequence[Sequence[Arrivals]]) -> list[tuple[float, float]]:
    """Per packet that came twice: its first arrival, and where in what was left of the window then the second fell."""
    last = origin.closes - origin.aggregator.manifest.timetable.margin
    times = [one for peers in strata for seen in peers for one in seen.times.values() if len(one) > 1]
    return [(first, (second - first) / (last - first)) for first, second, *_ in times]


def test_an_aggregator_that_never_acknowledges_learns_nothing_from_retries(origin: Origin) -> None:
    """Two hundred and fifty peers whose machines are on. At most four arrivals of each packet, and where in what was
    left of the window the second fell is uniform (Kolmogorov-Smirnov) and independent of the first, level 0.01 each."""
    strata = asyncio.run(live_all(origin, [Habit()], 250, SILENT, "silent"))
    counts = [count for seen in strata[0] for count in seen.left.values()]
    assert len(counts) == 500
    assert max(counts) == MAX_ATTEMPTS
    assert all(len(times) == seen.left[body] for seen in strata[0] for body, times in seen.times.items())
    pairs = retries(origin, strata)
    assert len(pairs) > 475
    assert p_value([pairs[start::4] for start in range(4)]) > LEVEL
    assert worst_distance([place for _first, place in pairs]) < 1.63 / sqrt(len(pairs))
    one, other = origin.bodies
    crossed = [(seen.times[one][1], seen.times[other][0]) for seen in strata[0] if len(seen.times.get(one, ())) > 1]
    assert p_value([crossed]) > LEVEL, "a packet's retry and the other packet"


def test_the_test_finds_retries_that_follow_at_a_fixed_distance(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: retries five minutes after the attempt, 100 peers."""

    def fixed(departures: DepartureTimes, _window: object) -> float:
        return departures.now + 300.0

    monkeypatch.setattr(DepartureTimes, "again", fixed)
    strata = asyncio.run(live_all(origin, [Habit()], 100, SILENT, "fixed"))
    assert p_value([retries(origin, strata)]) <= LEVEL


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_more_peers_are_independent_too(origin: Origin, seed: int) -> None:
    """Ten runs of two thousand: at this level one in ten such suites fails once; look at the seed's neighbours then."""
    strata = asyncio.run(live_all(origin, HABITS, 400, Weather(), f"soak-{seed}"))
    assert p_value(both_arrived(origin, strata)) > LEVEL
