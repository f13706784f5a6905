"""Which connection gives way, rule by rule, by a clock that is an argument; and the arithmetic of what a stranger must
spend."""

from __future__ import annotations

from math import inf

import pytest

from anon.serving.giving_way import (
    AT_ONCE,
    CREDIT,
    GRACE,
    LEAST_RATE,
    MOST_CONNECTIONS,
    PLACES_OF_A_CALLER,
    ConnectionStanding,
    Limits,
    RequestStage,
    bodies_give_way,
    callers_give_way,
    give_way,
    overdue,
    places,
    slowest_readers,
)
from tests.support.tries import every

LIMITS = Limits(connections=100)


def body(came: float, brought: int = 0, caller: bytes = b"") -> ConnectionStanding:
    return ConnectionStanding(came, body_since=came, brought=brought, caller=caller, stage=RequestStage.BODY)


@pytest.mark.parametrize(
    ("files", "most"), [(256, 160), (1024, 768), (20_000, MOST_CONNECTIONS), (2_000, 1_500), (64, 16), (3, 1)]
)
def test_some_files_stay_spare(files: int, most: int) -> None:
    assert places(files) == most < files


def test_more_files_never_give_fewer_places() -> None:
    found = [places(files) for files in range(1, 40_000)]
    assert found == sorted(found) and all(
        files - most >= min(96, files * 3 // 4) for files, most in enumerate(found, 1) if files > 2
    )


def test_the_stillest_body_gives_way_whatever_it_dribbles() -> None:
    """A byte a second was never the stillest, by the time of the last byte."""
    honest = body(came=97.0, brought=300)
    dribbled = [body(came=60.0 + number / 10, brought=40) for number in range(50)]
    assert give_way([honest, *dribbled], 100.0, 50) == dribbled
    assert honest not in give_way([honest, *dribbled], 100.0, 50)


def test_of_those_that_brought_nothing_the_oldest_gives_way() -> None:
    silent = [ConnectionStanding(came=float(number)) for number in range(10)]
    assert give_way(reversed(silent), 10.0, 3) == silent[:3]


def test_the_newest_has_its_chance_first() -> None:
    newest, posts = ConnectionStanding(came=10.0), [body(came=9.0 + number / 100, brought=100) for number in range(100)]
    assert newest not in give_way([*posts, newest], 10.0, 100)


@pytest.mark.parametrize("others", [RequestStage.ASKING, RequestStage.BODY, RequestStage.READING])
def test_a_request_that_is_worked_on_stays(others: RequestStage) -> None:
    worked_on, other = (
        ConnectionStanding(0.0, stage=RequestStage.WORK),
        ConnectionStanding(99.0, reading_since=99.5, stage=others),
    )
    assert give_way([worked_on, other], 100.0, 5) == [other]
    assert give_way([worked_on], 100.0, 5) == []


def test_readers_give_way_after_those_who_ask_and_the_slowest_first() -> None:
    readers = [
        ConnectionStanding(0.0, reading_since=1.0, read=10_000 * number, stage=RequestStage.READING)
        for number in range(5)
    ]
    asking = ConnectionStanding(99.0)
    assert give_way([*readers, asking], 100.0, 3) == [asking]
    assert give_way(readers, 100.0, 2) == readers[:2] == slowest_readers(readers, 100.0, 2)


def test_a_proven_caller_gives_way_to_no_stranger() -> None:
    caller, strangers = body(0.0, caller=b"k"), [body(99.9, 10**6) for _ in range(5)]
    assert caller not in give_way([caller, *strangers], 100.0, 6)
    assert give_way([caller], 100.0, 1) == []


def test_a_proven_caller_has_places_of_its_own_and_no_more() -> None:
    limits = Limits(connections=1000)
    mine = [body(float(number), caller=b"mine") for number in range(PLACES_OF_A_CALLER)]
    others = [body(0.0, caller=b"others") for _ in range(5)]
    strangers = [body(0.0) for _ in range(500)]
    assert callers_give_way([*mine, *others, *strangers], 100.0, mine[-1], limits) == []
    newest = body(99.0, caller=b"mine")
    assert callers_give_way([*mine, *others, *strangers, newest], 100.0, newest, limits) == [mine[0]]
    for standing in mine:
        standing.stage = RequestStage.WORK
    assert callers_give_way([*mine, newest], 100.0, newest, limits) == [newest]


def test_proven_callers_together_leave_strangers_half() -> None:
    proven = [body(float(number), caller=b"%d" % number) for number in range(51)]
    assert callers_give_way(proven[:50], 100.0, proven[49], LIMITS) == []
    assert callers_give_way(proven, 100.0, proven[50], LIMITS) == [proven[0]]


def test_of_too_many_bytes_the_stillest_body_of_its_kind_goes() -> None:
    still, fast, newest = body(0.0, 500), body(99.0, 5_000), body(99.5, 100)
    caller, nothing = body(0.0, 1, b"k"), body(0.0)
    assert bodies_give_way([caller, nothing, fast, still, newest], 100.0, newest) is still
    assert bodies_give_way([caller, nothing, newest], 100.0, newest) is newest, "no other brought anything"


def test_each_stage_has_its_time() -> None:
    assert not overdue(ConnectionStanding(0.0), 60.0, LIMITS) and overdue(ConnectionStanding(0.0), 60.1, LIMITS)
    enough = body(0.0, 10**6)
    assert not overdue(enough, 60.0, LIMITS) and overdue(enough, 60.1, LIMITS)
    for stage in (RequestStage.WORK, RequestStage.READING):
        assert not overdue(ConnectionStanding(0.0, stage=stage), 600.0, LIMITS) and overdue(
            ConnectionStanding(0.0, stage=stage), 600.1, LIMITS
        )


def test_a_body_that_began_has_a_least_rate() -> None:
    """Judged since the body began, not since the connection came."""
    late = ConnectionStanding(0.0, body_since=40.0, brought=0, stage=RequestStage.BODY)
    assert not overdue(late, 40.0 + GRACE, LIMITS) and overdue(late, 40.1 + GRACE, LIMITS)
    late.brought = 10 * LEAST_RATE
    assert not overdue(late, 50.0 + GRACE - 1, LIMITS) and overdue(late, 50.1 + GRACE, Limits(100, body_seconds=inf))


def test_a_page_for_one_person_waits_for_as_long_as_it_takes() -> None:
    limits = Limits(64, inf, head_seconds=inf, body_seconds=inf, longest=inf, least_rate=0)
    assert not any(
        overdue(ConnectionStanding(0.0, body_since=0.0, stage=stage), 10**6, limits) for stage in RequestStage
    )


@pytest.mark.parametrize(
    ("connections", "stall", "brought", "theirs"), every(5, [64, 192], [3.0], [0, 360, 1500], [0, 1, 360])
)
def test_what_a_stranger_must_spend_to_displace_a_stalled_post(
    connections: int, stall: float, brought: int, theirs: int
) -> None:
    """The bound that the rules state, by playing it: strangers who renew what is closed, at a rate just below the bound
    and above."""
    rate = connections * (CREDIT + brought) / (CREDIT + theirs) / stall
    assert stays(connections, stall, brought, theirs, 0.9 * rate * (1 - 1 / AT_ONCE))
    assert not stays(connections, stall, brought, theirs, 1.3 * rate)


def stays(connections: int, stall: float, brought: int, theirs: int, rate: float) -> bool:
    """True if the post keeps its place while strangers come at `rate` a second, each bringing `theirs` bytes at once.
    The door has been full of theirs for as long as they last."""
    limits = Limits(connections)
    post = body(100.0, brought)
    held = [body(100.0 - (connections - number) / rate, theirs) for number in range(connections - 1)] + [post]
    for number in range(int(stall * rate)):
        now = 100.0 + number / rate
        if len(held) >= connections:
            leaving = set(give_way(held, now, limits.at_once))
            if post in leaving:
                return False
            held = [standing for standing in held if standing not in leaving]
        held.append(body(now, theirs))
    return True
