"""Copies of one home: they cannot know of each other, and all make the same packet. Never a second perturbation."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from anon.errors import Refused
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.data.importing import import_file
from peer.release import MASK_KEY_SIZE, SlotRandomness, random_sizes
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.rules.study_secrets import StudySecrets
from peer.store.backup.archive import backup, restore
from peer.store.home import PeerHome
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator, peer, reopened, stored


def own_data(home: Path, age: int, cups: str) -> None:
    """Replace the owner's table."""
    PeerHome(home).prepare()
    file = home.with_suffix(".csv")
    file.write_text(f"age,cups,tired\n{age},{cups},{age % 2}\n")
    import_file(PeerHome(home).data_path, file, "person")


async def advance_all(apps: Sequence[PeerApp], aggregator: FakeAggregator, until: float) -> None:
    """Step all of them, moving the clock from one due time to the next."""
    for _ in range(2000):
        dues = [await app.step(aggregator.study) for app in apps]
        due = min((one for one in dues if one is not None), default=until)
        aggregator.clock.seconds = max(aggregator.clock.seconds, min(due, until))
        if due >= until:
            return
    raise AssertionError("the study does not come to rest")


async def whole_study(apps: Sequence[PeerApp], aggregator: FakeAggregator) -> None:
    table, surveys = aggregator.manifest.timetable, aggregator.manifest.surveys
    await advance_all(apps, aggregator, table.enrol_closes - 1)
    aggregator.crowd(5)
    aggregator.clock.seconds = table.enrol_closes
    aggregator.close()
    for closes, number in aggregator.rounds:
        await advance_all(apps, aggregator, closes)
        aggregator.publish_counts(number)
    await advance_all(apps, aggregator, max(one.window.closes for one in surveys))


def plaintexts(aggregator: FakeAggregator) -> set[bytes]:
    return {aggregator.opened("packets", body) for body in aggregator.sent("packets")}


async def joined(tmp_path: Path, aggregator: FakeAggregator) -> PeerApp:
    own_data(tmp_path / "old", 44, "some")
    app = peer(tmp_path / "old", aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await app.step(aggregator.study)
    return app


@pytest.mark.slow
@pytest.mark.parametrize(("text", "packets"), [(DECLARED, 1), (BINNED, 1), (PAPER, 3)])
async def test_three_copies_of_one_final_backup_send_one_plaintext_per_slot(
    tmp_path: Path, text: str, packets: int
) -> None:
    aggregator = FakeAggregator.with_study(text)
    (await joined(tmp_path, aggregator)).close()
    assert await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", final=True, evaluate=at_once) == 1
    copies = []
    for number, (age, cups) in enumerate([(44, "some"), (20, "none"), (70, "many")]):
        home = PeerHome(tmp_path / str(number))
        restore(home, tmp_path / "backup", aggregator.clock())
        own_data(home.path, age, cups)  # the copies' data part; their answers do not
        copies.append(reopened(home, aggregator))
    await whole_study(copies, aggregator)
    assert len(aggregator.sent("packets")) == 3 * packets
    assert len(plaintexts(aggregator)) == packets == len(aggregator.accepted)
    for copy in copies:
        assert [slot.status for slot in copy.status()[0].slots] == [Status.DELIVERED] * packets


@pytest.mark.slow
async def test_a_copy_beside_the_living_home_sends_the_same_plaintext(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await joined(tmp_path, aggregator)
    assert app.status()[0].state is State.ENROLLED
    assert await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once) == 1
    assert await backup(PeerHome(tmp_path / "old"), tmp_path / "later", evaluate=at_once) == 0  # fixed once
    own_data(tmp_path / "old", 90, "none")
    restore(PeerHome(tmp_path / "new"), tmp_path / "backup", aggregator.clock())
    both = [app, reopened(PeerHome(tmp_path / "new"), aggregator)]
    await whole_study(both, aggregator)
    assert len(aggregator.sent("packets")) == 2
    assert len(plaintexts(aggregator)) == 1


async def test_what_a_backup_fixed_is_erased_with_the_secrets(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await joined(tmp_path, aggregator)
    secrets = StudySecrets.from_bytes(app.store.study(aggregator.study).secrets[1:])
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    kept = app.store.study(aggregator.study).snapshot
    await app.leave(aggregator.study)
    assert await app.step(aggregator.study) is not None
    known = app.store.study(aggregator.study)
    assert known.state is State.WITHDRAWN
    assert [stored(app, aggregator.study, column) for column in ("snapshot", "secrets")] == [None, None]
    for path in (tmp_path / "old").glob("peer.sqlite*"):
        assert not any(part in path.read_bytes() for part in (kept, *secrets.drawn))


@pytest.mark.parametrize("earlier", [True, False])
async def test_a_home_closed_by_a_final_backup_is_never_opened_again(tmp_path: Path, earlier: bool) -> None:
    aggregator = FakeAggregator.with_study()
    (await joined(tmp_path, aggregator)).close()
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    await backup(PeerHome(tmp_path / "old"), tmp_path / "final", final=True, evaluate=at_once)
    with pytest.raises(Refused, match="closed by a final backup"):
        restore(PeerHome(tmp_path / "old"), tmp_path / ("backup" if earlier else "final"), aggregator.clock())
    with pytest.raises(Refused, match="moved elsewhere"):
        await reopened(PeerHome(tmp_path / "old"), aggregator).step(aggregator.study)


async def test_a_final_backup_goes_into_an_empty_home_only(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    (await joined(tmp_path, aggregator)).close()
    await backup(PeerHome(tmp_path / "old"), tmp_path / "final", final=True, evaluate=at_once)
    restore(PeerHome(tmp_path / "new"), tmp_path / "final", aggregator.clock())
    peer(tmp_path / "other", aggregator).close()
    for taken in ("new", "other"):
        with pytest.raises(Refused, match="empty folder"):
            restore(PeerHome(tmp_path / taken), tmp_path / "final", aggregator.clock())


@pytest.mark.slow
@pytest.mark.parametrize("text", [DECLARED, BINNED, PAPER])
async def test_all_randomness_of_packets_is_drawn_at_the_join_and_its_size_tells_nothing(
    tmp_path: Path, text: str
) -> None:
    """Whichever rows the slots draw, the same bytes are asked for at the join, and none but for times afterwards."""
    asked_at_join, rows = set(), set()
    for turn in range(4):
        aggregator = FakeAggregator.with_study(text)
        asked: list[int] = []

        def drawing(size: int, asked: list[int] = asked) -> bytes:
            asked.append(size)
            return os.urandom(size)

        home = tmp_path / str(turn)
        peer(home, aggregator).close()
        app = PeerApp(
            PeerHome(home), lambda aggregator=aggregator: aggregator, aggregator.clock, drawing, evaluate=at_once
        )
        await app.join(aggregator.invite, aggregator.manifest.epsilon)
        asked_at_join.add(tuple(asked))
        asked.clear()
        await whole_study([app], aggregator)
        assert len(aggregator.sent("packets")) == aggregator.manifest.packets
        assert set(asked) == {8, 32}  # times of sending and fetching
        assert asked.count(32) == 1  # the coefficients that fold everybody's credentials, which are public
        rows.add(app.store.study(aggregator.study).draws)
    assert len(asked_at_join) == 1
    assert set(random_sizes(aggregator.manifest)) <= set(next(iter(asked_at_join)))


def test_sizes_cover_the_dearest_row_of_each_slot() -> None:
    manifest = FakeAggregator.with_study(BINNED).manifest
    needs = [[manifest.survey(row.survey).build().random_size for row in slot.rows] for slot in manifest.slots]
    assert [size - 32 - MASK_KEY_SIZE for size in random_sizes(manifest)] == [max(row) for row in needs]


def test_drawn_bytes_are_given_once_and_no_more_than_there_are() -> None:
    stored = os.urandom(20 + MASK_KEY_SIZE)
    source, again = SlotRandomness(stored, b"grounds"), SlotRandomness(stored, b"grounds")
    assert source(8) + source(12) == again(20)
    with pytest.raises(ValueError, match="at most 0"):
        source(1)


def test_the_mask_never_touches_uniformity_and_parts_other_grounds() -> None:
    """For fixed key and grounds the given bytes are the drawn ones plus a constant: a bijection, so still uniform."""
    key, first, second = os.urandom(MASK_KEY_SIZE), os.urandom(24), os.urandom(24)

    def given(drawn: bytes, *grounds: bytes, under: bytes = key) -> int:
        return int.from_bytes(SlotRandomness(drawn + under, *grounds)(24), "big")

    apart = int.from_bytes(first, "big") ^ int.from_bytes(second, "big")
    assert given(first, b"one") ^ given(second, b"one") == apart
    others = {
        given(first, b"one"),
        given(first, b"two"),
        given(first, b"o", b"ne"),
        given(first, b"one", under=bytes(32)),
    }
    assert len(others) == 4
