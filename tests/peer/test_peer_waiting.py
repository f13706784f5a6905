"""Links that wait for an answer: kept through restarts, closed as secrets are, erased by a yes or a no."""

import os
from pathlib import Path

from attrs import evolve

from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.store.backup.archive import backup, restore
from peer.store.home import PeerHome
from tests.support.fake_aggregator import FakeAggregator, peer

CODE = "a-code-that-admits-one-person"


def _bytes_of(home: Path) -> bytes:
    return b"".join(one.read_bytes() for one in home.rglob("*") if one.is_file())


def _again(home: Path, aggregator: FakeAggregator, passphrase: str | None = None) -> PeerApp:
    return PeerApp(PeerHome(home), lambda: aggregator, aggregator.clock, os.urandom, passphrase)


async def test_a_link_waits_through_a_restart_and_a_backup_the_newest_last(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app, invite = peer(tmp_path / "old", aggregator), evolve(aggregator.invite, code=CODE)
    other = evolve(invite, study=bytes(32))
    app.waiting.update({invite.study: invite, other.study: other})
    app.waiting[invite.study] = invite  # pasted again
    app.close()
    assert list(_again(tmp_path / "old", aggregator).waiting.items()) == [(other.study, other), (invite.study, invite)]
    await backup(PeerHome(tmp_path / "old"), tmp_path / "file", evaluate=at_once)
    restore(PeerHome(tmp_path / "new"), tmp_path / "file", aggregator.clock())
    assert _again(tmp_path / "new", aggregator).waiting[invite.study] == invite


async def test_its_code_is_under_the_passphrase_and_gone_with_a_no(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    app.waiting[aggregator.study] = evolve(aggregator.invite, code=CODE)
    assert CODE.encode() in _bytes_of(tmp_path)
    app.set_passphrase("correct horse")
    assert CODE.encode() not in _bytes_of(tmp_path)
    app.close()
    app = _again(tmp_path, aggregator, "correct horse")
    assert app.waiting[aggregator.study].code == CODE
    del app.waiting[aggregator.study]
    assert len(app.waiting) == 0


async def test_without_a_passphrase_a_no_erases_the_bytes_of_its_code(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    app.waiting[aggregator.study] = evolve(aggregator.invite, code=CODE)
    del app.waiting[aggregator.study]
    assert CODE.encode() not in _bytes_of(tmp_path)


async def test_a_yes_by_any_program_ends_the_waiting(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    app.waiting[aggregator.study] = aggregator.invite
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    assert dict(app.waiting) == {}
