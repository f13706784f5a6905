"""One damaged byte in the aggregator's store costs that one packet, and says so; nothing is repeated for ever in
silence."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from aggregator.audit import audit_documents
from aggregator.desk.study_view import facts_of
from aggregator.rules.lifecycle import Phase
from aggregator.store.packets import PacketStore
from aggregator.study.effects import publish_transcripts
from anon.protocols.histogram.asked import asks_label
from anon.transparency.documents import encode_chain
from anon.transparency.transcript import parse_transcript
from examples.testing import all_contents
from tests.support.clock import Clock
from tests.support.documents import contents_of
from tests.support.tries import every
from tests.support.world import FakePeer, World, begin, has, in_memory, make_app, published, sealed, study_text

PEERS = 6


async def _collected(app_home: Path, clock: Clock, design: str = "cuts") -> tuple[World, list[FakePeer]]:
    """A study whose peers have all sent; its app is entered by the caller."""
    app = make_app(app_home, clock)
    await app.__aenter__()
    running = await begin(app, clock, study_text(design))
    peers = await running.enrol(PEERS)
    await running.close_enrolment(peers)
    if design == "quantile":
        await running.go_to(min(one.window.opens for one in running.live.manifest.surveys))
        for peer in peers:
            if not asks_label(running.live.manifest.surveys[peer.drawn()]):
                assert await running.live.submit(sealed(running.live, peer.packet())) == "accepted"
        await running.go_to(min(one.window.closes for one in running.live.manifest.surveys))
    await running.go_to(running.opens)
    for peer in peers:
        if asks_label(running.live.manifest.surveys[peer.drawn()]):
            assert await running.live.submit(sealed(running.live, peer.packet())) == "accepted"
    return running, peers


def _spoil(running: World, column: str, places: int = 1) -> list[str]:
    """Flip one bit in a column of the first rows; the beginnings of their tags."""
    named = []
    with closing(sqlite3.connect(running.app.home.database)) as connection, connection:
        rows = connection.execute(f"SELECT tag, {column} FROM packets ORDER BY tag").fetchall()[:places]
        for tag, value in rows:
            spoilt = value + 1 if isinstance(value, int) else bytes([value[0] ^ 1]) + value[1:]
            connection.execute(f"UPDATE packets SET {column} = ? WHERE tag = ?", (spoilt, tag))
            named.append((spoilt if column == "tag" else tag)[:4].hex())
    return named


async def _audited(running: World) -> None:
    bodies = {one.head.number: await running.live.body_of(one.head) for one in running.live.chain}
    result = audit_documents(
        encode_chain(running.live.chain), bodies, running.app.home.public_key, contents=await all_contents(running.live)
    )
    assert result.ok and result.model_checked, result.lines()


@pytest.mark.slow
@pytest.mark.parametrize("column", every(2, ["plaintext", "digest", "tag", "survey", "slot"]))
async def test_one_damaged_row_is_left_out_named_and_said(
    tmp_path: Path, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    running, _ = await _collected(tmp_path / "home", Clock())
    app, live = running.app, running.live
    try:
        (named,) = _spoil(running, column)
        await running.go_to(running.closes)
        assert live.phase is Phase.PUBLISHED and live.fault is None
        documents = await published(live)
        kept = [row for body in await contents_of(live, "transcript") for row in parse_transcript(body, live.study)[1]]
        assert len(kept) == PEERS - 1
        assert sum((await live.accepted()).values()) == PEERS - 1
        assert (
            named in documents["report", 0].decode() and "damaged in the aggregator" in documents["report", 0].decode()
        )
        (status,) = await app.status()
        assert status.accepted.number == PEERS - 1 and not status.fault
        assert len(status.left_out) == 1 and named in status.left_out[0]
        assert (await facts_of(live)).left_out == status.left_out
        (line,) = [one.getMessage() for one in caplog.records if "damaged" in one.getMessage()]
        assert named in line and "keep backups" in line and str(int(running.clock.seconds)) not in line
        await _audited(running)
    finally:
        await app.__aexit__()


@pytest.mark.slow
async def test_counts_of_a_round_leave_it_out_too(tmp_path: Path) -> None:
    clock = Clock()
    app = make_app(tmp_path / "binned", clock)
    async with app:
        running = await begin(app, clock, study_text("quantile"), invites=40)
        peers = await running.enrol(40)
        await running.close_enrolment(peers)
        surveys = running.live.manifest.surveys
        await running.go_to(min(one.window.opens for one in surveys))
        for peer in peers:
            if not asks_label(surveys[peer.drawn()]):
                assert await running.live.submit(sealed(running.live, peer.packet())) == "accepted"
        assert any(not asks_label(surveys[peer.drawn()]) for peer in peers), "none of 40: once in 10^8 studies"
        _spoil(running, "plaintext")
        await running.go_to(min(one.window.closes for one in surveys))
        await running.go_to(running.opens)
        for peer in peers:
            if asks_label(surveys[peer.drawn()]):
                assert await running.live.submit(sealed(running.live, peer.packet())) == "accepted"
        await running.go_to(running.closes)
        assert running.live.phase is Phase.PUBLISHED
        assert sum((await running.live.accepted()).values()) == len(peers) - 1
        await _audited(running)


@pytest.mark.slow
async def test_a_row_damaged_after_its_transcript_was_signed_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signed transcript is the truth: for the model, the counts and the desk."""
    running, _ = await _collected(tmp_path / "home", Clock())
    app, live = running.app, running.live
    try:
        running.clock.seconds = running.closes
        await publish_transcripts(live)
        _spoil(running, "plaintext")
        _spoil(running, "survey")
        await app.tick()
        assert live.phase is Phase.PUBLISHED and live.fault is None
        assert sum((await live.accepted()).values()) == PEERS
        assert not await live.left_out()
        await _audited(running)
    finally:
        await app.__aexit__()


@pytest.mark.slow
@pytest.mark.parametrize("within", every(3, [90, 0, -1]))
async def test_a_transcript_that_was_signed_with_a_damaged_packet_still_becomes_a_model(
    tmp_path: Path, within: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a program that does not look again."""

    async def as_stored(self: PacketStore, study: bytes, slot: int, tags: Sequence[bytes]) -> tuple[bytes, ...]:
        with closing(sqlite3.connect(running.app.home.database)) as connection:
            rows = connection.execute("SELECT plaintext FROM packets WHERE slot = ? ORDER BY tag", (slot,)).fetchall()
        first = bytearray(rows[0][0]) if rows else bytearray(100)
        first[within] ^= 0x80
        return tuple(bytes(first) if number == 0 else row[0] for number, row in enumerate(rows))

    running, _ = await _collected(tmp_path / "home", Clock())
    app, live = running.app, running.live
    try:
        with monkeypatch.context() as earlier:
            earlier.setattr(PacketStore, "of_tags", as_stored)
            running.clock.seconds = running.closes
            await publish_transcripts(live)
        await app.tick()
        assert live.phase is Phase.PUBLISHED and live.fault is None
        report = (await published(live))["report", 0].decode()
        unread = "cannot be read and count for nothing" in report
        bodies = {one.head.number: await live.body_of(one.head) for one in live.chain}
        result = audit_documents(encode_chain(live.chain), bodies, contents=await all_contents(live))
        assert result.model_checked and not any(one.document.startswith("model") for one in result.findings)
        assert unread or any(one.document.startswith("transcript") for one in result.findings) or within == -1
    finally:
        await app.__aexit__()


@pytest.mark.slow
async def test_a_damaged_enrolment_costs_that_one_enrolment(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with in_memory(tmp_path / "home", study_text()) as running:
        peers = await running.enrol(PEERS)
        spoilt = bytes(peers[2].key.verify_key)
        with closing(sqlite3.connect(running.app.home.database)) as connection, connection:
            ((whole,),) = connection.execute("SELECT commitment FROM enrolments WHERE key = ?", (spoilt,)).fetchall()
            damaged = whole[:60] + bytes([whole[60] ^ 1]) + whole[61:]
            connection.execute("UPDATE enrolments SET commitment = ? WHERE key = ?", (damaged, spoilt))
        await running.close_enrolment([one for one in peers if bytes(one.key.verify_key) != spoilt])
        assert running.live.phase is not Phase.ENROLLING and has(running.live, "credentials")
        assert any(spoilt[:4].hex() in one.getMessage() for one in caplog.records)


@pytest.mark.slow
async def test_a_fault_is_stated_backs_off_and_holds_up_no_other_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running, _ = await _collected(tmp_path / "home", Clock())
    app, live, clock = running.app, running.live, running.clock
    other = await begin(app, clock, study_text())
    other_ends = other.live.manifest.timetable.enrol_closes
    tried = 0

    async def fails(*_: object) -> object:
        nonlocal tried
        tried += 1
        raise RuntimeError("somebody's data")

    try:
        monkeypatch.setattr(live.tools.workers.__class__, "run", fails)
        for _ in range(120):  # half a second apart, as a serving process looks
            clock.seconds = max(clock.seconds, running.closes) + 0.5
            await app.tick()
        assert tried < 6 and live.fault is not None
        assert clock.seconds > other_ends and other.live.phase is not Phase.ENROLLING
        (status,) = [one for one in await app.status() if one.study == live.study]
        assert "RuntimeError" not in status.fault and "Report the places" in status.fault
        assert (await facts_of(live)).fault == status.fault
        lines = [one for one in caplog.records if one.levelno >= logging.ERROR]
        assert len(lines) == tried and not any("somebody's data" in one.getMessage() for one in lines)
        async with make_app(tmp_path / "home", clock) as beside:  # `anonml aggregator status` is another process
            (told,) = [one for one in await beside.status() if one.study == live.study]
            assert told.fault == status.fault
        monkeypatch.undo()
        clock.seconds = live.fault.again
        caplog.clear()
        for _ in range(2):
            await app.tick()
        assert live.phase is Phase.PUBLISHED and live.fault is None
        assert not any(one.fault for one in await app.status())
        assert [one.getMessage() for one in caplog.records] == [f"study {live.study.hex()[:8]} goes on again"]
    finally:
        await app.__aexit__()


@pytest.mark.slow
async def test_a_study_that_cannot_go_on_is_erased_when_its_retention_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, _ = await _collected(tmp_path / "home", Clock())
    app, live = running.app, running.live

    async def fails(*_: object) -> object:
        raise RuntimeError

    try:
        monkeypatch.setattr(live.tools.workers.__class__, "run", fails)
        await running.go_to(running.closes)
        assert live.phase is Phase.LEARNING
        await running.go_to(live.manifest.timetable.ends + live.manifest.release.retention)
        assert live.phase is Phase.ERASED
        assert await app._tools.packets.counts(live.study) == {}
    finally:
        await app.__aexit__()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["manifest", "roster", "keys", "head"])
async def test_one_study_that_cannot_be_read_keeps_no_other_from_going_on(tmp_path: Path, what: str) -> None:
    async with in_memory(tmp_path / "home", study_text()) as spoilt:
        await spoilt.close_enrolment(await spoilt.enrol(2))
        whole = await begin(spoilt.app, spoilt.clock, study_text())
        study = spoilt.live.study
    keys = tmp_path / "home" / "studies" / f"{study.hex()}.keys"
    if what == "keys":
        keys.write_bytes(keys.read_bytes()[:50])
    else:
        column = "head" if what == "head" else "body"
        with closing(sqlite3.connect(spoilt.app.home.database)) as connection, connection:
            wanted = (study, "manifest" if what == "head" else what)
            ((value,),) = connection.execute(
                f"SELECT {column} FROM documents WHERE study = ? AND kind = ?", wanted
            ).fetchall()
            at = len(value) // 2
            changed = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
            connection.execute(f"UPDATE documents SET {column} = ? WHERE study = ? AND kind = ?", (changed, *wanted))
    async with make_app(tmp_path / "home", spoilt.clock) as app:
        assert [one.study for one in app.studies()] == [whole.live.study]
        (status,) = [one for one in await app.status() if one.study == study]
        assert "damaged" in status.fault and "anonml aggregator restore" in status.fault
        assert ("keys" if what == "keys" else "aggregator.sqlite") in status.fault
        await app.tick()


async def test_a_study_whose_id_is_damaged_keeps_no_other_from_going_on(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(tmp_path / "home", clock) as app:
        spoilt, whole = await begin(app, clock, study_text()), await begin(app, clock, study_text())
    with closing(sqlite3.connect(app.home.database)) as connection, connection:
        connection.execute("UPDATE studies SET study = 7 WHERE study = ?", (spoilt.live.study,))
    async with make_app(tmp_path / "home", clock) as app:
        await app.tick()
        assert [one.study for one in app.studies()] == [whole.live.study]
        (fault,) = [one.fault for one in await app.status() if one.fault]
        assert "aggregator.sqlite”: damaged" in fault and "anonml aggregator restore" in fault


@pytest.mark.slow
@pytest.mark.parametrize("change", ["body = randomblob(40)", "body = NULL", "number = number + 64"])
async def test_a_damaged_document_is_not_served_and_staff_are_told(tmp_path: Path, change: str) -> None:
    running, _ = await _collected(tmp_path / "home", Clock())
    app, live = running.app, running.live
    try:
        number = next(one.head.number for one in live.chain if one.head.kind == "credentials")
        live.forget_bodies()
        with closing(sqlite3.connect(app.home.database)) as connection, connection:
            connection.execute(f"UPDATE documents SET {change} WHERE kind = 'credentials'")
        assert await live.served(number) is None
        (status,) = await app.status()
        assert f"document {number}" in status.fault and "restore" in status.fault
    finally:
        await app.__aexit__()
