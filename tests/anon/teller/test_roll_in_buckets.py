"""A teller is handed all buckets of a large study's roster and credentials, and takes no others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from anon.credential import generate_secret_key
from anon.errors import Malformed, Refused
from anon.transparency import buckets
from anon.transparency.closing import Bodies
from anon.wire.cbor import decode, encode
from anon.wire.messages import encode_seed
from tests.support.tellers import MANIFEST, World, make_world

Change = Callable[[tuple[bytes, ...]], tuple[bytes, ...]]


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four members have buckets of one."""
    monkeypatch.setattr(buckets, "THRESHOLD", 4)
    monkeypatch.setattr(buckets, "MEAN", 1)


def begun(folder: Path, another: int = 46) -> World:
    """A study of which every teller knows that it serves it. `another`: no test elsewhere has one with these
    buckets."""
    world = make_world(folder, another=another)
    for teller in world.tellers:
        teller.countersign(world.study, world.arrangement.to_bytes(), MANIFEST)
    return world


def take(world: World, change: Change = lambda beside: beside) -> None:
    manifest, heads, bodies = world.closing()
    world.tellers[0].take_roll(world.study, manifest, heads, evolve(bodies, beside=change(bodies.beside)))


def test_all_buckets_are_checked_and_all_members_counted(several: None, tmp_path: Path) -> None:
    world = begun(tmp_path)
    members = len(world.aggregator.enrolments)
    assert len(world.closing()[2].beside) == 2 * (1 << buckets.bits_of(members)) > 2
    take(world)
    roll = world.journals[0].roll(world.study)
    assert roll is not None and roll.members == members


def shortened(beside: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """A member less, in the fullest bucket of the roster."""
    at = max(range(0, len(beside), 2), key=lambda one: len(beside[one]))
    *heading, entries = decode(beside[at])
    return (*beside[:at], encode([*heading, entries[1:]]), *beside[at + 1 :])


@pytest.mark.parametrize(
    "change",
    [lambda _: (), lambda beside: beside[:-2], lambda beside: beside[2:] + beside[:2], lambda beside: beside * 2,
     lambda beside: beside[:-1], shortened],
    ids=["none", "one less", "another order", "twice", "a half", "a member less"],
)  # fmt: skip
def test_other_buckets_than_the_signed_ones_are_refused(several: None, tmp_path: Path, change: Change) -> None:
    world = begun(tmp_path)
    with pytest.raises(Malformed, match="not those of the signed root"):
        take(world, change)
    take(world)


def test_a_bad_credential_in_any_bucket_is_refused(several: None, tmp_path: Path) -> None:
    world = begun(tmp_path)
    aggregator = world.aggregator
    good = aggregator.signatures(aggregator.bodies[1])
    forged = aggregator.signatures(aggregator.bodies[1], generate_secret_key(os.urandom))
    for place in range(len(good)):
        del aggregator.chain[2:], aggregator.bodies[2:]
        aggregator.publish("seed", encode_seed(world.study, aggregator.value))
        spoilt = [*good[:place], forged[place], *good[place + 1 :]]
        aggregator.publish_buckets(aggregator.credentials_by_bucket(spoilt))
        with pytest.raises(Refused, match="works for nobody"):
            take(world)


def test_a_number_of_members_that_is_a_lie_is_refused(several: None, tmp_path: Path) -> None:
    world = begun(tmp_path)
    aggregator = world.aggregator
    made = [aggregator.made[number] for number in (1, 3)]
    count = made[0].document.count + 1
    assert buckets.bits_of(count) == made[0].document.bits
    del aggregator.chain[1:], aggregator.bodies[1:]
    roster, credentials = (evolve(one, document=evolve(one.document, count=count)) for one in made)
    aggregator.publish_buckets(roster)
    aggregator.publish("seed", encode_seed(world.study, aggregator.value))
    issued = aggregator.credentials_by_bucket(aggregator.signatures(roster.document.to_bytes()))
    aggregator.publish_buckets(evolve(issued, document=evolve(issued.document, count=count)))
    assert credentials.document.count == count
    with pytest.raises(Malformed, match=f"signed for {count} members"):
        take(world)


def test_one_bucket_stands_in_its_document_and_none_beside_it(tmp_path: Path) -> None:
    world = begun(tmp_path, another=0)
    _manifest, _heads, bodies = world.closing()
    assert isinstance(bodies, Bodies) and bodies.beside == ()
    with pytest.raises(Malformed, match="not those of the signed root"):
        take(world, lambda _: (b"", b""))
    take(world)
