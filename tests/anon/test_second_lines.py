"""Faults that were planted in what both sides share and went unnoticed: one test for each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attrs import evolve

from anon.credential import commit, verification
from anon.errors import InvalidValue
from anon.ldp.epsilon import NANO, odds_moved
from anon.sharing.arrangement import key_commitment, verification_key
from anon.vdaf.circuits import Ball
from tests.support.tellers import make_world


def test_the_coefficients_of_a_batch_stand_on_all_that_was_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sender that knew them beforehand would make two bad tokens that cancel each other's errors."""
    world = make_world(tmp_path)
    packets = world.packets()
    shown: list[bytes] = []
    of = verification.coefficients_for

    def noted(label: bytes, count: int, seen: bytes, random_bytes: object) -> object:
        shown.append(seen)
        return of(label, count, seen, random_bytes)  # type: ignore[arg-type]

    monkeypatch.setattr(verification, "coefficients_for", noted)
    from anon.credential import PublicKey, Verifier, public_key

    member = world.members[0].credential
    verifier = Verifier(PublicKey(public_key(world.aggregator.issuer)), member.header, member.count)  # type: ignore[arg-type]
    items = [(one.token, one.occasion.tag_context(), one.presentation_header()) for one in packets]
    assert verifier.check_batch(items, os.urandom) == [one.tag for one in packets]
    assert shown and all(one.token in shown[-1] for one in packets)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_no_secret_is_made_of_fewer_random_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="32 random bytes"):
        commit(1, lambda _: bytes(size))


@pytest.mark.parametrize(
    ("epsilon", "factor"), [(NANO, "2.72"), (NANO // 2, "1.65"), (2 * NANO, "7.39"), (3 * NANO, "20.1")]
)
def test_a_factor_of_odds_is_rounded_up(epsilon: int, factor: str) -> None:
    assert f"factor of {factor}" in str(odds_moved(epsilon))


def test_a_vector_of_one_too_much_is_not_encoded_and_one_at_the_bound_is() -> None:
    ball = Ball(2, 3, 4, 3)
    assert len(ball.encode([-4, 0])) == ball.length
    with pytest.raises(InvalidValue, match="clip"):
        ball.encode([-4, 1])


def test_two_tellers_at_one_address_are_one(tmp_path: Path) -> None:
    arrangement = make_world(tmp_path).arrangement
    one, other = arrangement.tellers
    with pytest.raises(InvalidValue, match="different address"):
        evolve(arrangement, tellers=(one, evolve(other, address=one.address)))


def test_every_teller_s_part_and_key_is_in_what_it_is_bound_by() -> None:
    parts = [b"a" * 32, b"b" * 32]
    keys = {
        verification_key(study, made)
        for study in (bytes(32), b"s" * 32)
        for made in (parts, [parts[0], b"c" * 32], [b"c" * 32, parts[1]])
    }
    assert len(keys) == 6
    assert len({key_commitment(key, part) for key in parts for part in parts}) == 4
