"""Students train on each other's data: three people, three aggregators, six memberships, one budget each."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.errors import Refused
from anon.ldp import nano
from anon.transparency.equivocation import parse_evidence
from anon.transparency.fingerprint import head_prints
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.run.equivocations import kept, seen_chain
from tests.support.course import LIFETIME, Person, course, live_on

pytestmark = pytest.mark.slow

NAMES = ("ada", "grace", "emmy")


async def everybody_joins(people: list[Person]) -> None:
    """Each takes part in the two others' studies."""
    for host in people:
        guests = [one for one in people if one is not host]
        for guest, invite in zip(guests, await host.invites(2), strict=True):
            await guest.peer.join(invite, host.manifest.epsilon)


def last_end(people: list[Person]) -> float:
    return max(one.manifest.timetable.ends for one in people) + 8 * 86400.0


async def test_three_people_are_peers_and_aggregators_of_each_other(tmp_path: Path) -> None:
    async with course(tmp_path, *NAMES) as (clock, people):
        await everybody_joins(people)
        await live_on(clock, people, last_end(people))
        for one in people:
            statuses = one.peer.status()
            assert [(s.state, [slot.status for slot in s.slots]) for s in statuses] == [
                (State.FINISHED, [Status.INCLUDED])
            ] * 2
            (own,) = await one.aggregator.status()
            assert (str(own.phase), own.enrolled.number, own.accepted.number) == ("published", 2, 2)
            _one_budget_over_all_aggregators(one, people)
            _one_story(one, people)
        assert len({one.aggregator.home.public_key for one in people}) == 3


def _one_budget_over_all_aggregators(one: Person, people: list[Person]) -> None:
    ledger = one.peer.budget()
    others = {other.aggregator.home.public_key: other.manifest for other in people if other is not one}
    assert {entry.aggregator: entry.spent for entry in ledger.entries} == {
        key: manifest.epsilon for key, manifest in others.items()
    }
    assert ledger.available == nano(LIFETIME) - sum(manifest.epsilon for manifest in others.values())


def _one_story(one: Person, people: list[Person]) -> None:
    """The heads that a peer was told have the fingerprints that the aggregator publishes."""
    for other in people:
        if other is not one:
            live = other.aggregator.study(other.manifest.study_id)
            heard = head_prints(seen_chain(one.peer.store, live.study).chain)
            assert heard == head_prints(live.chain)[: len(heard)]
            assert len(heard) >= 4


async def test_the_lifetime_budget_is_one_over_all_aggregators(tmp_path: Path) -> None:
    async with course(tmp_path, *NAMES) as (_clock, people):
        await everybody_joins(people)
        for one in people:
            (own,) = await one.invites(1)
            with pytest.raises(Refused, match="budget"):
                await one.peer.join(own, one.manifest.epsilon)
            assert len(one.peer.status()) == 2


async def test_a_hostile_aggregator_stops_only_its_own_study(tmp_path: Path) -> None:
    async with course(tmp_path, *NAMES) as (clock, people):
        await everybody_joins(people)
        hostile = people[-1]
        table = hostile.manifest.timetable
        await live_on(clock, people, table.settled - 1)
        _all_checked(people)
        hostile.tell_another_story()
        await live_on(clock, people, last_end(people))
        for one in people:
            states = {status.study: status for status in one.peer.status()}
            for study, status in states.items():
                if study == hostile.manifest.study_id:
                    assert (status.state, [slot.attempts for slot in status.slots]) == (State.STOPPED, [0])
                else:
                    assert status.state is State.FINISHED
            proofs = [parse_evidence(proof.to_bytes()) for proof in kept(one.peer.store)]
            expected = [] if one is hostile else [(hostile.manifest.study_id, hostile.aggregator.home.public_key)]
            assert [(proof.study, proof.key) for proof in proofs] == expected


def _all_checked(people: list[Person]) -> None:
    assert {status.state for one in people for status in one.peer.status()} == {State.CHECKED}
