"""Backup, restore and passphrase: no refilled budget, no second admission, no second perturbation."""

import errno
import os
import zipfile
from pathlib import Path

import pytest

from anon.errors import Malformed, Refused
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.backup.archive import backup, restore
from peer.store.home import PeerHome
from tests.support.fake_aggregator import PAPER, FakeAggregator, advance, peer, reopened, until_closed


async def joined(folder: Path, aggregator: FakeAggregator) -> PeerApp:
    app = peer(folder, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    return app


async def closed(app: PeerApp, aggregator: FakeAggregator) -> None:
    await until_closed(app, aggregator)


def restored(tmp_path: Path, aggregator: FakeAggregator) -> PeerApp:
    home = PeerHome(tmp_path / "new")
    restore(home, tmp_path / "backup", aggregator.clock())
    return reopened(home, aggregator)


async def test_restored_before_any_window_it_enrols_with_the_same_bytes_and_takes_part(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await joined(tmp_path / "old", aggregator)
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    await app.step(aggregator.study)
    app.close()
    app = restored(tmp_path, aggregator)
    await closed(app, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.ends - 1)
    assert len(set(aggregator.sent("enrol"))) == 1
    assert len(aggregator.sent("packets")) == 1


async def test_the_budget_left_is_set_aside_because_it_may_have_been_spent(tmp_path: Path) -> None:
    aggregator, later = FakeAggregator.with_study(), FakeAggregator.with_study()
    app = await joined(tmp_path / "old", aggregator)
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    app.close()
    app = restored(tmp_path, aggregator)
    assert app.budget().available == 0
    other = reopened(PeerHome(tmp_path / "new"), later)
    with pytest.raises(Refused, match="lifetime budget"):
        await other.join(later.invite, later.manifest.epsilon)


async def test_a_final_backup_that_cannot_be_written_closes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home was closed first: a full disk, or a kill, left a closed home and no file."""
    aggregator, home = FakeAggregator.with_study(), PeerHome(tmp_path / "old")
    app = await joined(home.path, aggregator)
    app.close()

    def full(*_given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as filled:
        filled.setattr(zipfile.ZipFile, "writestr", full)
        with pytest.raises(OSError, match="No space"):
            await backup(home, tmp_path / "backup", final=True, evaluate=at_once)
    assert not (tmp_path / "backup").exists()
    await app.step(aggregator.study)
    assert len(aggregator.sent("enrol")) == 1
    app.close()
    await backup(home, tmp_path / "backup", final=True, evaluate=at_once)
    with pytest.raises(Refused, match="moved elsewhere"):
        await app.step(aggregator.study)
    app.close()


async def test_the_file_of_a_final_backup_is_on_the_disk_before_the_home_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aggregator, synced = FakeAggregator.with_study(), list[str]()
    app = await joined(tmp_path / "old", aggregator)
    app.close()
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").resolve().name)
        fsync(descriptor)

    def killed(_store: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr("peer.store.backup.archive._retire", killed)
    with pytest.raises(KeyboardInterrupt):
        await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", final=True, evaluate=at_once)
    assert synced[-2:] == ["backup", tmp_path.name]
    assert restored(tmp_path, aggregator).budget().available > 0


async def test_a_final_backup_moves_the_budget_and_closes_the_old_home(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await joined(tmp_path / "old", aggregator)
    before = app.budget().available
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", final=True, evaluate=at_once)
    with pytest.raises(Refused, match="moved elsewhere"):
        await app.step(aggregator.study)
    other = FakeAggregator.with_study()
    with pytest.raises(Refused, match="moved elsewhere"):
        await reopened(PeerHome(tmp_path / "old"), other).join(other.invite, other.manifest.epsilon)
    app = restored(tmp_path, aggregator)
    assert app.budget().available == before
    await app.step(aggregator.study)
    assert len(aggregator.enrolments) == 1


async def test_an_older_backup_never_replaces_a_newer_ledger(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path / "old", aggregator)
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    held = app.budget().held
    app.close()
    with pytest.raises(Refused, match="newer"):
        restore(PeerHome(tmp_path / "old"), tmp_path / "backup", aggregator.clock())
    assert reopened(PeerHome(tmp_path / "old"), aggregator).budget().held == held > 0


async def test_a_backup_of_another_installation_is_refused(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    peer(tmp_path / "old", aggregator).close()
    peer(tmp_path / "new", aggregator).close()
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    with pytest.raises(Refused, match="of its own"):
        restore(PeerHome(tmp_path / "new"), tmp_path / "backup", aggregator.clock())


async def test_the_outbox_keeps_its_bytes(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await joined(tmp_path / "old", aggregator)
    await closed(app, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.settled - 1)
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    (before,) = app.store.outbox(aggregator.study)
    await advance(app, aggregator, before.send_at)
    app.close()
    app = restored(tmp_path, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.ends - 1)
    assert 1 <= len(aggregator.sent("packets")) <= 2
    assert set(aggregator.sent("packets")) == {before.sealed.ciphertext}


async def test_what_may_have_been_released_since_is_not_perturbed_again(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await joined(tmp_path / "old", aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    await closed(app, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.ends - 1)
    sent = aggregator.sent("packets")
    assert len(sent) == 1
    app.close()
    app = restored(tmp_path, aggregator)
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert aggregator.sent("packets") == sent
    assert status.state is State.STOPPED
    assert status.spent == aggregator.manifest.epsilon  # the whole reservation: it fails closed


async def test_a_half_released_study_sends_its_journal_and_nothing_new(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study(PAPER)
    app = await joined(tmp_path / "old", aggregator)
    await closed(app, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.settled - 1)
    journalled = {one.slot: one.sealed for one in app.store.outbox(aggregator.study)}
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    app.close()
    aggregator.clock.seconds = aggregator.manifest.timetable.settled + 1
    app = restored(tmp_path, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.ends - 1)
    assert set(aggregator.sent("packets")) <= {sealed.ciphertext for sealed in journalled.values() if sealed}
    (status,) = app.status()
    assert status.spent == aggregator.manifest.epsilon
    others = [slot for slot in status.slots if slot.slot not in journalled]
    assert others
    assert all(slot.status is Status.MISSED for slot in others)


async def test_a_file_that_is_no_backup(tmp_path: Path) -> None:
    (tmp_path / "backup").write_bytes(os.urandom(100))
    with pytest.raises(Malformed, match="name another file"):
        restore(PeerHome(tmp_path / "new"), tmp_path / "backup", 0.0)
    assert not PeerHome(tmp_path / "new").store_path.exists()


async def test_a_backup_is_the_owners_alone(tmp_path: Path) -> None:
    peer(tmp_path / "old", FakeAggregator.with_study()).close()
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600


async def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    peer(tmp_path / "old", FakeAggregator.with_study()).close()
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    with pytest.raises(Refused, match="exists already"):
        await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)


async def test_a_passphrase_seals_stored_secrets_and_a_wrong_one_stops_nothing(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await joined(tmp_path, aggregator)
    plain = app.store.study(aggregator.study).secrets
    app.set_passphrase("correct horse")
    sealed = app.store.study(aggregator.study).secrets
    assert plain[1:] not in sealed
    await closed(app, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.settled - 1)
    assert app.status()[0].state is State.CHECKED
    for wrong in (None, "battery staple"):
        with pytest.raises(Refused, match="passphrase"):
            PeerApp(PeerHome(tmp_path), lambda: aggregator, aggregator.clock, os.urandom, wrong)
    app.close()
    app = PeerApp(
        PeerHome(tmp_path), lambda: aggregator, aggregator.clock, os.urandom, "correct horse", evaluate=at_once
    )
    await advance(app, aggregator, aggregator.manifest.timetable.ends - 1)
    assert len(aggregator.sent("packets")) == 1


async def test_a_passphrase_can_be_changed_by_who_gave_the_old_one(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await joined(tmp_path, aggregator)
    app.set_passphrase("first")
    app.set_passphrase("second")
    app.close()
    with pytest.raises(Refused, match="passphrase"):
        PeerApp(PeerHome(tmp_path), lambda: aggregator, aggregator.clock, os.urandom, "first")
    app = PeerApp(PeerHome(tmp_path), lambda: aggregator, aggregator.clock, os.urandom, "second", evaluate=at_once)
    await app.step(aggregator.study)
    await closed(app, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.ends - 1)
    assert len(aggregator.sent("packets")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("had_one", [False, True])
async def test_killed_between_the_settings_and_the_secrets_a_new_passphrase_opens_them(
    tmp_path: Path, had_one: bool
) -> None:
    aggregator = FakeAggregator.with_study()
    app = await joined(tmp_path, aggregator)
    if had_one:
        app.set_passphrase("first")

    def killed(reclose: object) -> None:
        raise KeyboardInterrupt

    app.store.reclose_secrets = killed
    with pytest.raises(KeyboardInterrupt):
        app.set_passphrase("second")
    app.close()
    app = PeerApp(PeerHome(tmp_path), lambda: aggregator, aggregator.clock, os.urandom, "second", evaluate=at_once)
    assert len(app.study_key(aggregator.study)) == 32


async def test_an_app_that_was_open_before_a_restore_goes_on_with_the_restored_file(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await joined(tmp_path / "home", aggregator)
    await closed(app, aggregator)
    await backup(PeerHome(tmp_path / "home"), tmp_path / "backup", evaluate=at_once)
    restore(PeerHome(tmp_path / "home"), tmp_path / "backup", aggregator.clock())
    other = reopened(PeerHome(tmp_path / "home"), aggregator)
    for one in (app, other):
        await advance(one, aggregator, aggregator.manifest.timetable.ends - 1)
    assert len(set(aggregator.sent("packets"))) == 1  # the slot is perturbed once, whichever of the two runs first
    assert other.receipts() == app.receipts() != []
