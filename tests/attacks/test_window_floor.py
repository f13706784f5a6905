"""A window of seconds, in which any pause of a peer's machine decides whether its packet comes, is refused at
consent."""

from __future__ import annotations

import pytest
from attrs import evolve

from anon.errors import InvalidValue, Malformed, Refused
from anon.study.manifest import Manifest
from anon.wire.onion_address import onion_host
from peer.rules.advice import Limit, NextStep
from peer.rules.consent import Policy, decide, explain, objections
from peer.rules.durations import seconds_of, text_of
from peer.rules.ledger import Ledger
from tests.support.clock import START
from tests.support.fake_aggregator import DECLARED, FakeAggregator

ONION = f"{onion_host(bytes(32))}:80"


def study(collect: str, address: str) -> Manifest:
    return evolve(
        FakeAggregator.with_study(DECLARED.replace('collect = "1h"', f'collect = "{collect}"')).manifest,
        address=address,
    )


@pytest.mark.parametrize("collect", ["4s", "30s", "599s"])
def test_an_onion_study_with_a_window_below_ten_minutes_is_refused_with_what_to_do(collect: str) -> None:
    manifest, policy = study(collect, ONION), Policy(minimum_cohort=3)
    with pytest.raises(Refused, match=f"a window lasts {collect}, less than the 10m .*allow shorter ones"):
        decide(manifest, policy, Ledger(policy.lifetime), manifest.epsilon, START)
    [advice] = objections(manifest, policy, Ledger(policy.lifetime), START)
    assert advice.next_step == NextStep(Limit.MINIMUM_WINDOW, collect)
    assert not objections(manifest, evolve(policy, minimum_window=0), Ledger(policy.lifetime), START)
    assert not objections(manifest, evolve(policy, minimum_window=4), Ledger(policy.lifetime), START)


@pytest.mark.parametrize(
    ("collect", "address"), [("10m", ONION), ("1h", ONION), ("4s", ""), ("4s", "127.0.0.1:80"), ("4s", "[::1]:80")]
)
def test_ten_minutes_pass_and_so_does_anything_that_is_served_on_this_machine_alone(collect: str, address: str) -> None:
    policy = Policy(minimum_cohort=3)
    named = address if address.endswith(".onion:80") else ""
    assert not objections(study(collect, named), policy, Ledger(policy.lifetime), START, address)


@pytest.mark.parametrize(("margin", "left"), [(299, "2s"), (250, "100s")])
def test_margins_that_leave_seconds_of_a_long_window_are_refused_too(margin: int, left: str) -> None:
    """Packets leave between the margins alone: ten minutes with a margin of 299 s are a window of two seconds."""
    manifest, policy = study("10m", ONION), Policy(minimum_cohort=3)
    squeezed = evolve(manifest, timetable=evolve(manifest.timetable, margin=margin))
    with pytest.raises(Refused, match=f"leaves {left} to send in, less than half of the 10m you demand"):
        decide(squeezed, policy, Ledger(policy.lifetime), manifest.epsilon, START)
    assert not objections(squeezed, policy, Ledger(policy.lifetime), START, "127.0.0.1:80")
    assert not objections(squeezed, evolve(policy, minimum_window=0), Ledger(policy.lifetime), START)
    assert any(
        said.startswith("Packets leave within") for said in explain(squeezed, policy, Ledger(1), START).statements
    )
    halved = evolve(manifest, timetable=evolve(manifest.timetable, margin=150))
    assert not objections(halved, policy, Ledger(policy.lifetime), START)


@pytest.mark.parametrize("margin", [300, 10**6])
def test_margins_that_leave_nothing_of_a_window_are_no_manifest(margin: int) -> None:
    manifest = study("10m", ONION)
    with pytest.raises(InvalidValue, match="a margin of less than half of the shortest window of 600 s"):
        evolve(manifest, timetable=evolve(manifest.timetable, margin=margin))


def test_what_counts_is_where_the_peer_speaks_to_and_not_what_the_manifest_names() -> None:
    """Studies name their onion address also where they are tried on this machine; a name of a host is not this
    machine."""
    policy = Policy(minimum_cohort=3)
    assert not objections(study("4s", ONION), policy, Ledger(policy.lifetime), START, "127.0.0.1:80")
    for address in (ONION, "localhost:80", "10.0.0.1:80", "127.0.0.1:@example.org"):
        assert objections(study("4s", ONION), policy, Ledger(policy.lifetime), START, address)
        assert objections(study("4s", ""), policy, Ledger(policy.lifetime), START, address)


def test_lengths_of_time_are_read_and_written_alike() -> None:
    assert [seconds_of(text) for text in ("0", "0s", "30s", "10m", "2h", "1d")] == [0, 0, 30, 600, 7200, 86400]
    assert [text_of(seconds) for seconds in (0, 30, 90, 600, 5400, 7200, 86400)] == [
        "0", "30s", "90s", "10m", "90m", "2h", "1d",
    ]
    for text in ("", "10", "-1m", "1.5h", "ten", "٣m"):
        with pytest.raises(Malformed, match="such as 10m"):
            seconds_of(text)
