"""Links that wait for an answer: kept through restarts, closed as secrets are, erased by a yes or a no."""

import os
from pathlib import Path

from attrs import evolve
from village import Village, peer

from peer.app import PeerApp
from peer.backup import backup, restore
from peer.home import PeerHome

CODE = "a-code-that-admits-one-person"


def _bytes_of(home: Path) -> bytes:
    return b"".join(one.read_bytes() for one in home.rglob("*") if one.is_file())


def _again(home: Path, village: Village, passphrase: str | None = None) -> PeerApp:
    return PeerApp(PeerHome(home), lambda: village, village.clock, os.urandom, passphrase)


async def test_a_link_waits_through_a_restart_and_a_backup_the_newest_last(tmp_path: Path) -> None:
    village = Village.found()
    app, invite = peer(tmp_path / "old", village), evolve(village.invite, code=CODE)
    other = evolve(invite, study=bytes(32))
    app.waiting.update({invite.study: invite, other.study: other})
    app.waiting[invite.study] = invite  # pasted again
    app.close()
    assert list(_again(tmp_path / "old", village).waiting.items()) == [(other.study, other), (invite.study, invite)]
    backup(PeerHome(tmp_path / "old"), tmp_path / "file")
    restore(PeerHome(tmp_path / "new"), tmp_path / "file", village.clock())
    assert _again(tmp_path / "new", village).waiting[invite.study] == invite


async def test_its_code_is_under_the_passphrase_and_gone_with_a_no(tmp_path: Path) -> None:
    village = Village.found()
    app = peer(tmp_path, village)
    app.waiting[village.study] = evolve(village.invite, code=CODE)
    assert CODE.encode() in _bytes_of(tmp_path)
    app.set_passphrase("correct horse")
    assert CODE.encode() not in _bytes_of(tmp_path)
    app.close()
    app = _again(tmp_path, village, "correct horse")
    assert app.waiting[village.study].code == CODE
    del app.waiting[village.study]
    assert len(app.waiting) == 0


async def test_without_a_passphrase_a_no_erases_the_bytes_of_its_code(tmp_path: Path) -> None:
    village = Village.found()
    app = peer(tmp_path, village)
    app.waiting[village.study] = evolve(village.invite, code=CODE)
    del app.waiting[village.study]
    assert CODE.encode() not in _bytes_of(tmp_path)


async def test_a_yes_by_any_program_ends_the_waiting(tmp_path: Path) -> None:
    village = Village.found()
    app = peer(tmp_path, village)
    app.waiting[village.study] = village.invite
    await app.join(village.invite, village.manifest.epsilon)
    assert dict(app.waiting) == {}
