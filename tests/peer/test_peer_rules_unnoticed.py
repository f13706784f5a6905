"""Faults that were planted in the peer's pure rules once and went unnoticed: one test for each kind."""

from __future__ import annotations

from random import Random

import pytest
from attrs import evolve

from anon.credential import Credential
from anon.errors import Malformed, Refused
from anon.protocols.outgoing import CutVector, RawVector
from anon.protocols.sizes import most_documents
from anon.transparency.documents import Head, SignedHead
from anon.wire.cbor import decode, encode
from anon.wire.packets import SealedPacket
from peer import release as releasing
from peer.data.making.content import made
from peer.protocols.sum.part import SumPart
from peer.release import random_sizes
from peer.rules.checks import check_count, check_sizes, demand_length
from peer.rules.consent import Policy, objections
from peer.rules.distrust import Distrust
from peer.rules.ledger import Entry, Ledger
from peer.rules.lifecycle import LAST, TABLE, Effect, State
from peer.rules.packet_lifecycle import Status
from peer.rules.schedule import draw_enrolment_time, draw_fetch_time
from peer.rules.study_secrets import StudySecrets, Vault, fresh
from peer.run.departures import LEAST_LEFT, DepartureTimes
from peer.run.jobs import Answer, CheckBefore, CheckHeads, DueJob, Miss, RunnerMemory
from peer.run.packets.making import PacketInputs, taken_up, without_answers
from peer.run.plan import PlanInputs, places_in, planned, unanswered_checks, undecided, waiting
from peer.store.home import Settings
from peer.store.records import OutboxEntry
from tests.peer.test_peer_plan import COVERED, study_of
from tests.support.fake_aggregator import BINNED, DECLARED, FakeAggregator
from tests.support.sums import MOMENTS, manifest_of

A, B = b"a" * 32, b"b" * 32
COVER = FakeAggregator.with_study(DECLARED + COVERED)
PLAIN = FakeAggregator.with_study(DECLARED)


def lowest(size: int) -> bytes:
    return bytes(size)


def highest(size: int) -> bytes:
    return b"\xff" * size


# The budget


def test_no_amount_is_negative_and_a_charge_is_written_to_its_own_study() -> None:
    ledger = Ledger(10).reserve(Entry(A, "", b"", "", reserved=4)).reserve(Entry(B, "", b"", "", reserved=3))
    with pytest.raises(Refused, match="nothing is sent"):
        ledger.spend(A, -1)
    for amounts in ({"reserved": -1}, {"spent": -1}):
        with pytest.raises(ValueError, match="never negative"):
            Entry(A, "", b"", "", **amounts)
    spent = ledger.spend(A, 2)
    assert [(entry.study, entry.reserved, entry.spent) for entry in spent.entries] == [(A, 2, 2), (B, 3, 0)]


def test_every_study_that_has_sent_all_returns_the_rest() -> None:
    """Of a study that has sent all, the end has nothing left to return."""
    for (_state, _event), move in TABLE.items():
        if move.state in LAST | {State.SENT, State.LEAVING}:
            assert Effect.RETURN_REST in move.effects or _state is State.LEAVING, (_state, _event)


# Times


def test_enrolments_and_fetches_are_spread() -> None:
    table = PLAIN.manifest.timetable
    now = table.enrol_closes - 1000
    assert draw_enrolment_time(table, 100.0, now, lowest) == now
    assert now + 99 < draw_enrolment_time(table, 100.0, now, highest) < now + 101
    assert draw_fetch_time(0.0, 100.0, 0.0, lowest) == 5.0 and 59 < draw_fetch_time(0.0, 100.0, 0.0, highest) < 61


@pytest.mark.parametrize("behind", [0.0, 30.0])
def test_a_packet_waits_for_the_home_s_own_clock(behind: float) -> None:
    (window, *_), margin = PLAIN.manifest.windows, PLAIN.manifest.timetable.margin
    early = DepartureTimes(PLAIN.manifest, window.opens - 1.0, behind, lowest)
    assert early.time(window) == window.opens + margin + behind


def test_hardly_anything_left_of_a_window_is_not_drawn_from() -> None:
    (window, *_), margin = PLAIN.manifest.windows, PLAIN.manifest.timetable.margin
    end = window.closes - margin
    assert DepartureTimes(PLAIN.manifest, end - LEAST_LEFT / 2, 0.0, lowest).again(window) is None
    assert DepartureTimes(PLAIN.manifest, end - LEAST_LEFT * 2, 0.0, lowest).again(window) == end - LEAST_LEFT * 2


def test_cover_is_sealed_and_leaves_at_times_of_its_own() -> None:
    (window, *_), draws = COVER.manifest.windows, (0,)
    times = DepartureTimes(COVER.manifest, window.opens, 0.0, Random(1).randbytes)
    cover = times.cover(window, draws)
    assert places_in(COVER.manifest, window) == 5 and len(cover) == 4
    assert all(one.sealed is not None for one in cover) and len({one.send_at for one in cover}) == 4
    blanks = DepartureTimes(PLAIN.manifest, window.opens, 0.0, Random(1).randbytes).cover(window, ())
    assert [one.sealed for one in blanks] == [None]


# The plan


def queued(send_at: float, slot: int = 0, survey: int = 0) -> OutboxEntry:
    return OutboxEntry(slot, survey, 0, SealedPacket(b"x"), None, send_at, 0, Status.QUEUED, "")


def test_a_packet_s_look_comes_before_it_at_a_time_of_its_own() -> None:
    (window, *_), study = PLAIN.manifest.windows, study_of(PLAIN, (0,))
    send_at = float(window.opens + 600)
    check = CheckBefore(0, send_at, 0)
    inputs = PlanInputs([queued(send_at)], RunnerMemory(), float(window.opens), Settings(head_checks=1))
    (wish,) = [one for one in planned(study, inputs) if not isinstance(one, DueJob) and one.job == check]
    assert wish.draw(lowest) == send_at and wish.draw(highest) < send_at - 1.0


def test_silence_is_no_agreement() -> None:
    (window, *_) = PLAIN.manifest.windows
    look = CheckHeads(window, 0)
    memory = RunnerMemory().with_time(look, 1.0)
    assert unanswered_checks(memory, window) and not unanswered_checks(memory.with_done(look), window)


def test_a_decided_slot_is_not_decided_again_and_a_window_without_a_slot_is_filled() -> None:
    (window, *_) = PLAIN.manifest.windows
    study, packet = study_of(PLAIN, (0,)), queued(window.opens + 60.0)
    assert undecided(study, [], window) == [(0, 0)] and undecided(study, [packet], window) == []
    assert list(waiting(study_of(COVER, (0,)), [packet], float(window.opens))) == [window]


def test_a_study_that_a_restore_barred_answers_no_window() -> None:
    (window, *_) = PLAIN.manifest.windows
    inputs = PlanInputs([], RunnerMemory(), float(window.opens) - 60.0, Settings())
    jobs = {
        barred: {type(one.job) for one in planned(study_of(PLAIN, (0,), barred=barred), inputs)}
        for barred in (False, True)
    }
    assert Answer in jobs[False] and Miss not in jobs[False] and Miss in jobs[True] and Answer not in jobs[True]


# Documents and rosters


def test_documents_that_the_study_does_not_have_are_not_fetched() -> None:
    manifest = PLAIN.manifest
    head = Head(manifest.study_id, 1, "strange", 0, 1, bytes(32), bytes(32))
    with pytest.raises(Distrust, match="no such document"):
        demand_length(head, 0)
    signed = SignedHead(evolve(head, kind="manifest"), bytes(64))
    with pytest.raises(Distrust, match="at most"):
        check_sizes(manifest, [signed] * (most_documents(manifest) + 1), most_documents(manifest) + 1)


def test_a_roster_of_one_member_too_few_is_refused() -> None:
    check_count(PLAIN.manifest, 20, 20)
    with pytest.raises(Refused, match="nothing is sent"):
        check_count(PLAIN.manifest, 19, 20)


def test_a_policy_demands_others_and_bounds_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Malformed, match="cohort"):
        Policy(minimum_cohort=1)
    manifest, policy = PLAIN.manifest, Policy(minimum_cohort=2)
    assert objections(manifest, policy, Ledger(policy.lifetime), 0.0) == ()


# Secrets and packets


def secrets_of(seed: int) -> StudySecrets:
    return fresh([16, 16], "", Random(seed).randbytes)


def test_nothing_secret_is_shared_by_two_studies() -> None:
    one, other = secrets_of(1), secrets_of(2)
    for secrets in (one, other):
        parts = [secrets.signing_seed, secrets.contribution, *secrets.drawn]
        assert len(set(parts)) == len(parts) and not any(part == bytes(len(part)) for part in parts)
    assert one.contribution != other.contribution and one.records_seed != other.records_seed
    nyms = [*one.commitment.nym_secrets, *other.commitment.nym_secrets]
    assert len(set(nyms)) == len(nyms) == 4 and one.commitment.prover_blind != other.commitment.prover_blind
    assert one.decoys(b"members", 0, 16) != other.decoys(b"members", 0, 16)


def test_no_nonce_is_used_twice() -> None:
    vault = Vault(bytes(32), Random(1).randbytes)
    assert vault.close(b"secret") != vault.close(b"secret") and b"secret" not in vault.close(b"secret")


def inputs_of(aggregator: FakeAggregator) -> PacketInputs:
    credential = Credential(b"issuer", b"header", b"signature", b"base", b"blind", ())
    secrets = fresh(random_sizes(aggregator.manifest), "", Random(3).randbytes)
    return PacketInputs(aggregator.manifest, secrets, credential, b"seed", [(0, 0)])


def test_a_message_of_another_length_is_not_taken_up() -> None:
    """The missing answer is, with the random bytes that belong to it."""
    inputs = inputs_of(FakeAggregator.with_study(BINNED))
    begun, otherwise = inputs.begun(b""), without_answers(inputs)
    message = made(inputs.begun().told, inputs.manifest)
    longer = encode([[part + b"\0" for part in entry] for entry in decode(message, "made")])
    for offered, draws in ((message, begun.draws), (longer, otherwise.draws), (b"", otherwise.draws)):
        assert taken_up(inputs, offered, begun, otherwise)[1] is draws, offered


def test_the_missing_answer_made_before_shares_no_random_bytes_with_the_answer_that_equals_it() -> None:
    from peer.data.evaluate import missing

    inputs = inputs_of(FakeAggregator.with_study(BINNED))
    before, after = without_answers(inputs).draws[0], inputs.begun(missing(inputs.manifest)).draws[0]
    assert before(16) != after(16)


def test_a_vector_never_stands_where_an_answer_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor in a study whose protocol cuts none, whatever its survey says."""
    study, answered = manifest_of(MOMENTS), PLAIN.manifest.surveys[0]
    summed, credential, tag = study.surveys[0], Credential(b"", b"", b"", b"", b"", ()), bytes(48)
    monkeypatch.setattr(releasing, "pseudonym", lambda *_: tag)
    shares = SumPart().cut(study, summed, 0, RawVector([0] * summed.m), tag, Random(1).randbytes)
    vector = CutVector(0, 0, shares)
    assert releasing._protected(study, summed, vector, credential, lowest).public == shares.public  # type: ignore[union-attr]
    for manifest, survey in ((study, answered), (PLAIN.manifest, summed), (PLAIN.manifest, answered)):
        with pytest.raises(ValueError, match="no form in which"):
            releasing._protected(manifest, survey, vector, credential, lowest)
