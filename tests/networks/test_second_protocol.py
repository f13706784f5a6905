"""A protocol that no product file knows runs a whole study: consent, ledger, tokens, rounds, desk, report, audit."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from aggregator.audit import audit_documents
from aggregator.desk.metrics import exposition
from aggregator.desk.study_view import Estimates, facts_of
from anon.errors import Malformed, Refused
from anon.ldp import nano
from anon.protocols.charge import Charge, Measure, Unit
from anon.protocols.contract import DocumentArrived, Record
from anon.protocols.models.tables import demand_tables
from anon.protocols.registry import protocol_of
from anon.transparency.documents import encode_chain, sign_head
from anon.wire.cbor import encode
from examples.testing import all_contents
from peer.predict import predict_own
from peer.protocols.contract import part_of
from peer.rules.checks import check_sizes
from peer.rules.consent import Policy, explain
from peer.rules.distrust import Distrust
from peer.rules.ledger import Ledger
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from tests.support import noisy_count
from tests.support.clock import START
from tests.support.course import course, live_on
from tests.support.fake_aggregator import FakeAggregator
from tests.support.protocols import with_toy
from tests.support.world import FakePeer, in_memory, published, sealed

STUDY = """
version = 1
title = "Who is tired"
purpose = "To count."
contact = "nobody@example.org"
features = []
[tables]
person = ["age", "cups", "tired"]
[label]
name = "tired"
description = "You are tired."
query = "SELECT tired FROM person"
positive = [1]
negative = [0]
missing = "negative"
[design]
kind = "noisy-count"
epsilon = 2.0
[schedule]
enrol = "60m"
settle = "20m"
collect = "60m"
[cohort]
minimum = 2
maximum = 50
admission = "invite"
"""


PROTOCOLS = with_toy(noisy_count.PROTOCOL)
"""Held by these tests alone: no other sees it."""


@pytest.mark.slow
async def test_a_whole_study_in_memory(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", STUDY, protocols=PROTOCOLS) as running:
        live = running.live
        peers = await running.enrol(6)
        await running.close_enrolment(peers)
        states = [live.state]
        for number, one in enumerate(live.rounds):
            await running.go_to(one.window.opens)
            states.append(live.state)
            assert f'anonml_studies{{phase="{live.state}"}} 1' in exposition([await facts_of(live)])
            documents = [DocumentArrived(*place, body) for place, body in (await live.round_documents()).items()]
            for place, peer in enumerate(peers):
                assert await live.submit(sealed(live, _packet(peer, number, float(place < 4), documents))) == "accepted"
            await running.go_to(one.window.closes)
        assert [*states, live.state] == ["settling", "asking", "asking again", "published"]
        bodies = await published(live)
        assert [one.head.kind for one in live.chain] == [
            "manifest", "roster", "seed", "credentials", "count", "count", "transcript", "transcript", "seed", "model",
            "report",
        ]
        model = PROTOCOLS.model(bodies["model", 0].decode())
        assert model.study == live.study.hex() and b"The count" in bodies["report", 0]
        facts = await facts_of(live)
        assert facts.phase == "published" and [one.name for one in facts.stages][2:4] == ["asking", "asking again"]
        estimates = [
            live.protocol_part.estimate(
                live.manifest, one, await live.round_documents(), await live.tally_of(one.survey), True
            )
            for one in live.manifest.surveys
        ]
        assert [one.title for one in estimates if one] == ["tired", "tired: as most say"]
        assert await Estimates().of(live) == (), "six packets are too few for the desk to show"
        result = audit_documents(
            encode_chain(live.chain),
            {one.head.number: await live.body_of(one.head) for one in live.chain},
            contents=await all_contents(live),
            protocols=PROTOCOLS,
        )
        assert result.ok and result.model_checked and result.packets == 12, result.lines()
        other = {one.head.number: await live.body_of(one.head) for one in live.chain}
        claimed = json.loads(bodies["model", 0])
        number = next(one.head.number for one in live.chain if one.head.kind == "model")
        other[number] = json.dumps(claimed | {"share": 0.99}).encode()
        assert not audit_documents(
            encode_chain(live.chain), other, contents=await all_contents(live), protocols=PROTOCOLS
        ).ok


def _packet(peer: FakePeer, slot: int, tired: float, documents: list[DocumentArrived]):
    part, manifest = part_of(peer.manifest), peer.manifest
    (answer,) = part.answers(manifest, Record({}, tired), [(slot, peer.drawn(slot))], documents)
    report = part.perturb(manifest.survey(answer.survey), answer.category, os.urandom)
    return peer.packet(slot, answer.survey, bytes(report))


@pytest.mark.slow
async def test_a_whole_study_over_loopback_with_consent_and_ledger(tmp_path: Path) -> None:
    async with course(tmp_path, "ada", "grace", "emmy", protocols=PROTOCOLS) as (clock, people):
        host, *guests = people
        manifest = await host.aggregator.create_study(PROTOCOLS.proposal(STUDY))
        invites = await host.aggregator.create_invites(manifest.study_id, 2, host.address)
        for guest, invite in zip(guests, invites, strict=True):
            sheet = await guest.peer.look(invite)
            assert (
                sheet.epsilon == nano(2.0) and sheet.packets == 2 and not sheet.objections and "twice" in sheet.summary
            )
            await guest.peer.join(invite, sheet.epsilon)
        await live_on(clock, people, manifest.timetable.ends + 8 * 86400.0)
        for guest in guests:
            (status,) = [one for one in guest.peer.status() if one.study == manifest.study_id]
            assert (status.state, [slot.status for slot in status.slots]) == (State.FINISHED, [Status.INCLUDED] * 2)
            assert [(one.measure, one.spent) for one in guest.peer.budget().entries] == [("pure-local", nano(2.0))]
        live = host.aggregator.study(manifest.study_id)
        model = PROTOCOLS.model((await published(live))["model", 0].decode())
        assert predict_own(model, guests[0].home.data_path, 1).probability == model.share  # type: ignore[attr-defined]


def test_every_kind_of_packet_is_explained() -> None:
    manifest = FakeAggregator.with_study(STUDY, protocols=PROTOCOLS).manifest
    kinds = protocol_of(manifest).packet_kinds(manifest)
    assert [kind.questions for kind in kinds] == [("tired",), ("tired: as most say",)]
    assert all(kind.picture.chance == kind.lines[0].chances[0] for kind in kinds)


@pytest.mark.parametrize("rest", [(0, 5, 6), (0,), (), (0, "5", 1), (0, None, 1), (0, 5, 2.5), (0, 5, 2, 1), (1, 5, 2)])
def test_a_count_that_cannot_be_stops_the_peer(rest: tuple[Any, ...]) -> None:
    manifest = FakeAggregator.with_study(STUDY, protocols=PROTOCOLS).manifest
    with pytest.raises(Malformed, match="nothing is sent"):
        part_of(manifest).check_documents(manifest, [DocumentArrived("count", 0, encode([manifest.study_id, *rest]))])


@pytest.mark.parametrize(("kind", "body"), [("gossip", b"x"), ("gossip", b""), ("edges", b""), ("count", bytes(99))])
def test_a_document_that_the_protocol_does_not_have_is_not_fetched(kind: str, body: bytes) -> None:
    aggregator = FakeAggregator.with_study(STUDY, protocols=PROTOCOLS)
    head = sign_head(aggregator.key, aggregator.study, aggregator.chain, kind, 0, body)
    with pytest.raises(Distrust, match=r"has no such document|at most"):
        check_sizes(aggregator.manifest, [*aggregator.chain, head])


def test_a_cost_that_the_budget_does_not_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, policy = FakeAggregator.with_study(STUDY, protocols=PROTOCOLS).manifest, Policy(minimum_cohort=2)
    assert explain(manifest, policy, Ledger(policy.lifetime), START).objections == ()
    central = Charge(
        Measure.CENTRAL, manifest.epsilon, Unit.RECORD, condition="one of two servers keeps its share to itself"
    )
    monkeypatch.setattr(noisy_count.Shared, "exposure", lambda *_: central)
    assert any(
        "you allow nothing for noisy results" in line
        for line in explain(manifest, policy, Ledger(policy.lifetime), START).objections
    )


def test_a_model_is_read_by_its_own_protocol() -> None:
    manifest = FakeAggregator.with_study(STUDY, protocols=PROTOCOLS).manifest
    model = noisy_count.CountModel("noisy-count", manifest.study_id.hex(), manifest.title, manifest.label, 0.25)
    assert PROTOCOLS.model(model.to_json()) == model
    with pytest.raises(Malformed, match="protocol that this program does not know"):
        PROTOCOLS.model(model.to_json().replace("noisy-count", "louder-count"))
    with pytest.raises(Refused, match="histogram protocol only"):
        demand_tables(model)


def test_the_guide_shows_the_whole_protocol() -> None:
    """The guide's code, block after block, is the file that runs in these tests; it stays under 165 lines."""
    code = Path(noisy_count.__file__).read_text(encoding="utf-8")
    guide = (Path(__file__).parents[2] / "docs" / "adding-a-protocol.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", guide.partition("\n## Tests that")[0], re.DOTALL)
    assert _lines("".join(blocks)) == _lines(code)
    assert len(_lines(code)) < 165


def _lines(code: str) -> list[str]:
    return [line for line in code.splitlines() if line.strip()]
