"""A protocol without a model, of three rounds that rest on each other: a median by halving."""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from collections.abc import Mapping
from fractions import Fraction
from math import log
from pathlib import Path

import pytest
from attrs import evolve
from jsonschema import Draft202012Validator

from aggregator.audit import audit, audit_documents
from aggregator.audit.exporting import export_study
from anon.errors import Malformed
from anon.ldp import SCALE
from anon.protocols.categories import Value
from anon.protocols.contract import DocumentArrived, Record
from anon.protocols.models.rows import PublishedRows
from anon.protocols.registry import check_study, protocol_of
from anon.study.schema import study_schema
from anon.transparency.documents import encode_chain, sign_head
from anon.wire.cbor import encode
from examples.testing import all_contents
from peer.data.importing import import_file
from peer.protocols.contract import part_of
from peer.rules.consent import Policy, explain
from peer.rules.ledger import Ledger
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from tests.support import halving
from tests.support.clock import START
from tests.support.course import course, live_on
from tests.support.fake_aggregator import FakeAggregator
from tests.support.protocols import with_toy
from tests.support.world import FakePeer, in_memory, published, sealed

STUDY = """
version = 1
title = "How old are we"
purpose = "To find the median age."
contact = "nobody@example.org"
[tables]
person = ["age", "cups", "tired"]
[label]
name = "tired"
description = "You are tired."
query = "SELECT tired FROM person"
positive = [1]
negative = [0]
missing = "negative"
[[features]]
name = "age"
kind = "numeric"
description = "Your age."
query = "SELECT age FROM person"
missing = 0
range = [0, 80]
cuts = [10, 20, 30, 40, 50, 60, 70]
[design]
kind = "halving"
epsilon = 4.0
[schedule]
enrol = "60m"
settle = "20m"
collect = "60m"
[cohort]
minimum = 2
maximum = 50
admission = "invite"
"""
PROTOCOLS = with_toy(halving.PROTOCOL)
HOSTILE: list[Value] = [None, "", "x" * 10_000, float("nan"), float("inf"), -1e308, 1e308, 10**400, True, 12, 79.5]  # type: ignore[list-item]


def manifest_of(text: str = STUDY):
    return FakeAggregator.with_study(text, protocols=PROTOCOLS).manifest


def halves(manifest, *yes: int) -> list[DocumentArrived]:
    return [
        DocumentArrived("half", number, halving.document(manifest, number, 10, count))
        for number, count in enumerate(yes)
    ]


@pytest.mark.slow
async def test_a_whole_study_in_memory_is_audited(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", STUDY, protocols=PROTOCOLS) as running:
        live = running.live
        peers = await running.enrol(8)
        await running.close_enrolment(peers)
        for number, one in enumerate(live.rounds):
            await running.go_to(one.window.opens)
            documents = [DocumentArrived(*place, body) for place, body in (await live.round_documents()).items()]
            for place, peer in enumerate(peers):
                assert await live.submit(sealed(live, _packet(peer, number, 30.0 + 3 * place, documents))) == "accepted"
            await running.go_to(one.window.closes)
        assert live.state == "published"
        assert [one.head.kind for one in live.chain] == [
            "manifest", "roster", "seed", "credentials", *["half"] * 3, *["transcript"] * 3, "seed", "rows", "report",
        ]
        bodies = await published(live)
        rows = PROTOCOLS.result(bodies["rows", 0])
        assert isinstance(rows, PublishedRows) and rows.columns == ("feature", "above", "up to")
        assert len(bodies["rows", 0]) <= halving.Shared().results(live.manifest)["rows", 0]
        assert b"The median" in bodies["report", 0]
        chain, numbered = (
            encode_chain(live.chain),
            {one.head.number: await live.body_of(one.head) for one in live.chain},
        )
        result = audit_documents(chain, numbered, contents=await all_contents(live), protocols=PROTOCOLS)
        assert result.ok and result.packets == 24, result.lines()
        await export_study(live, tmp_path / "out")
        assert audit(tmp_path / "out", protocols=PROTOCOLS).lines() == result.lines()
        assert (tmp_path / "out/rows.json").read_bytes() == bodies["rows", 0]
        at = {(one.head.kind, one.head.part): one.head.number for one in live.chain}
        forged = json.loads(bodies["rows", 0])
        forged["rows"][0][1] = "70" if forged["rows"][0][1] != "70" else "60"
        altered = {
            ("rows", 0): json.dumps(forged).encode(),
            ("half", 1): halving.document(live.manifest, 1, 8, 8 * (2 * _yes(bodies["half", 1]) <= 8)),
        }
        for place, body in altered.items():
            lied = audit_documents(
                chain, numbered | {at[place]: body}, contents=await all_contents(live), protocols=PROTOCOLS
            )
            assert not lied.ok, place
            signed = _signed_again(live, numbered | {at[place]: body})
            found = audit_documents(
                signed, numbered | {at[place]: body}, contents=await all_contents(live), protocols=PROTOCOLS
            ).findings
            assert f"{place[0]} {place[1]}" in {one.document for one in found}, found


def _signed_again(live, bodies: Mapping[int, bytes]) -> bytes:
    """The chain of an aggregator that lied from the start: every signature is right, and only counting again tells."""
    chain: list = []
    for one in live.chain:
        chain.append(
            sign_head(
                live.tools.home.signing_key, live.study, chain, one.head.kind, one.head.part, bodies[one.head.number]
            )
        )
    return encode_chain(chain)


def _yes(body: bytes) -> int:
    from anon.wire.cbor import decode

    return decode(body, "halves")[3]


def _packet(peer: FakePeer, slot: int, age: float, documents: list[DocumentArrived]):
    part, manifest = part_of(peer.manifest), peer.manifest
    (answer,) = part.answers(manifest, Record({"age": age}, None), [(slot, peer.drawn(slot))], documents)
    report = part.perturb(manifest.survey(answer.survey), answer.category, os.urandom)
    return peer.packet(slot, answer.survey, bytes(report))


@pytest.mark.slow
async def test_a_whole_study_over_loopback(tmp_path: Path) -> None:
    async with course(tmp_path, "ada", "grace", "emmy", protocols=PROTOCOLS) as (clock, people):
        host, *guests = people
        manifest = await host.aggregator.create_study(PROTOCOLS.proposal(STUDY))
        invites = await host.aggregator.create_invites(manifest.study_id, 2, host.address)
        for guest, invite in zip(guests, invites, strict=True):
            sheet = await guest.peer.look(invite)
            assert sheet.epsilon == manifest.epsilon and sheet.packets == 3 and not sheet.objections
            assert "asked three times about “age”" in sheet.summary
            await guest.peer.join(invite, sheet.epsilon)
        await live_on(clock, people, manifest.timetable.ends + 8 * 86400.0)
        for guest in guests:
            (status,) = [one for one in guest.peer.status() if one.study == manifest.study_id]
            assert (status.state, [slot.status for slot in status.slots]) == (State.FINISHED, [Status.INCLUDED] * 3)
            assert [(one.measure, one.spent) for one in guest.peer.budget().entries] == [
                ("pure-local", manifest.epsilon)
            ]
        assert ("rows", 0) in await published(host.aggregator.study(manifest.study_id))


@pytest.mark.slow
async def test_no_data_change_what_real_peers_send_or_spend(tmp_path: Path) -> None:
    """No data at all, a text, a number far outside, many columns of nothing, and an ordinary age."""
    tables = [
        None,
        "age,cups,tired\nmany,,\n",
        "age,cups,tired\n1e300,x,1\n",
        "age,cups,tired\n,,\n",
        "other\n1\n",
        "age,cups,tired\n33,a,0\n",
    ]
    async with in_memory(tmp_path / "home", STUDY, protocols=PROTOCOLS) as world:
        await world.settle_in(len(tables))
        for number, text in enumerate(tables):
            if text is not None:
                (table := tmp_path / f"{number}" / "person.csv").parent.mkdir()
                table.write_text(text, encoding="utf-8")
                import_file(world._home(number).data_path, table, None, "replace", lambda _rows: None)
        await world.go_on()
        sent = [[len(one.body or b"") for one in route.packets()] for route in world.routes]
        assert len(sent) == len(tables) and {tuple(lengths) for lengths in sent} == {(sent[0][0],) * 3}
        for app in world.peers:
            (status,) = app.status()
            assert (status.state, status.spent) == (State.FINISHED, world.live.manifest.epsilon)
            assert [slot.status for slot in status.slots] == [Status.INCLUDED] * 3
        assert ("rows", 0) in await published(world.live)


def test_the_study_file_fits_the_schema_and_consent_describes_it() -> None:
    schema = study_schema(PROTOCOLS.designs)
    Draft202012Validator.check_schema(schema)
    faults = Draft202012Validator(schema).iter_errors
    assert [fault.message for fault in faults(tomllib.loads(STUDY))] == []
    assert list(faults(tomllib.loads(STUDY.replace("epsilon = 4.0", "epsilon = 40.0"))))
    policy = Policy(minimum_cohort=2)
    sheet = explain(manifest_of(), policy, Ledger(policy.lifetime), START)
    assert (
        sheet.objections == ()
        and sheet.odds
        and [kind.surveys for kind in protocol_of(sheet.manifest).packet_kinds(sheet.manifest)] == [3]
    )


def test_the_loss_over_all_outputs_is_at_most_what_the_manifest_declares() -> None:
    manifest = manifest_of()
    chances = [{True: Fraction(one.p, SCALE), False: Fraction(one.q, SCALE)} for one in manifest.surveys]

    def odds(own: int, said: tuple[int, ...]) -> Fraction:
        """The next question follows from documents: the worst are those that the outputs of all others make."""
        chance = Fraction(1)
        for number, says in enumerate(said):
            first, many = halving.left([bool(one) for one in said[:number]])
            chance *= chances[number][int(own >= first + many // 2) == says]
        return chance

    worst = max(
        odds(a, said) / odds(b, said)
        for said in itertools.product((0, 1), repeat=3)
        for a in range(8)
        for b in range(8)
    )
    assert log(worst) <= manifest.epsilon / 1e9 <= 4.0 + 1e-8
    assert all(
        abs(sum(odds(a, said) for said in itertools.product((0, 1), repeat=3)) - 1) < Fraction(1, 2**60)
        for a in range(8)
    )
    assert 0 < manifest.epsilon_per_attribute <= manifest.epsilon


def test_no_record_changes_number_length_or_charge_of_packets() -> None:
    manifest = manifest_of()
    part, slots = part_of(manifest), [(number, number) for number in range(3)]
    records: list[Mapping[str, Value]] = [{}, *({"age": value} for value in HOSTILE)]
    for values in records:
        for label in HOSTILE:
            answers = part.answers(manifest, Record(values, label), slots, halves(manifest, 8, 2))
            assert [(one.slot, one.survey) for one in answers] == slots
            sent = [part.perturb(manifest.survey(one.survey), one.category, os.urandom) for one in answers]
            assert {len(bytes(report)) for report in sent} == {manifest.report_size}
            assert part.answers(manifest, Record(values, label), [], []) == ()
    assert {part.random_size(manifest, one) for one in manifest.surveys} == {manifest.survey(0).build().random_size}


@pytest.mark.parametrize(("age", "expected"), [(0, [0, 0, 1]), (41, [1, 0, 1]), (25, [0, 0, 1]), (10, [0, 0, 1])])
def test_each_question_follows_from_the_counts_before(age: float, expected: list[int]) -> None:
    """Bins 0..7; lower half, then upper half: bins 2 and 3 are left, and bin 3 is asked for."""
    manifest = manifest_of()
    answers = part_of(manifest).answers(
        manifest, Record({"age": age}, 0), [(n, n) for n in range(3)], halves(manifest, 2, 8)
    )
    own = next(n for n, top in enumerate(range(10, 81, 10)) if age <= top)
    assert [one.category.value for one in answers] == [int(own >= 4), int(own >= 2), int(own >= 3)]


@pytest.mark.parametrize(
    "fields",
    [
        lambda s: [s, 0],
        lambda s: [s, 0, 5, 6],
        lambda s: [s, 1, 5, 5],
        lambda s: [s, 0, "5", 5],
        lambda s: [s, 0, 5, 5, 5],
        lambda s: {},
        lambda s: [s, 0, 99, 5],
    ],
)
def test_a_count_that_cannot_be_stops_the_peer(fields) -> None:
    manifest = manifest_of()
    with pytest.raises(Malformed, match="nothing is sent"):
        part_of(manifest).check_documents(manifest, [DocumentArrived("half", 0, encode(fields(manifest.study_id)))])


def test_studies_that_cannot_be_are_refused() -> None:
    with pytest.raises(Malformed, match="7 cuts"):
        PROTOCOLS.proposal(STUDY.replace(", 70]", "]"))
    manifest = manifest_of()
    check_study(manifest)
    first, second, third = manifest.surveys
    for surveys in ((first, evolve(second, window=first.window), third), (evolve(first, kind="lower"), second, third)):
        with pytest.raises(Malformed, match="do not take part"):
            check_study(evolve(manifest, surveys=surveys))
    assert protocol_of(manifest).name == "halving"
