"""Cover traffic in the study file and the manifest, and that packets lie among their dummies anywhere alike."""

from __future__ import annotations

import hashlib
from math import sqrt

import pytest
from attrs import evolve

from anon.credential import generate_secret_key, public_key
from anon.crypto.sealing.opening import Opener
from anon.errors import InvalidValue, Malformed
from anon.protocols.resolve import StudyKeys, resolve
from anon.study import Cover
from anon.study.manifest import Manifest
from anon.wire.cbor import decode, encode
from peer.rules.schedule import draw_send_time
from peer.run.departures import DepartureTimes
from peer.run.plan import packets_in
from tests.support.protocols import parse_manifest, parse_proposal
from tests.support.world import study_text

pytestmark = pytest.mark.usefixtures("answered_at_once")


def _manifest(design: str, connections: int) -> Manifest:
    issuer = bytes(public_key(generate_secret_key(lambda count: bytes(range(count)))))
    sealing = Opener(bytes(range(32))).public_key
    return resolve(
        parse_proposal(study_text(design, connections=connections)),
        StudyKeys(bytes(32), sealing, issuer, bytes(32)),
        1000,
    )


@pytest.mark.parametrize(("design", "least"), [("cuts", 1), ("quantile", 1), ("median", 2)])
def test_connections_are_at_least_the_packets_that_a_peer_can_have_in_a_window(design: str, least: int) -> None:
    assert _manifest(design, least).cover.connections == least
    if least > 1:
        with pytest.raises(Malformed, match=f"cover.connections: expected at least {least}"):
            _manifest(design, least - 1)
        with pytest.raises(InvalidValue, match=f"at least {least}"):
            evolve(_manifest(design, least), cover=Cover(least - 1))


@pytest.mark.parametrize("wrong", ["-1", "65", "1.5", '"many"', "true"])
def test_other_numbers_of_connections_are_refused_by_key(wrong: str) -> None:
    text = study_text("cuts", connections=3).replace("connections = 3", f"connections = {wrong}")
    with pytest.raises(Malformed, match=r"cover\.connections"):
        parse_proposal(text)


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(Malformed, match=r"cover\.dummies: unknown key"):
        parse_proposal(study_text("cuts", connections=3) + "dummies = 2\n")


def test_none_has_one_spelling_and_some_is_part_of_the_id() -> None:
    plain, some = _manifest("cuts", 0), _manifest("cuts", 3)
    assert "cover" not in decode(plain.to_bytes(), "manifest")
    assert decode(some.to_bytes(), "manifest")["cover"] == {"connections": 3}
    assert parse_manifest(plain.to_bytes()) == plain
    assert parse_manifest(some.to_bytes()) == some
    assert evolve(some, cover=Cover(4)).study_id != some.study_id
    with pytest.raises(Malformed, match="one canonical spelling"):
        parse_manifest(encode({**decode(plain.to_bytes(), "manifest"), "cover": {"connections": 0}}))


def test_packets_in_a_window_are_counted_by_the_draw() -> None:
    manifest = _manifest("median", 4)
    draws = [slot.rows[0].survey for slot in manifest.slots]
    assert sum(packets_in(manifest, draws, window) for window in manifest.windows) == manifest.packets


@pytest.mark.slow
def test_a_packet_lies_among_its_dummies_anywhere_alike() -> None:
    """Its rank among the window's connections is uniform, and each dummy's time: chi-square and Kolmogorov-Smirnov at
    level 0.001 each, fixed seed."""
    manifest, rounds, stream = _manifest("cuts", 5), 2000, hashlib.shake_256(b"cover").digest(8 * 5 * 2000)
    (window,), at = manifest.windows, iter(range(0, len(stream), 8))

    def seeded(count: int) -> bytes:
        start = next(at)
        return stream[start : start + count]

    departures, margin = DepartureTimes(manifest, 0.0, 0.0, seeded), manifest.timetable.margin
    draws = [manifest.surveys[0].survey]
    ranks, positions = [0] * 5, list[float]()
    for _ in range(rounds):
        real = draw_send_time(window, margin, 0.0, seeded)
        times = [one.send_at for one in departures.cover(window, draws)]
        assert real is not None
        assert len(times) == 4
        ranks[sum(one < real for one in times)] += 1
        positions += [(one - window.opens - margin) / (window.closes - window.opens - 2 * margin) for one in times]
    chi_square = sum((count - rounds / 5) ** 2 / (rounds / 5) for count in ranks)
    assert chi_square < 18.47  # 4 degrees of freedom
    positions.sort()
    worst = max(abs(place / len(positions) - one) for place, one in enumerate(positions, 1))
    assert worst < 1.95 / sqrt(len(positions))
