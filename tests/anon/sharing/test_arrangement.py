"""The arrangement of tellers and sums: one spelling, and nothing that would harm a member."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from attrs import evolve

from anon.errors import InvalidValue, Malformed
from anon.sharing.arrangement import (
    LONGEST_PROOF,
    Arrangement,
    Sum,
    TellerEntry,
    key_commitment,
    parse_arrangement,
    verification_key,
)
from anon.vdaf.circuits import ball, blocks
from anon.vdaf.flp import ProofSystem
from anon.wire.cbor import decode, encode
from anon.wire.packets import Occasion

ENTRIES = tuple(
    TellerEntry(
        f"teller {number}", f"127.0.0.1:900{number}", bytes([number]) * 32, bytes([number]) * 1216, bytes([number]) * 32
    )
    for number in range(5)
)
FIRST = Sum(0, 0, "blocks", (3, 2, 3), Fraction(400, 3))
ARRANGED = Arrangement(50, ENTRIES[:2], (FIRST, evolve(FIRST, round=1)))


def test_it_comes_back() -> None:
    circuit = ball(5, 4, 7)
    for one in (ARRANGED, Arrangement(2, ENTRIES[:4], (Sum(0, 3, "ball", circuit.parameters, Fraction(1)),))):
        assert parse_arrangement(one.to_bytes()) == one


@pytest.mark.parametrize("change", [
    {"tellers": ENTRIES[:1]}, {"tellers": ENTRIES}, {"tellers": (ENTRIES[0], ENTRIES[0])},
    {"tellers": (ENTRIES[0], evolve(ENTRIES[1], key=ENTRIES[0].key))},
    {"tellers": (ENTRIES[0], evolve(ENTRIES[1], commitment=ENTRIES[0].commitment))},
    {"tellers": (ENTRIES[0], evolve(ENTRIES[1], sealing_key=ENTRIES[0].sealing_key))},
    {"minimum": 1}, {"sums": ()}, {"sums": (FIRST, FIRST)}, {"sums": (evolve(FIRST, round=1), FIRST)},
    {"sums": (FIRST, Sum(0, 1, "blocks", (3, 2, 4), Fraction(1)))},
], ids=range(11))
def test_an_arrangement_that_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        evolve(ARRANGED, **change)


@pytest.mark.parametrize("change", [
    {"sigma_squared": Fraction(0)}, {"sigma_squared": Fraction(-1)}, {"sigma_squared": Fraction(2**64)},
    {"sigma_squared": Fraction(1, 2**64)}, {"round": -1}, {"round": 2**16}, {"slot": 256}, {"kind": "other"},
    {"parameters": ()}, {"parameters": (3,)}, {"parameters": (0, 2)}, {"parameters": (3, -2)},
    {"parameters": (3, 2**17)},
    {"parameters": (3, 2**63)}, {"kind": "ball"}, {"kind": "ball", "parameters": (1, 2**60, 2, 3)},
    {"kind": "ball", "parameters": (1, 4, 200, 3)},
    {"parameters": (2**40, 2)}, {"parameters": (1, 2**16)}, {"kind": "ball", "parameters": (2**40, 2, 2, 2)},
    {"kind": "ball", "parameters": (1, 1, 2**40, 1)}, {"kind": "ball", "parameters": (1, 1, 2**63, 1)},
], ids=range(22))
def test_a_sum_that_is_refused(change: dict[str, Any]) -> None:
    """No noise, a place that is none, a circuit that is none or too large to be computed."""
    with pytest.raises(InvalidValue):
        evolve(FIRST, **change)


@pytest.mark.parametrize(
    ("kind", "circuit"), [("blocks", blocks((2**16,))), ("ball", ball(2**16 - 8, 2, 3)), ("ball", ball(2, 64, 2**63))]
)
def test_the_longest_honest_proofs_are_well_within_the_bound(kind: str, circuit: Any) -> None:
    asked = evolve(FIRST, kind=kind, parameters=circuit.parameters)
    assert 2 * ProofSystem(asked.circuit).length < LONGEST_PROOF


@pytest.mark.parametrize("change", [
    {"name": ""}, {"name": "a\nb"}, {"name": "x" * 201}, {"address": ""}, {"key": bytes(31)},
    {"sealing_key": bytes(1215)},
    {"commitment": b""},
], ids=range(7))
def test_an_entry_that_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        evolve(ENTRIES[0], **change)


def spelled(*path: Any) -> bytes:
    """The arrangement's fields with one of them replaced: places, then the value."""
    plain = decode(ARRANGED.to_bytes())
    *places, value = path
    here = plain
    for place in places[:-1]:
        here = here[place]
    here[places[-1]] = value
    return encode(plain)


BAD = [
    b"", encode([]), encode([2, 50, [], []]), spelled(0, 1), spelled(1, "50"), spelled(2, 0, 0, b"name"),
    spelled(2, 0, 2, "key"),
    spelled(2, 0, []), spelled(3, 0, 3, [3, "2"]), spelled(3, 0, 3, [True, 2, 3]), spelled(3, 0, 5, 0),
    spelled(3, 0, 5, -3),
    spelled(3, 0, 4, 399), spelled(3, 0, 2, b"blocks"), ARRANGED.to_bytes() + b"\0",
]


@pytest.mark.parametrize("data", BAD, ids=range(len(BAD)))
def test_bytes_of_another_form_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse_arrangement(data)


def test_contexts_and_layouts_follow_from_it() -> None:
    first, second = (Occasion(bytes(32), number, 0) for number in (0, 1))
    assert ARRANGED.context(first) != ARRANGED.context(second)
    assert ARRANGED.layout(2).token == 864 and len(ARRANGED.layout(2).shares) == 2
    with pytest.raises(Malformed, match="no sum"):
        ARRANGED.sum_of(Occasion(bytes(32), 2, 0))


def test_the_verification_key_is_everybody_s() -> None:
    parts = [bytes([number]) * 32 for number in range(3)]
    keys = {
        verification_key(bytes(32), parts),
        verification_key(bytes(32), parts[::-1]),
        verification_key(b"s" * 32, parts),
    }
    assert len(keys) == 3 and {len(key) for key in keys} == {32}
    assert key_commitment(b"k" * 32, parts[0]) != key_commitment(b"l" * 32, parts[0])
