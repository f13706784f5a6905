"""Faults that were planted in the aggregator once and went unnoticed: one test for each."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from attrs import evolve
from sqlalchemy import text

from aggregator.rules.acceptance import OpenedPacket, settle
from aggregator.rules.accepted import AcceptedPacket
from aggregator.rules.counters import STEP, Count, Counters, Traffic
from aggregator.rules.enrol import draw_invites
from aggregator.rules.enrolled import StoredEnrolment
from aggregator.rules.faults import Fault, Superseded, TellerAway, TellerRefuses
from aggregator.study.bucketing import credentials_buckets, roster_buckets, transcript_buckets
from aggregator.tellers.http_link import PAUSES, HttpLink
from aggregator.tellers.link import named, together
from aggregator.tellers.study_tellers import aligned
from anon.crypto import labels
from anon.crypto.nacl import SigningKey
from anon.errors import Damaged, Malformed, NoRoom, Refused, Unreachable
from anon.route import Response
from anon.sharing.exchange import reply
from anon.sharing.statements import Disagreed, ListSignature, disagreement_of
from anon.storage.migration import KEPT
from anon.transparency import buckets
from anon.wire.cbor import sha256
from anon.wire.packets import Occasion, Relayed
from tests.support.canaries import forgetful_sqlite
from tests.support.documents import plaintexts_of
from tests.support.tellers import make_world
from tests.support.world import World, in_memory, make_app, study_text

# The store


async def test_a_second_list_never_takes_the_place_of_the_first(on_each_dialect: World) -> None:
    lists, occasion = on_each_dialect.live.tools.lists, Occasion(on_each_dialect.live.study, 0, 0)
    others = [evolve(occasion, round=1), evolve(occasion, slot=1), evolve(occasion, study=bytes(32))]
    assert await lists.keep(occasion, b"first") == b"first"
    assert await lists.keep(occasion, b"second") == b"first" == await lists.of(occasion)
    assert [await lists.of(other) for other in others] == [None] * 3
    assert await lists.keep(others[0], b"of round 1") == b"of round 1" == await lists.of(others[0])
    assert await lists.of(occasion) == b"first"


async def test_the_clockwork_waits_for_a_study_that_is_tried_again_later(tmp_path: Path) -> None:
    """Its phase has ended; without a pause the process would look for as long as a teller is away."""
    async with in_memory(tmp_path, study_text()) as world:
        now = world.clock.seconds = world.live.manifest.timetable.enrol_closes + 5.0
        world.live.fault = Fault("a teller is away", again=now + 40.0)
        assert await world.app.tick() == 40.0
        world.live.fault = Fault("too long")
        assert await world.app.tick() == 86400.0


async def test_a_study_whose_keys_are_back_goes_on_and_a_line_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_memory(tmp_path / "home", study_text()) as world:
        keys = world.app.home.secrets_path(world.live.study)
        away = keys.rename(tmp_path / "keys")
        async with make_app(tmp_path / "home", world.clock) as app:
            assert [status.study for status in app.unread()] == [world.live.study]
            away.rename(keys)
            caplog.clear()
            for _ in range(2):
                await app.tick()
            assert not app.unread()
            said = [record.getMessage() for record in caplog.records]
            assert said == [f"study {world.live.study.hex()[:8]} goes on again"]


async def test_a_study_whose_keys_are_lost_is_erased_when_its_retention_has_passed(on_each_dialect: World) -> None:
    """Its enrolments and packets stayed for ever, in a home that could not read the study."""
    world, study = on_each_dialect, on_each_dialect.live.study
    await world.enrol(3)
    world.app.home.secrets_path(study).unlink()
    table, retention = world.live.manifest.timetable, world.live.manifest.release.retention
    async with make_app(world.app.home.path, world.clock) as app:
        for seconds, kept in ((table.ends + retention - 60, 3), (table.ends + retention, 0)):
            world.clock.seconds = seconds
            for _ in range(2):
                await app.tick()
            assert await world.rows("SELECT count(*) FROM enrolments") == [(kept,)]
            assert [one.phase for one in app.studies()] == (["erased"] if not kept else [])
        assert [signed.head.kind for signed in app.study(study).chain] == ["manifest"], "nothing was published"


async def _spoilt(world: World, table: str, column: str, key: str, value: bytes) -> None:
    """Flip the last bit of a row, as a disk does."""
    async with world.app._database.write() as connection:
        row = (
            await connection.execute(text(f"SELECT {column} FROM {table} WHERE {key} = :value"), {"value": value})
        ).scalar_one()
        changed = {"changed": row[:-1] + bytes([row[-1] ^ 1]), "value": value}
        await connection.execute(text(f"UPDATE {table} SET {column} = :changed WHERE {key} = :value"), changed)


@pytest.mark.parametrize("column", ["commitment", "contribution"])
async def test_a_damaged_enrolment_is_in_no_list_that_credentials_are_issued_by(
    on_each_dialect: World, column: str
) -> None:
    world, store, study = on_each_dialect, on_each_dialect.live.tools.enrolments, on_each_dialect.live.study
    keys = sorted(bytes(one.key.verify_key) for one in await world.enrol(4))
    assert (await store.keys(study)).sound == b"".join(keys)
    await _spoilt(world, "enrolments", column, "key", keys[1])
    rest = [keys[0], *keys[2:]]
    laid = await store.keys(study)
    assert (laid.sound, laid.damaged) == (b"".join(rest), (keys[1],))
    assert [one.key for one in await store.of_keys(study, keys)] == rest


@pytest.mark.slow
async def test_a_damaged_packet_is_neither_read_nor_counted(on_each_dialect: World) -> None:
    world, store, study = on_each_dialect, on_each_dialect.live.tools.packets, on_each_dialect.live.study
    await world.collected(6)
    manifest = world.live.manifest
    before = await store.counts(study)
    slot, survey = 0, max(before, key=lambda one: before[one])
    count, tags = before[survey], await store.tags(study, slot, [survey])
    assert count * 48 == len(tags) and count >= 2
    spoilt = tags[48:96]
    await _spoilt(world, "packets", "plaintext", "tag", spoilt)
    assert len(await plaintexts_of(store, study, slot, survey)) == count - 1
    assert len(await store.of_tags(study, slot, [tags[at : at + 48] for at in range(0, len(tags), 48)])) == count - 1
    assert await store.leave_out(study, manifest, [survey], strays=False) == ((slot, spoilt),)
    assert await store.counts(study) == before | {survey: count - 1}
    assert await store.tags(study, slot, [survey]) == tags[:48] + tags[96:]
    await _spoilt(world, "packets", "plaintext", "tag", spoilt)  # whole again: what was listed stays out
    assert len(await plaintexts_of(store, study, slot, survey)) == count - 1
    assert await store.counts(study) == before | {survey: count - 1}


async def test_the_first_packet_under_a_tag_is_kept_and_none_of_a_frozen_window(on_each_dialect: World) -> None:
    store, study = on_each_dialect.live.tools.packets, on_each_dialect.live.study
    first = AcceptedPacket(0, bytes(47) + b"a", 0, b"first", bytes(32))
    second, other = evolve(first, plaintext=b"second", digest=bytes([1]) * 32), evolve(first, tag=bytes(47) + b"b")
    assert await store.insert(study, [first, second], lambda _: 200) == {first.place: first.digest}
    await on_each_dialect.live.tools.studies.freeze(study, 200)
    await on_each_dialect.live.tools.studies.freeze(study, 100)  # what was counted never opens again
    assert await store.insert(study, [other], lambda _: 200) == {}
    assert await store.insert(study, [other], lambda _: 201) == {other.place: other.digest}


async def test_a_process_that_knows_an_older_chain_moves_and_publishes_nothing(on_each_dialect: World) -> None:
    live, store = on_each_dialect.live, on_each_dialect.live.tools.studies
    known, key = len(live.chain), on_each_dialect.app.home.signing_key
    for after in (known - 1, known + 1):
        with pytest.raises(Superseded):
            await store.move(live.study, "erased", 0, after)
        with pytest.raises(Superseded):
            await store.append(live.study, "model", 0, b"model", key, after=after)
    assert await store.chain(live.study) == live.chain
    chain = await store.append(live.study, "model", 0, b"model", key, after=known)
    assert len(chain) == known + 1 == len(await store.append(live.study, "model", 0, b"another", key, after=known + 1))


async def test_a_key_and_an_invite_of_one_study_are_none_of_another(on_each_dialect: World) -> None:
    world, store, study, other = (
        on_each_dialect,
        on_each_dialect.live.tools.enrolments,
        on_each_dialect.live.study,
        bytes(32),
    )
    keys, invites = [bytes(one.key.verify_key) for one in await world.enrol(2)], [bytes([1]) * 32]
    await store.add_invites(study, invites)
    await store.list_keys(study, keys)
    for asked, number in ((study, 2), (other, 0)):
        async with store.change(asked, "enrolments") as change:
            known = await change.known(keys, invites)
        assert (len(known.digests), len(known.listed), known.spent_by) == (
            number,
            number,
            dict.fromkeys(invites) if number else {},
        )


async def test_a_copy_from_before_goes_with_the_first_who_leaves(tmp_path: Path) -> None:
    """It would keep the enrolment of somebody who was told that it is deleted."""
    async with in_memory(tmp_path / "home", study_text()) as world:
        file, store = world.app.home.database, world.live.tools.enrolments
        copy = file.with_name(f"{file.name}.v1{KEPT}")
        copy.write_bytes(b"as it was before")
        async with store.change(world.live.study, "enrolments"):
            pass
        assert copy.exists()
        async with store.change(world.live.study, "withdrawal"):
            pass
        assert not copy.exists()


async def test_a_damaged_document_is_served_to_nobody(on_each_dialect: World) -> None:
    studies, study = on_each_dialect.live.tools.studies, on_each_dialect.live.study
    assert await studies.body(study, 0) == on_each_dialect.live.manifest.to_bytes()
    await _spoilt(on_each_dialect, "documents", "body", "study", study)
    with pytest.raises(Damaged, match="document 0"):
        await studies.body(study, 0)


@pytest.mark.parametrize(
    "change", [{"slot": 1}, {"survey": 1}, {"tag": bytes(48)}, {"digest": bytes(32)}, {"plaintext": b"x"}]
)
def test_a_row_that_says_another_place_than_its_packet_is_damaged(tmp_path: Path, change: dict[str, object]) -> None:
    world = make_world(tmp_path)
    packet = world.packets()[0].published()
    row = AcceptedPacket(0, packet.tag, 0, packet.to_bytes(), sha256(labels.PACKET_DIGEST, packet.to_bytes()))
    assert row.sound(world.study) and not row.sound(bytes(32)) and not evolve(row, **change).sound(world.study)


async def test_no_sqlite_file_keeps_what_was_erased_or_loses_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forgetful_sqlite(monkeypatch):
        async with in_memory(tmp_path / "home", study_text()) as world, world.app._database.read() as connection:
            settings = [
                (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar_one()
                for name in ("secure_delete", "synchronous", "journal_mode")
            ]
    assert settings == [1, 2, "wal"]


# Documents in buckets


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(buckets, "THRESHOLD", 4)
    monkeypatch.setattr(buckets, "MEAN", 2)
    yield


@pytest.mark.slow
async def test_a_packet_that_is_gone_while_its_bucket_is_made_stops_the_transcript(
    few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with in_memory(tmp_path / "home", study_text()) as world:
        await world.collected(6)
        store = world.live.tools.packets
        assert len([one async for one in transcript_buckets(world.live, 0)]) == 2
        whole = store.of_tags

        async def one_less(*asked: object) -> tuple[bytes, ...]:
            return (await whole(*asked))[1:]  # type: ignore[arg-type]

        monkeypatch.setattr(store, "of_tags", one_less)
        with pytest.raises(Damaged, match="changed while they were read"):
            _ = [one async for one in transcript_buckets(world.live, 0)]


async def test_an_enrolment_that_is_gone_while_its_bucket_is_made_stops_the_roster(few: None, tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text()) as world:
        peers = await world.enrol(6)
        keys = sorted(bytes(one.key.verify_key) for one in peers)
        with pytest.raises(Damaged, match="changed while they were read"):
            _ = [one async for one in roster_buckets(world.live, b"".join([*keys, bytes(32)]))]


@pytest.mark.slow
async def test_enrolments_that_are_not_those_of_the_signed_roster_get_no_credentials(few: None, tmp_path: Path) -> None:
    """A row that was changed together with its check: no digest of its own tells it."""
    async with in_memory(tmp_path / "home", study_text()) as world:
        peers = await world.enrol(6)
        await world.close_enrolment(peers)
        live = world.live
        issued = live.packet_intake.issued
        assert issued is not None
        assert len([one async for one in credentials_buckets(live, issued)]) == 2
        key = sorted(bytes(one.key.verify_key) for one in peers)[2]
        await _spoilt(world, "enrolments", "contribution", "key", key)
        async with world.app._database.write() as connection:
            columns = "key, contribution, commitment"
            row = (
                await connection.execute(text(f"SELECT {columns} FROM enrolments WHERE key = :key"), {"key": key})
            ).one()
            await connection.execute(
                text("UPDATE enrolments SET sound = :sound WHERE key = :key"),
                {"key": key, "sound": StoredEnrolment(*row).check()},
            )
        with pytest.raises(Damaged, match="not those of the signed roster"):
            _ = [one async for one in credentials_buckets(live, issued)]


# Tellers


def _relayed(*tags: int) -> list[Relayed]:
    occasion = Occasion(bytes(32), 0, 0)
    return [Relayed(occasion, 0, b"", (b"",), 0, b"share", bytes([tag]) * 48) for tag in tags]


class _Stream:
    """The packets that one teller is shown. It is asked a few times beyond its end, and not for ever."""

    def __init__(self, rows: list[Relayed]) -> None:
        self.rows, self.beyond = list(rows), 0

    def __aiter__(self) -> AsyncIterator[Relayed]:
        return self

    async def __anext__(self) -> Relayed:
        if self.rows:
            return self.rows.pop(0)
        self.beyond += 1
        assert self.beyond < 20, "asked for ever beyond its end"
        raise StopAsyncIteration


@pytest.mark.parametrize("shown", [
    [[1, 2, 3, 4], [1, 2, 3, 4]], [[2, 3, 4], [1, 2, 3, 4]], [[1, 3, 4], [1, 2, 4]], [[1, 2], [1, 2, 3, 4]],
    [[1, 2, 3], [3]], [[], [1, 2]],
    [[1, 2, 3, 4], [2, 4], [1, 2, 3, 4]], [[1], [2]],
], ids=str)  # fmt: skip
async def test_every_teller_is_shown_the_same_packets_whichever_shares_are_damaged(shown: list[list[int]]) -> None:
    """A share that is damaged is left out of one teller's stream; that packet is shown to none, and every other to
    all."""
    rows = [row async for row in aligned([_Stream(_relayed(*tags)) for tags in shown])]
    expected = sorted(set.intersection(*map(set, shown)))
    assert [[one.tag[0] for one in row] for row in rows] == [[tag] * len(shown) for tag in expected]


async def test_a_disagreement_is_raised_before_a_fault_that_came_first(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    signed = [
        ListSignature(world.occasion(), at, bytes([at]) * 32).sign(one._key) for at, one in enumerate(world.tellers)
    ]
    disagreed = Disagreed(disagreement_of(signed[0], signed[1], world.arrangement))

    async def fails(error: Exception) -> None:
        raise error

    for errors in (
        [TellerAway("one", ""), disagreed],
        [disagreed, TellerAway("one", "")],
        [Refused("no"), disagreed, Refused("no")],
    ):
        with pytest.raises(Disagreed):
            await together(map(fails, errors))


async def test_a_teller_s_silence_and_trouble_are_waited_for_and_a_refusal_is_not() -> None:
    async def fails(error: Exception) -> None:
        raise error

    for error, told in (
        (Unreachable("away"), TellerAway),
        (NoRoom("full"), TellerAway),
        (Refused("no"), TellerRefuses),
        (Malformed("x"), TellerRefuses),
    ):
        with pytest.raises(told, match="clinic"):
            await named("clinic", fails(error))


class _Deaf:
    """A route that gets no answer so often."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.posts = 0

    async def post(self, _address: str, _path: str, _body: bytes, _limit: int) -> Response:
        self.posts += 1
        if self.posts <= self.left:
            raise Unreachable("nothing answers")
        return Response(200, reply([]))


@pytest.mark.parametrize("times", range(4))
async def test_a_teller_that_does_not_answer_is_asked_again_after_each_pause(times: int) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    route = _Deaf(times)
    link = HttpLink(route, "place", SigningKey.generate(), bytes(32), None, sleep)  # type: ignore[arg-type]
    if times > len(PAUSES):
        with pytest.raises(Unreachable):
            await link.finish(bytes(32))
    else:
        await link.finish(bytes(32))
    assert PAUSES == (1.0, 4.0), "a second and a few: a restarting teller is back by then"
    assert (slept, route.posts) == (list(PAUSES[:times]), min(times, len(PAUSES)) + 1)


# Counts


def test_an_accepted_packet_is_no_refusal() -> None:
    assert Traffic(3, {}, {"accepted": 2, "tag-spent": 1}).refused == {"tag-spent": 1}


def test_no_count_that_still_grows_is_shown_exactly() -> None:
    """The step of an exact count would tell that one answer came, and when."""
    counts = Counters({"accepted": 3 * STEP + 7, "tag-spent": STEP - 1, "malformed": STEP})
    assert STEP == 50 and counts.coarse() == {"accepted": 150, "malformed": 50} == counts.due(rest=False)
    assert counts.exact() == {"accepted": 157, "malformed": 50, "tag-spent": 49} == counts.due(rest=True)
    for number in range(3 * STEP):
        growing = Count.shown(number, final=False)
        assert growing.number % STEP == 0 and growing.number <= number < growing.number + STEP
        assert str(growing) == (f"{growing.number} or more" if number >= STEP else "fewer than 50")
        assert str(Count.shown(number, final=True)) == str(number)


@pytest.mark.slow
async def test_refusals_are_told_in_steps_until_the_collection_closes(running: World) -> None:
    await running.collecting(3)
    for _ in range(STEP + 1):
        await running.live.submit(b"too short")
    (status,) = await running.app.status()
    assert status.packet_answers == {"wrong-size": STEP}
    await running.go_to(running.closes)
    (status,) = await running.app.status()
    assert status.packet_answers["wrong-size"] == STEP + 1


# Words


def test_a_packet_that_nobody_kept_is_not_acknowledged(tmp_path: Path) -> None:
    packet = make_world(tmp_path).packets()[0].published()
    kept = AcceptedPacket(0, packet.tag, 0, packet.to_bytes(), sha256(labels.PACKET_DIGEST, packet.to_bytes()))
    assert settle(OpenedPacket(packet, kept), None) == "window-closed"
    assert settle(OpenedPacket(packet, kept), bytes(32)) == "tag-spent"
    assert settle(OpenedPacket(packet, kept), kept.digest) == "accepted"


def test_an_invite_has_120_random_bits() -> None:
    drawn = draw_invites("127.0.0.1:80", bytes(32), bytes(32), 50, os.urandom)
    assert {len(bytes.fromhex(invite.code)) for invite, _ in drawn} == {15} and len(
        {invite.code for invite, _ in drawn}
    ) == 50
