"""Members who write to each other: whole studies of the toy `letters`, and what their board is held to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from attrs import evolve

from aggregator.audit import audit_documents
from anon.errors import Malformed
from anon.protocols.models.rows import PublishedRows
from anon.protocols.registry import check_study
from anon.study.manifest import Manifest
from anon.transparency.documents import encode_chain
from examples.testing import all_contents
from peer.data.importing import import_file
from peer.protocols.contract import Correspondence
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.run.packets.inputs import PacketInputs
from tests.support import letters
from tests.support.letters_study import PROTOCOLS, STUDY, resolved
from tests.support.world import World, in_memory, published


async def settled(world: World, tmp_path: Path, tired: list[int]) -> None:
    """Members with these answers, who took part."""
    await world.settle_in(len(tired))
    for number, answer in enumerate(tired):
        (table := tmp_path / f"{number}" / "person.csv").parent.mkdir()
        table.write_text(f"age,cups,tired\n30,2,{answer}\n", encoding="utf-8")
        import_file(world._home(number).data_path, table, None, "replace", lambda _rows: None)


@pytest.mark.slow
async def test_a_sum_under_masks_is_right_to_the_unit_and_audited(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", STUDY, protocols=PROTOCOLS) as world:
        await settled(world, tmp_path, [1, 0, 1, 1])
        await world.go_on()
        bodies = await published(world.live)
        rows = PROTOCOLS.result(bodies[letters.RESULT])
        assert isinstance(rows, PublishedRows) and rows.rows[0][:2] == ("3", "4")
        assert [signed.head.kind for signed in world.live.chain][4:10] == ["page"] * 4 + ["seat", "page"]
        result = audit_documents(*evidence(world, bodies), contents=await all_contents(world.live), protocols=PROTOCOLS)
        assert result.ok, result.lines()
        for app in world.peers:
            (status,) = app.status()
            assert (status.state, [slot.status for slot in status.slots]) == (State.FINISHED, [Status.INCLUDED] * 6)
            assert status.spent == world.live.manifest.epsilon
        heard = [app.store.received(world.live.study) for app in world.peers]
        assert sorted(map(len, heard)) == [0, 0, 1, 1]
        told = {results[letters.GROUP] for results in heard if results}
        assert len(told) == 2  # each of the two hears the other's greeting alone
        for app in world.peers:
            app.store.forget()
            assert app.store.received(world.live.study) == {}
        table = world.live.manifest.timetable
        await world.go_to(table.ends + world.live.manifest.release.retention)
        kept = {signed.head.kind: await world.live.document(signed.head.number) for signed in world.live.chain}
        assert kept["page"] is kept["transcript"] is None and kept["rows"] is not None


@pytest.mark.slow
async def test_a_part_that_cannot_read_the_board_gives_no_result_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters.Peer, "received", lambda *_given: {}["no such place"])
    async with in_memory(tmp_path / "home", STUDY, protocols=PROTOCOLS) as world:
        await settled(world, tmp_path, [1, 0, 1])
        await world.go_on()
        for app in world.peers:
            (status,) = app.status()
            assert (status.state, app.store.received(world.live.study)) == (State.FINISHED, {})


def test_what_costs_nothing_reads_no_record() -> None:
    """Whatever the part says: a hostile manifest may declare that a masked number is free."""
    manifest = resolved()
    free = tuple(evolve(survey, epsilon=0) for survey in manifest.surveys)
    known = Correspondence(b"\x01" * 48, {}, {}, {})

    def reading(study: Manifest, known: Correspondence | None) -> list[int]:
        inputs = PacketInputs(study, None, None, b"", (), (), known)  # type: ignore[arg-type]
        return [survey for survey in range(6) if inputs.reads(survey)]

    assert reading(manifest, known) == [letters.ROWS, letters.VECTOR]
    assert reading(manifest, None) == [letters.ROWS]
    assert reading(evolve(manifest, surveys=free), known) == []
    with pytest.raises(Malformed, match="cost something else"):
        check_study(evolve(manifest, surveys=free, epsilon=manifest.epsilon))


def evidence(world: World, bodies: Mapping[tuple[str, int], bytes]) -> tuple[bytes, dict[int, bytes]]:
    """The chain, and every body by its number."""
    at = {(signed.head.kind, signed.head.part): signed.head.number for signed in world.live.chain}
    return encode_chain(world.live.chain), {at[place]: body for place, body in bodies.items()}


@pytest.mark.slow
def test_a_study_without_letters_loads_nothing_of_them(tmp_path: Path) -> None:
    """A whole study of categories in memory, its audit included, in a program of its own."""
    program = """
import sys
from pathlib import Path
from examples.testing import run
from tests.networks.test_halving import PROTOCOLS, STUDY
people = [{"person": [{"age": 30 + number, "cups": 2, "tired": 1}]} for number in range(3)]
outcome = run(STUDY, people, Path(sys.argv[1]), PROTOCOLS, seed=1)
if not outcome.audit.ok:
    sys.exit("the audit failed")
late = {"anon.protocols.board", "anon.wire.letters", "peer.run.packets.letters", "aggregator.study.seat"}
loaded = late & sys.modules.keys()
sys.exit(str(loaded) if loaded else 0)
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
