"""The aggregator answers a dummy as it answers a packet, and keeps nothing of it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define

from aggregator.app import AggregatorApp
from aggregator.intake import packets
from anon.errors import Malformed
from anon.protocols.posts import sealed_dummy
from anon.wire.cbor import encode
from anon.wire.packets import (
    COVER,
    VERSION,
    Dummy,
    Layout,
    Occasion,
    Packet,
    pad,
    parse_packet,
    parse_published,
)
from tests.support.clock import Clock
from tests.support.packets import posted
from tests.support.world import FakePeer, World, in_memory, sealed, study_text

pytestmark = pytest.mark.usefixtures("answered_at_once")


@define
class Covered:
    """A study that collects, and its members."""

    running: World
    members: list[FakePeer]


@pytest.fixture
async def with_members(tmp_path: Path) -> AsyncIterator[Covered]:
    """Three members, collection open."""
    async with in_memory(tmp_path / "home", study_text("cuts", connections=4)) as running:
        members = await running.collecting(3)
        yield Covered(running, members)


@pytest.fixture
def covered(with_members: Covered) -> World:
    """The study alone."""
    return with_members.running


def _dummy(running: World) -> bytes:
    (window,) = running.live.manifest.windows
    return sealed_dummy(running.live.manifest, Dummy(running.live.study, window.opens, window.closes)).ciphertext


def _rows(app: AggregatorApp) -> dict[str, int]:
    with closing(sqlite3.connect(app.home.database)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


@pytest.mark.slow
async def test_a_dummy_is_accepted_and_leaves_no_trace(covered: World) -> None:
    before, live = _rows(covered.app), covered.live
    body = _dummy(covered)
    for _ in range(120):
        assert await live.submit(body) == "accepted"
    assert _rows(covered.app) == before
    assert live.answers.packets.exact() == {}
    (status,) = await covered.app.status()
    assert (status.accepted.number, status.packet_answers) == (0, {})


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "word"), [(-0.001, "window-not-open"), (50.0, "accepted"), (100.0, "window-closed")])
async def test_in_and_outside_its_window_it_is_answered_as_a_packet(
    with_members: Covered, shift: float, word: str
) -> None:
    running = with_members.running
    running.clock.seconds = running.opens + shift
    assert await running.live.submit(_dummy(running)) == word
    assert await running.live.submit(sealed(running.live, with_members.members[0].packet())) == word


@pytest.mark.slow
async def test_once_a_window_is_counted_nothing_is_accepted(covered: World) -> None:
    covered.live.packet_intake.frozen_until = covered.closes
    assert await covered.live.submit(_dummy(covered)) == "window-closed"


@pytest.mark.slow
async def test_packets_and_dummies_that_come_together_are_each_answered_rightly(with_members: Covered) -> None:
    running = with_members.running
    packets = [sealed(running.live, member.packet()) for member in with_members.members]
    bad = sealed(running.live, with_members.members[0].packet(report=b"\xff" * 2))
    posts = [_dummy(running), packets[0], _dummy(running), bad, packets[1], _dummy(running), packets[2]]
    words = await asyncio.gather(*map(running.live.submit, posts))
    assert words == ["accepted"] * 3 + [words[3]] + ["accepted"] * 3
    assert words[3] in ("malformed-report", "tag-spent")
    assert sum((await running.live.tools.packets.counts(running.live.study)).values()) == 3
    assert running.live.answers.packets.exact() == {"accepted": 3, words[3]: 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ([None, COVER, bytes(32), 0, 0], "wrong-study"),
        ([None, COVER, None, 1, 2], "unknown-survey"),
        ([3, COVER, None, None, None], "malformed"),
        ([None, "other", None, None, None], "malformed"),
        ([None, COVER, None, None], "malformed"),
        ([None, COVER, None, None, None, b""], "malformed"),
    ],
)
async def test_other_things_are_no_dummies(covered: World, fields: list[object], word: str) -> None:
    manifest = covered.live.manifest
    (window,) = manifest.windows
    known = {0: VERSION, 2: covered.live.study, 3: window.opens, 4: window.closes}
    body = encode([known[at] if one is None else one for at, one in enumerate(fields)])
    assert await covered.live.submit(posted(manifest, body)) == word


@pytest.mark.slow
async def test_of_another_version_it_is_none(covered: World) -> None:
    manifest = covered.live.manifest
    (window,) = manifest.windows
    fields = [COVER, covered.live.study, window.opens, window.closes]
    words = [await covered.live.submit(posted(manifest, encode([version, *fields]))) for version in (1, 2, 3)]
    assert words == ["malformed", "accepted", "malformed"]


@pytest.mark.slow
async def test_packets_and_dummies_of_a_study_have_one_size(with_members: Covered) -> None:
    running = with_members.running
    posts = [_dummy(running), *(sealed(running.live, member.packet()) for member in with_members.members)]
    assert {len(post) for post in posts} == {running.live.packet_intake.rules.layout.sealed_size}
    assert [running.is_dummy(post) for post in posts] == [True, False, False, False]


@pytest.mark.slow
async def test_a_study_without_cover_knows_no_dummies(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text("cuts", connections=0)) as running:
        await running.collecting(2)
        assert await running.live.submit(_dummy(running)) == "malformed"


def test_a_dummy_and_a_packet_cannot_be_read_as_each_other() -> None:
    layout = Layout(8, (), 496)
    packet = Packet(Occasion(bytes(32), 0, 0), 0, bytes(8), (), bytes(496))
    for sent in (Dummy(bytes(32), 1, 2), packet):
        assert parse_packet(pad(sent.to_bytes(), layout.plain_size), layout) == sent
    with pytest.raises(Malformed):
        parse_published(Dummy(bytes(32), 1, 2).to_bytes())


@pytest.mark.slow
async def test_no_answer_says_by_its_haste_that_it_was_a_dummy(
    with_members: Covered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every post is answered no sooner than after a time in which a packet is verified and stored."""
    running, clock, judge = with_members.running, Clock(0.0), packets.PacketIntake._answer

    async def judged(*given: Any) -> packets.Reply:
        clock.seconds += 0.1
        return await judge(*given)

    monkeypatch.setattr(packets.PacketIntake, "_answer", judged)
    monkeypatch.setattr(
        packets, "asyncio", SimpleNamespace(get_running_loop=lambda: SimpleNamespace(time=clock), sleep=clock.sleep)
    )
    monkeypatch.setattr(packets, "REPLY_SECONDS", 0.25)
    for post in (
        _dummy(running),
        sealed(running.live, with_members.members[0].packet()),
        posted(running.live.manifest, b"nonsense"),
    ):
        begun = clock()
        await running.live.submit(post)
        assert clock() - begun == pytest.approx(packets.REPLY_SECONDS)
