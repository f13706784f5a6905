"""Copies of one home: they cannot know of each other, and all make the same packet. Never a second perturbation."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from village import BINNED, DECLARED, PAPER, Village, peer, reopened

from anon.encoding import encode
from anon.errors import Refused
from anon.messages import unseal
from peer.app import PeerApp
from peer.backup import backup, restore
from peer.data.importing import import_file
from peer.home import PeerHome
from peer.records import Status
from peer.release import MASK_KEY_SIZE, Drawn, random_sizes
from peer.secrets import StudySecrets
from peer.session import State


def own_data(home: Path, age: int, cups: str) -> None:
    """Replace the owner's table."""
    PeerHome(home).prepare()
    file = home.with_suffix(".csv")
    file.write_text(f"age,cups,tired\n{age},{cups},{age % 2}\n")
    import_file(PeerHome(home).data_path, file, "person")


async def advance_all(apps: Sequence[PeerApp], village: Village, until: float) -> None:
    """Step all of them, moving the clock from one due time to the next."""
    for _ in range(2000):
        dues = [await app.step(village.study) for app in apps]
        due = min((one for one in dues if one is not None), default=until)
        village.clock.seconds = max(village.clock.seconds, min(due, until))
        if due >= until:
            return
    raise AssertionError("the study does not come to rest")


async def whole_study(apps: Sequence[PeerApp], village: Village) -> None:
    table, surveys = village.manifest.timetable, village.manifest.surveys
    await advance_all(apps, village, table.enrol_closes - 1)
    village.crowd(5)
    village.clock.seconds = table.enrol_closes
    village.close()
    rounds = sorted({(one.window.closes, one.round) for one in surveys if one.kind != "histogram"})
    for closes, turn in rounds:
        await advance_all(apps, village, closes)
        final = turn == rounds[-1][1]
        found = {
            one.features[0]: [40, [5] * one.m if one.kind == "quantile" else 30]
            for one in surveys
            if one.kind != "histogram" and one.round == turn
        }
        head = [1, village.study] if final else [1, village.study, turn + 1]
        village.publish("edges" if final else "thresholds", encode([*head, found]), 0 if final else turn + 1)
    await advance_all(apps, village, max(one.window.closes for one in surveys))


def plaintexts(village: Village) -> set[bytes]:
    return {unseal(body, bytes(village.sealing)) for body in village.sent("packets")}


async def joined(tmp_path: Path, village: Village) -> PeerApp:
    own_data(tmp_path / "old", 44, "some")
    app = peer(tmp_path / "old", village)
    await app.join(village.invite, village.manifest.epsilon)
    await app.step(village.study)
    return app


@pytest.mark.parametrize(("text", "packets"), [(DECLARED, 1), (BINNED, 1), (PAPER, 3)])
async def test_three_copies_of_one_final_backup_send_one_plaintext_per_slot(
    tmp_path: Path, text: str, packets: int
) -> None:
    village = Village.found(text)
    (await joined(tmp_path, village)).close()
    assert backup(PeerHome(tmp_path / "old"), tmp_path / "backup", final=True) == 1
    copies = []
    for number, (age, cups) in enumerate([(44, "some"), (20, "none"), (70, "many")]):
        home = PeerHome(tmp_path / str(number))
        restore(home, tmp_path / "backup", village.clock())
        own_data(home.path, age, cups)  # the copies' data part; their answers do not
        copies.append(reopened(home, village))
    await whole_study(copies, village)
    assert len(village.sent("packets")) == 3 * packets
    assert len(plaintexts(village)) == packets == len(village.accepted)
    for copy in copies:
        assert [slot.status for slot in copy.status()[0].slots] == [Status.DELIVERED] * packets


async def test_a_copy_beside_the_living_home_sends_the_same_plaintext(tmp_path: Path) -> None:
    village = Village.found()
    app = await joined(tmp_path, village)
    assert app.status()[0].state is State.ENROLLED
    assert backup(PeerHome(tmp_path / "old"), tmp_path / "backup") == 1
    assert backup(PeerHome(tmp_path / "old"), tmp_path / "later") == 0  # fixed once
    own_data(tmp_path / "old", 90, "none")
    restore(PeerHome(tmp_path / "new"), tmp_path / "backup", village.clock())
    both = [app, reopened(PeerHome(tmp_path / "new"), village)]
    await whole_study(both, village)
    assert len(village.sent("packets")) == 2
    assert len(plaintexts(village)) == 1


async def test_what_a_backup_fixed_is_erased_with_the_secrets(tmp_path: Path) -> None:
    village = Village.found()
    app = await joined(tmp_path, village)
    secrets = StudySecrets.from_bytes(app.store.study(village.study).secrets[1:])
    backup(PeerHome(tmp_path / "old"), tmp_path / "backup")
    kept = app.store.study(village.study).snapshot
    await app.leave(village.study)
    assert await app.step(village.study) is not None
    known = app.store.study(village.study)
    assert (known.state, known.snapshot, known.secrets) == (State.WITHDRAWN, None, None)
    for path in (tmp_path / "old").glob("peer.sqlite*"):
        assert not any(part in path.read_bytes() for part in (kept, *secrets.drawn))


@pytest.mark.parametrize("earlier", [True, False])
async def test_a_home_closed_by_a_final_backup_is_never_opened_again(tmp_path: Path, earlier: bool) -> None:
    village = Village.found()
    (await joined(tmp_path, village)).close()
    backup(PeerHome(tmp_path / "old"), tmp_path / "backup")
    backup(PeerHome(tmp_path / "old"), tmp_path / "final", final=True)
    with pytest.raises(Refused, match="closed by a final backup"):
        restore(PeerHome(tmp_path / "old"), tmp_path / ("backup" if earlier else "final"), village.clock())
    with pytest.raises(Refused, match="moved elsewhere"):
        await reopened(PeerHome(tmp_path / "old"), village).step(village.study)


async def test_a_final_backup_goes_into_an_empty_home_only(tmp_path: Path) -> None:
    village = Village.found()
    (await joined(tmp_path, village)).close()
    backup(PeerHome(tmp_path / "old"), tmp_path / "final", final=True)
    restore(PeerHome(tmp_path / "new"), tmp_path / "final", village.clock())
    peer(tmp_path / "other", village).close()
    for taken in ("new", "other"):
        with pytest.raises(Refused, match="empty folder"):
            restore(PeerHome(tmp_path / taken), tmp_path / "final", village.clock())


@pytest.mark.parametrize("text", [DECLARED, BINNED, PAPER])
async def test_all_randomness_of_packets_is_drawn_at_the_join_and_its_size_tells_nothing(
    tmp_path: Path, text: str
) -> None:
    """Whichever rows the slots draw, the same bytes are asked for at the join, and none but for times afterwards."""
    asked_at_join, rows = set(), set()
    for turn in range(4):
        village = Village.found(text)
        asked: list[int] = []

        def drawing(size: int, asked: list[int] = asked) -> bytes:
            asked.append(size)
            return os.urandom(size)

        home = tmp_path / str(turn)
        peer(home, village).close()
        app = PeerApp(PeerHome(home), lambda village=village: village, village.clock, drawing)
        await app.join(village.invite, village.manifest.epsilon)
        asked_at_join.add(tuple(asked))
        asked.clear()
        await whole_study([app], village)
        assert len(village.sent("packets")) == village.manifest.packets
        assert set(asked) == {8}  # times of sending and fetching
        rows.add(app.store.study(village.study).draws)
    assert len(asked_at_join) == 1
    assert set(random_sizes(village.manifest)) <= set(next(iter(asked_at_join)))


def test_sizes_cover_the_dearest_row_of_each_slot() -> None:
    manifest = Village.found(BINNED).manifest
    needs = [[manifest.survey(row.survey).build().random_size for row in slot.rows] for slot in manifest.slots]
    assert [size - 32 - MASK_KEY_SIZE for size in random_sizes(manifest)] == [max(row) for row in needs]


def test_drawn_bytes_are_given_once_and_no_more_than_there_are() -> None:
    stored = os.urandom(20 + MASK_KEY_SIZE)
    source, again = Drawn(stored, b"grounds"), Drawn(stored, b"grounds")
    assert source(8) + source(12) == again(20)
    with pytest.raises(ValueError, match="at most 0"):
        source(1)


def test_the_mask_never_touches_uniformity_and_parts_other_grounds() -> None:
    """For fixed key and grounds the given bytes are the drawn ones plus a constant: a bijection, so still uniform."""
    key, first, second = os.urandom(MASK_KEY_SIZE), os.urandom(24), os.urandom(24)

    def given(drawn: bytes, *grounds: bytes, under: bytes = key) -> int:
        return int.from_bytes(Drawn(drawn + under, *grounds)(24), "big")

    apart = int.from_bytes(first, "big") ^ int.from_bytes(second, "big")
    assert given(first, b"one") ^ given(second, b"one") == apart
    others = {given(first, b"one"), given(first, b"two"), given(first, b"o", b"ne"), given(first, b"one", under=bytes(32))}
    assert len(others) == 4
