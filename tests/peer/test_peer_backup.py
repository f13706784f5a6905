"""Backup, restore and passphrase: no refilled budget, no second admission, no second perturbation."""

import os
from pathlib import Path

import pytest
from village import PAPER, Village, advance, peer, reopened

from anon.errors import Malformed, Refused
from peer.app import PeerApp
from peer.backup import backup, restore
from peer.home import PeerHome
from peer.records import Status
from peer.session import State


async def joined(folder: Path, village: Village) -> PeerApp:
    app = peer(folder, village)
    await app.join(village.invite, village.manifest.epsilon)
    return app


async def closed(app: PeerApp, village: Village) -> None:
    await advance(app, village, village.manifest.timetable.enrol_closes - 1)
    village.crowd(5)
    village.clock.seconds = village.manifest.timetable.enrol_closes
    village.close()


def restored(tmp_path: Path, village: Village) -> PeerApp:
    home = PeerHome(tmp_path / "new")
    restore(home, tmp_path / "backup", village.clock())
    return reopened(home, village)


async def test_restored_before_any_window_it_enrols_with_the_same_bytes_and_takes_part(tmp_path: Path) -> None:
    village = Village.found()
    app = await joined(tmp_path / "old", village)
    backup(PeerHome(tmp_path / "old"), tmp_path / "backup")
    await app.step(village.study)
    app.close()
    app = restored(tmp_path, village)
    await closed(app, village)
    await advance(app, village, village.manifest.timetable.ends - 1)
    assert len(set(village.sent("enrol"))) == 1
    assert len(village.sent("packets")) == 1


async def test_the_budget_left_is_set_aside_because_it_may_have_been_spent(tmp_path: Path) -> None:
    village, later = Village.found(), Village.found()
    app = await joined(tmp_path / "old", village)
    backup(PeerHome(tmp_path / "old"), tmp_path / "backup")
    app.close()
    app = restored(tmp_path, village)
    assert app.budget().available == 0
    other = reopened(PeerHome(tmp_path / "new"), later)
    with pytest.raises(Refused, match="lifetime budget"):
        await other.join(later.invite, later.manifest.epsilon)


async def test_a_final_backup_moves_the_budget_and_closes_the_old_home(tmp_path: Path) -> None:
    village = Village.found()
    app = await joined(tmp_path / "old", village)
    before = app.budget().available
    backup(PeerHome(tmp_path / "old"), tmp_path / "backup", final=True)
    with pytest.raises(Refused, match="moved elsewhere"):
        await app.step(village.study)
    other = Village.found()
    with pytest.raises(Refused, match="moved elsewhere"):
        await reopened(PeerHome(tmp_path / "old"), other).join(other.invite, other.manifest.epsilon)
    app = restored(tmp_path, village)
    assert app.budget().available == before
    await app.step(village.study)
    assert len(village.enrolments) == 1


async def test_an_older_backup_never_replaces_a_newer_ledger(tmp_path: Path) -> None:
    village = Village.found()
    app = peer(tmp_path / "old", village)
    backup(PeerHome(tmp_path / "old"), tmp_path / "backup")
    await app.join(village.invite, village.manifest.epsilon)
    held = app.budget().held
    app.close()
    with pytest.raises(Refused, match="newer"):
        restore(PeerHome(tmp_path / "old"), tmp_path / "backup", village.clock())
    assert reopened(PeerHome(tmp_path / "old"), village).budget().held == held > 0


async def test_a_backup_of_another_installation_is_refused(tmp_path: Path) -> None:
    village = Village.found()
    peer(tmp_path / "old", village).close()
    peer(tmp_path / "new", village).close()
    backup(PeerHome(tmp_path / "old"), tmp_path / "backup")
    with pytest.raises(Refused, match="of its own"):
        restore(PeerHome(tmp_path / "new"), tmp_path / "backup", village.clock())


async def test_the_outbox_keeps_its_bytes(tmp_path: Path) -> None:
    village = Village.found()
    app = await joined(tmp_path / "old", village)
    await closed(app, village)
    await advance(app, village, village.manifest.timetable.settled - 1)
    backup(PeerHome(tmp_path / "old"), tmp_path / "backup")
    (before,) = app.store.outbox(village.study)
    await advance(app, village, before.send_at)
    app.close()
    app = restored(tmp_path, village)
    await advance(app, village, village.manifest.timetable.ends - 1)
    assert 1 <= len(village.sent("packets")) <= 2
    assert set(village.sent("packets")) == {before.sealed.ciphertext}


async def test_what_may_have_been_released_since_is_not_perturbed_again(tmp_path: Path) -> None:
    village = Village.found()
    app = await joined(tmp_path / "old", village)
    await advance(app, village, village.manifest.timetable.enrol_closes - 1)
    backup(PeerHome(tmp_path / "old"), tmp_path / "backup")
    await closed(app, village)
    await advance(app, village, village.manifest.timetable.ends - 1)
    sent = village.sent("packets")
    assert len(sent) == 1
    app.close()
    app = restored(tmp_path, village)
    assert await advance(app, village) is None
    (status,) = app.status()
    assert village.sent("packets") == sent
    assert status.state is State.STOPPED
    assert status.spent == village.manifest.epsilon  # the whole reservation: it fails closed


async def test_a_half_released_study_sends_its_journal_and_nothing_new(tmp_path: Path) -> None:
    village = Village.found(PAPER)
    app = await joined(tmp_path / "old", village)
    await closed(app, village)
    await advance(app, village, village.manifest.timetable.settled - 1)
    journalled = {one.slot: one.sealed for one in app.store.outbox(village.study)}
    backup(PeerHome(tmp_path / "old"), tmp_path / "backup")
    app.close()
    village.clock.seconds = village.manifest.timetable.settled + 1
    app = restored(tmp_path, village)
    await advance(app, village, village.manifest.timetable.ends - 1)
    assert set(village.sent("packets")) <= {sealed.ciphertext for sealed in journalled.values() if sealed}
    (status,) = app.status()
    assert status.spent == village.manifest.epsilon
    others = [slot for slot in status.slots if slot.slot not in journalled]
    assert others
    assert all(slot.status is Status.MISSED for slot in others)


async def test_a_file_that_is_no_backup(tmp_path: Path) -> None:
    (tmp_path / "backup").write_bytes(os.urandom(100))
    with pytest.raises(Malformed, match="name another file"):
        restore(PeerHome(tmp_path / "new"), tmp_path / "backup", 0.0)
    assert not PeerHome(tmp_path / "new").store_path.exists()


async def test_a_backup_is_the_owners_alone_and_overwrites_nothing(tmp_path: Path) -> None:
    peer(tmp_path / "old", Village.found()).close()
    backup(PeerHome(tmp_path / "old"), tmp_path / "backup")
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600
    with pytest.raises(Refused, match="exists already"):
        backup(PeerHome(tmp_path / "old"), tmp_path / "backup")


async def test_a_passphrase_seals_stored_secrets_and_a_wrong_one_stops_nothing(tmp_path: Path) -> None:
    village = Village.found()
    app = await joined(tmp_path, village)
    plain = app.store.study(village.study).secrets
    app.set_passphrase("correct horse")
    sealed = app.store.study(village.study).secrets
    assert plain[1:] not in sealed
    await closed(app, village)
    await advance(app, village, village.manifest.timetable.settled - 1)
    assert app.status()[0].state is State.CHECKED
    for wrong in (None, "battery staple"):
        with pytest.raises(Refused, match="passphrase"):
            PeerApp(PeerHome(tmp_path), lambda: village, village.clock, os.urandom, wrong)
    app.close()
    app = PeerApp(PeerHome(tmp_path), lambda: village, village.clock, os.urandom, "correct horse")
    await advance(app, village, village.manifest.timetable.ends - 1)
    assert len(village.sent("packets")) == 1


async def test_a_passphrase_can_be_changed_by_who_gave_the_old_one(tmp_path: Path) -> None:
    village = Village.found()
    app = await joined(tmp_path, village)
    app.set_passphrase("first")
    app.set_passphrase("second")
    app.close()
    with pytest.raises(Refused, match="passphrase"):
        PeerApp(PeerHome(tmp_path), lambda: village, village.clock, os.urandom, "first")
    app = PeerApp(PeerHome(tmp_path), lambda: village, village.clock, os.urandom, "second")
    await app.step(village.study)
    await closed(app, village)
    await advance(app, village, village.manifest.timetable.ends - 1)
    assert len(village.sent("packets")) == 1


@pytest.mark.parametrize("had_one", [False, True])
async def test_killed_between_the_settings_and_the_secrets_a_new_passphrase_opens_them(
    tmp_path: Path, had_one: bool
) -> None:
    village = Village.found()
    app = await joined(tmp_path, village)
    if had_one:
        app.set_passphrase("first")

    def killed(reclose: object) -> None:
        raise KeyboardInterrupt

    app.store.reclose_secrets = killed
    with pytest.raises(KeyboardInterrupt):
        app.set_passphrase("second")
    app.close()
    app = PeerApp(PeerHome(tmp_path), lambda: village, village.clock, os.urandom, "second")
    assert len(app.study_key(village.study)) == 32


async def test_an_app_that_was_open_before_a_restore_goes_on_with_the_restored_file(tmp_path: Path) -> None:
    village = Village.found()
    app = await joined(tmp_path / "home", village)
    await closed(app, village)
    backup(PeerHome(tmp_path / "home"), tmp_path / "backup")
    restore(PeerHome(tmp_path / "home"), tmp_path / "backup", village.clock())
    other = reopened(PeerHome(tmp_path / "home"), village)
    for one in (app, other):
        await advance(one, village, village.manifest.timetable.ends - 1)
    assert len(set(village.sent("packets"))) == 1  # the slot is perturbed once, whichever of the two runs first
    assert other.receipts() == app.receipts() != []
