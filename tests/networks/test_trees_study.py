"""Private trees: whole studies in memory, with members that lie, and rows that the audit draws again."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from aggregator.audit import AuditResult, audit_documents
from aggregator.audit.exporting import export_study
from aggregator.protocols.trees import read_trees
from anon.errors import RejectedProof
from anon.protocols.board import BoardPage, check_tokens, pages_in
from anon.protocols.contract import Place, Record
from anon.protocols.models.rows import PublishedRows
from anon.protocols.outgoing import OpenShares
from anon.protocols.trees import written
from anon.protocols.trees.growing import LARGEST_COUNT, GrownTree, TreeNode
from anon.protocols.trees.layout import plan_for
from anon.queries import process
from anon.study.manifest import Manifest, Survey
from anon.transparency.documents import encode_chain, find
from examples.testing import all_contents
from peer.protocols.trees import TreesPart
from peer.rules.lifecycle import State
from tests.support.masks_study import members
from tests.support.protocols import PROTOCOLS
from tests.support.trees_study import HELD, MEMBERS, MOST, held, trees_study
from tests.support.world import World, published

pytestmark = pytest.mark.slow
STRANGE = [(day, value, value, value) for day, value in enumerate([None, "text", float("inf"), -1e300, "", 5])]
ODD_MEMBERS = (*HELD[:2], [], STRANGE, [(day, 1, 1, 1) for day in range(5)], held(9, 3 * MOST))
"""Beside two plain ones: without records, with values outside of all ranges, of one label only, with too many."""


async def audited(world: World, bodies: Mapping[Place, bytes]) -> AuditResult:
    return audit_documents(
        encode_chain(world.live.chain), dict(enumerate(bodies.values())), contents=await all_contents(world.live)
    )


def page_of(world: World, bodies: Mapping[Place, bytes]) -> BoardPage:
    return pages_in(world.live.manifest, bodies)[0]


def rows_in(bodies: Mapping[Place, bytes]) -> PublishedRows:
    rows = PROTOCOLS.result(bodies["rows", 0])
    assert isinstance(rows, PublishedRows)
    return rows


async def test_rows_are_published_exported_and_drawn_again_by_the_audit(tmp_path: Path) -> None:
    async with members(tmp_path, trees_study(), HELD) as world:
        await world.go_on()
        bodies, study = await published(world.live), world.live.manifest
        assert [*bodies][-2:] == [("rows", 0), ("report", 0)] and ("model", 0) not in bodies
        rows, page = rows_in(bodies), page_of(world, bodies)
        assert rows.columns == ("age", "sleep", "tired") and 120 < len(rows.rows) < 360
        tired = [row[2] for row in rows.rows if row[1] == "[0, 6]"]
        assert tired.count("1") > 0.9 * len(tired) > 0
        assert {len(text) for text in page.texts(0).values()} == {written.length(plan_for(study))}
        result = await audited(world, bodies)
        assert result.ok and result.model_checked, result.lines()
        report = bodies["report", 0].decode()
        assert "no row stands for a person or a record" in report and "central epsilon 8" in report
        assert "tellers verified" not in report and "no tree of this study" not in report
        await export_study(world.live, tmp_path / "out")
        assert (tmp_path / "out/rows.csv").read_text("utf-8") == rows.to_csv()
        forged = json.loads(bodies["rows", 0])
        forged["rows"][0][-1] = "1" if forged["rows"][0][-1] == "0" else "0"
        spelled = json.dumps(forged, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        lied = await audited(world, {**bodies, ("rows", 0): spelled})
        assert not lied.ok
        for app in world.peers:
            (status,) = app.status()
            assert (status.state, status.spent, status.reserved) == (State.FINISHED, study.epsilon, 0)


async def test_no_data_changes_if_a_tree_leaves_how_long_it_is_or_its_charge(tmp_path: Path) -> None:
    async with members(tmp_path, trees_study(), ODD_MEMBERS) as world:
        await world.go_on()
        bodies, study = await published(world.live), world.live.manifest
        texts = page_of(world, bodies).texts(0)
        assert len(texts) == MEMBERS and {len(text) for text in texts.values()} == {study.surveys[0].size}
        assert len(read_trees(plan_for(study), page_of(world, bodies))) == MEMBERS
        assert {status.spent for app in world.peers for status in app.status()} == {study.epsilon}
        assert (await audited(world, bodies)).ok and len(rows_in(bodies).rows) < 2 * MEMBERS * MOST


async def test_texts_that_are_no_trees_are_left_out_and_a_tree_of_absurd_size_is_one_of_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part makes a tree without records beside each, for a child that is late. That one stays honest."""
    calls, honest = list[int](), TreesPart.letters

    def lied(
        self: TreesPart, manifest: Manifest, survey: Survey, record: Record | None, *known: Any
    ) -> OpenShares:
        made = honest(self, manifest, survey, record, *known)
        if record is None or not record.rows:
            return made
        calls.append(1)
        if len(calls) == 1:
            return OpenShares(b"x" * survey.size, ())
        plan = plan_for(manifest)
        absurd = written.write(GrownTree(TreeNode((LARGEST_COUNT,) * plan.classes), None), plan)
        return OpenShares(absurd.encode(), ()) if len(calls) == 2 else made

    monkeypatch.setattr(TreesPart, "letters", lied)
    async with members(tmp_path, trees_study(more="rows = 50"), HELD) as world:
        await world.go_on()
        bodies = await published(world.live)
        assert len(calls) == MEMBERS and len(read_trees(plan_for(world.live.manifest), page_of(world, bodies))) == 5
        assert 150 < len(rows_in(bodies).rows) <= 250
        assert "1 texts were no tree" in bodies["report", 0].decode()
        result = await audited(world, bodies)
        assert result.ok and result.model_checked, result.lines()


async def test_without_one_tree_the_study_ends_and_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("peer.protocols.trees.write", lambda _tree, plan: "-" * written.length(plan))
    async with members(tmp_path, trees_study(), HELD) as world:
        await world.go_on()
        bodies = await published(world.live)
        assert world.live.state == "ended" and ("unsummed", 0) in bodies and ("rows", 0) not in bodies
        assert (await audited(world, bodies)).ok


async def test_a_tree_of_nobody_in_the_roster_is_no_page(tmp_path: Path) -> None:
    async with members(tmp_path, trees_study(), HELD) as world:
        await world.go_on()
        bodies, study = await published(world.live), world.live.manifest
        page, roster = page_of(world, bodies), find(world.live.chain, "roster")
        assert roster is not None
        check_tokens(study, roster.digest, [page], os.urandom)
        first, *others = page.packets
        token = first.token[:-1] + bytes([first.token[-1] ^ 1])
        invented = BoardPage({0: {}}, (evolve(first, token=token), *others))
        with pytest.raises(RejectedProof, match="that no member wrote"):
            check_tokens(study, roster.digest, [invented], os.urandom)


async def test_a_tree_grows_in_a_child_that_opens_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on an owner's machine: all code of the protocol is there before the child gives up everything."""

    async def in_children(work: process.Work, _seconds: float) -> bytes:
        return await asyncio.to_thread(process.in_a_child, work, 60.0)

    monkeypatch.setattr("examples.testing.at_once", in_children)
    async with members(tmp_path, trees_study(), HELD) as world:
        await world.go_on()
        bodies = await published(world.live)
        assert len(page_of(world, bodies).texts(0)) == MEMBERS and (await audited(world, bodies)).ok
