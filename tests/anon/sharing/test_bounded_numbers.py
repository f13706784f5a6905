"""Numbers in what tellers and aggregators say of a study: each is one that the study can have, or is told."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from anon.errors import InvalidValue, Malformed, RejectedProof
from anon.protocols.sum.standing import arrangement_of
from anon.sharing import exchange
from anon.sharing.arrangement import MOST_MEMBERS, parse_arrangement
from anon.sharing.round_document import UnsummedRound, Why, parse_unsummed, read_round_sums
from anon.sharing.statements import ListSignature, disagreement_of, list_heading, parse_disagreement
from anon.study.features import MOST_IN_COHORT
from anon.transparency.transcript import parse_transcript
from anon.wire.cbor import encode
from anon.wire.messages import parse_abandoned
from anon.wire.packets import Occasion
from tests.support.sums import GRADIENT, manifest_of, signing_key

STUDY = bytes([7]) * 32
ARRANGED = arrangement_of(manifest_of(GRADIENT))
ROUNDS = len(ARRANGED.sums)
IMPOSSIBLE = [-(2**63), -1, ROUNDS, 2**16, 10**9, 2**63]


@pytest.mark.parametrize("number", IMPOSSIBLE)
def test_no_study_ends_in_a_round_that_it_does_not_have(number: int) -> None:
    with pytest.raises(Malformed, match="round"):
        parse_unsummed(ARRANGED, STUDY, encode([2, STUDY, number, "teller-away", b""]))
    last = UnsummedRound(STUDY, ROUNDS - 1, Why.AWAY)
    assert parse_unsummed(ARRANGED, STUDY, last.to_bytes()) == last


@pytest.mark.parametrize("number", [-1, 2**16, 10**9])
def test_no_end_in_such_a_round_can_be_built_either(number: int) -> None:
    with pytest.raises(InvalidValue, match="round below"):
        UnsummedRound(STUDY, number, Why.AWAY)


def test_two_lists_for_a_sum_that_the_study_does_not_have_prove_nothing() -> None:
    for place in (Occasion(STUDY, ROUNDS, 0), Occasion(STUDY, 0, 1), Occasion(STUDY, 2**16 - 1, 255)):
        said = [ListSignature(place, teller, bytes([teller]) * 32).sign(signing_key(teller)) for teller in (0, 1)]
        with pytest.raises(RejectedProof, match="a sum that the study does not have"):
            parse_disagreement(disagreement_of(*said, ARRANGED).to_bytes(), STUDY, ARRANGED)


@pytest.mark.parametrize("number", [-1, 2**8, 10**9])
def test_a_slot_is_one_that_a_packet_can_have(number: int) -> None:
    row = [number, b"list", [], []]
    with pytest.raises(Malformed, match="slot below"):
        read_round_sums(encode([2, STUDY, 0, [row]]), STUDY, 0)
    with pytest.raises(Malformed, match="slot below"):
        list_heading(encode([2, STUDY, 0, number, []]))


REPLIES: dict[str, tuple[Any, list[Any]]] = {
    "a fellow": (exchange.ask_key_shares(STUDY), [{-1: b"x"}, {4: b"x"}, {10**9: b"x"}, {2**63: b"x"}]),
    "a count": (exchange.ask_admit(Occasion(STUDY, 0, 0), []), [
        [b"v", {"malformed": number}] for number in (-1, 0, exchange.MOST_IN_A_BATCH + 1, 10**9)
    ]),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_number_in_a_tellers_reply_is_one_that_was_asked_for(name: str) -> None:
    asked, replies = REPLIES[name]
    for told in replies:
        with pytest.raises(Malformed, match="teller's reply"):
            asked.read(encode(told))


def test_the_fewest_members_of_a_sum_are_no_more_than_a_study_can_have() -> None:
    assert MOST_MEMBERS == MOST_IN_COHORT
    for number in (-1, 1, MOST_MEMBERS + 1, 10**9):
        plain = [2, number, [one.as_plain() for one in ARRANGED.tellers], [one.as_plain() for one in ARRANGED.sums]]
        with pytest.raises(InvalidValue, match="minimum"):
            parse_arrangement(encode(plain))
    assert evolve(ARRANGED, minimum=MOST_MEMBERS).minimum == MOST_MEMBERS


@pytest.mark.parametrize("number", [-1, 2**32, 2**63])
def test_an_abandoned_study_had_a_number_of_people(number: int) -> None:
    with pytest.raises(Malformed, match="impossible number"):
        parse_abandoned(encode([1, STUDY, number]), STUDY)


@pytest.mark.parametrize("number", [-1, 2**8, 10**9])
def test_a_transcript_is_of_a_slot_that_a_packet_can_have(number: int) -> None:
    with pytest.raises(Malformed, match="expected version, study, slot and packets"):
        parse_transcript(encode([1, STUDY, number, []]), STUDY)
