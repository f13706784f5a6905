"""Members who write to each other: whole studies of the toy `letters`, and what their board is held to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from aggregator.audit import audit_documents
from anon.protocols.models.rows import PublishedRows
from anon.transparency.documents import encode_chain
from examples.testing import all_contents
from peer.data.importing import import_file
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from tests.support import letters
from tests.support.protocols import with_toy
from tests.support.world import World, in_memory, published

PROTOCOLS = with_toy(letters.PROTOCOL)
STUDY = """
version = 1
title = "Who is tired"
purpose = "To count exactly, and to see no single answer."
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
cuts = [40]
[design]
kind = "letters"
least = 3
[schedule]
enrol = "60m"
settle = "20m"
collect = "60m"
[cohort]
minimum = 3
maximum = 8
admission = "invite"
"""


async def settled(world: World, tmp_path: Path, tired: list[int]) -> None:
    """Members with these answers, who took part."""
    await world.settle_in(len(tired))
    for number, answer in enumerate(tired):
        (table := tmp_path / f"{number}" / "person.csv").parent.mkdir()
        table.write_text(f"age,cups,tired\n30,2,{answer}\n", encoding="utf-8")
        import_file(world._home(number).data_path, table, None, "replace", lambda _rows: None)


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
