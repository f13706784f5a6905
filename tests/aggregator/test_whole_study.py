"""Studies from publishing to erasure, with peers made of the shared part."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.audit import audit_documents
from aggregator.rules.counters import Count
from aggregator.rules.lifecycle import Phase
from aggregator.store.dialects import TABLES
from anon.protocols.models.tables import from_json
from anon.protocols.sizes import longest_body
from anon.transparency.documents import parse_chain
from anon.wire.cbor import decode
from examples.testing import all_contents
from tests.support.documents import contents_of
from tests.support.world import World, has, in_memory, published, sealed, study_text

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("design", ["cuts", "quantile", "median", "bits"])
async def test_a_study_runs_to_its_model(tmp_path: Path, design: str) -> None:
    async with in_memory(tmp_path / "home", study_text(design)) as running:
        live = running.live
        peers = await running.enrol(10)
        await running.close_enrolment(peers)
        assert live.phase is Phase.SETTLING
        sent = [packet for peer in peers for packet in (peer.packet(slot) for slot in range(live.manifest.packets))]
        accepted = 0
        for window in [one.window for one in live.rounds]:
            await running.go_to(window.opens)
            for packet in sent:
                if live.manifest.surveys[packet.survey].window == window:
                    assert await live.submit(sealed(live, packet)) == "accepted"
                    accepted += 1
            await running.go_to(window.closes)
        assert accepted == len(sent) == len(peers) * live.manifest.packets
        assert live.phase is Phase.PUBLISHED
        documents = await published(live)
        for (kind, part), body in documents.items():
            assert len(body) <= longest_body(live.manifest, kind, part), kind
        numbered = {one.head.number: await live.body_of(one.head) for one in live.chain}
        audited = audit_documents(
            live.heads(), numbered, running.app.home.public_key, contents=await all_contents(live)
        )
        assert audited.ok and audited.model_checked and audited.packets == accepted, audited.lines()
        listed = [decode(body)[4] for (kind, _), body in documents.items() if kind == "transcript"]
        assert sum(listed) == accepted == sum(len(decode(one)[3]) for one in await contents_of(live, "transcript"))
        model = from_json(documents["model", 0].decode())
        assert model.study == live.study.hex()
        assert b"<script" not in documents["report", 0] and b"http" not in documents["report", 0]
        assert len(parse_chain(live.heads(), running.app.home.public_key, live.study)) == len(documents)
        await running.go_to(live.manifest.timetable.ends + 101)
        assert live.phase is Phase.ERASED
        assert not running.app.home.secrets_path(live.study).exists()
        assert await running.app._tools.packets.counts(live.study) == {}
        assert await live.document(next(h.head.number for h in live.chain if h.head.kind == "transcript")) is None


async def test_a_study_to_which_nobody_sends_still_ends(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text("quantile")) as running:
        await running.close_enrolment(await running.enrol(2))
        await running.go_to(running.closes)
        assert running.live.phase is Phase.PUBLISHED
        documents = await published(running.live)
        assert from_json(documents["model", 0].decode()).base_rate == 0.5


async def test_too_few_enrol_and_the_study_ends(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text(minimum=3)) as running:
        await running.enrol(2)
        await running.go_to(running.live.manifest.timetable.enrol_closes)
        assert running.live.phase is Phase.ABANDONED
        assert [one.head.kind for one in running.live.chain] == ["manifest", "abandoned"]
        table, retention = running.live.manifest.timetable, running.live.manifest.release.retention
        for ends, phase in ((table.ends, Phase.ABANDONED), (table.ends + retention, Phase.ERASED)):
            await running.go_to(ends)
            (status,) = await running.app.status()
            assert (running.live.phase, status.enrolled) == (phase, Count(2, exact=True))
        assert not has(running.live, "seed")


async def test_an_erased_study_leaves_the_rows_that_the_page_of_operations_names(on_each_dialect: World) -> None:
    """Manifest, heads, roster, credentials, model and report stay; every other row of it is gone."""
    world = on_each_dialect
    live, peers = world.live, await world.enrol(3)
    await live.withdraw(peers.pop().sealed_withdrawal())
    await world.close_enrolment(peers)
    await world.go_to(world.opens)
    for peer in peers:
        assert await live.submit(sealed(live, peer.packet())) == "accepted"
    tables = [table for group in TABLES for table in group.sorted_tables if "study" in table.columns]

    async def kept() -> set[str]:
        return {table.name for table in tables if await world.rows(f"SELECT 1 FROM {table.name} LIMIT 1")}

    assert {"enrolments", "invites", "withdrawals", "packets"} <= await kept()
    await world.go_to(world.closes)
    for _ in range(2):
        await world.go_to(live.manifest.timetable.ends + live.manifest.release.retention)
    assert live.phase is Phase.ERASED
    assert await kept() == {"studies", "documents", "buckets"}
    bodies = await world.rows("SELECT kind FROM documents WHERE body IS NOT NULL")
    assert {kind for (kind,) in bodies} == {"manifest", "roster", "seed", "credentials", "model", "report"}
