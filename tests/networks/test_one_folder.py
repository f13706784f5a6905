"""One folder for both roles, as typed: publishing from a peer's home, and one backup of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.store.home import open_home
from anon.storage.home import AGGREGATOR, MOVED, aggregators_home
from peer.store.backup.archive import backup, restore
from peer.store.home import PeerHome
from tests.support.course import STUDY


@pytest.fixture
def home(tmp_path: Path, command) -> Path:
    """A peer's home with data, from which a study was published."""
    table = tmp_path / "person.csv"
    table.write_text("age,cups,tired\n20,many,1\n", encoding="utf-8")
    study = tmp_path / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    assert command("import", table).code == 0
    assert command("status").code == 0
    assert command.anonml("study", "publish", study, "--home", command.home).code == 0
    return command.home


@pytest.mark.slow
def test_a_peers_home_takes_the_aggregators_part(home: Path, command) -> None:
    assert (home / AGGREGATOR / "signing.key").stat().st_mode & 0o777 == 0o600
    assert (home / AGGREGATOR).stat().st_mode & 0o777 == 0o700
    assert not (home / "signing.key").exists()
    (status,) = command.anonml("aggregator", "status", "--home", home, "--json").json
    inside = command.anonml("aggregator", "status", "--home", home / AGGREGATOR, "--json").json
    assert inside == [status]
    (link,) = command.anonml("aggregator", "invite", "--home", home, "--json").json
    assert status["study"] in link
    shown = command.anonml("aggregator", "fingerprint", "--home", home, "--json").json
    assert shown["fingerprint"] == status["fingerprint"]
    assert shown["heads"][0]["kind"] == "manifest"
    assert shown["study_qr"]["text"] == f"ANONML-STUDY:{status['fingerprint'].upper()}"
    text = command.anonml("aggregator", "fingerprint", "--home", home, "--qr").out
    assert shown["qr"]["text"] in text
    assert "\N{FULL BLOCK}" in text


def test_an_aggregators_own_folder_stays_what_it_was(tmp_path: Path) -> None:
    assert aggregators_home(tmp_path / "new") == tmp_path / "new"
    assert aggregators_home(open_home(tmp_path / "old", bytes).path) == tmp_path / "old"


def key_of(home: Path) -> bytes:
    return open_home(home / AGGREGATOR, bytes).public_key


def test_one_backup_holds_both_roles(home: Path, tmp_path: Path, command) -> None:
    assert command("backup", tmp_path / "both").code == 0
    done = command("restore", tmp_path / "both", home=tmp_path / "new")
    assert done.code == 0
    assert "its aggregator too" in done.out
    assert key_of(tmp_path / "new") == key_of(home)
    before, after = (
        command.anonml("aggregator", "status", "--home", one, "--json").json for one in (home, tmp_path / "new")
    )
    assert before == after
    modes = {one.stat().st_mode & 0o777 for one in (tmp_path / "new" / AGGREGATOR).rglob("*") if one.is_file()}
    assert modes == {0o600}


def test_a_final_backup_closes_both_roles_here(home: Path, tmp_path: Path, command) -> None:
    key = key_of(home)
    assert command("backup", tmp_path / "both", "--final").code == 0
    assert (home / MOVED).is_dir()
    for words in (["aggregator", "status"], ["aggregator", "init"], ["aggregator", "serve"]):
        done = command.anonml(*words, "--home", home)
        assert done.code == 4
        assert "moved elsewhere" in done.err
    assert command("restore", tmp_path / "both", home=tmp_path / "new").code == 0
    assert key_of(tmp_path / "new") == key
    assert command.anonml("aggregator", "invite", "--home", tmp_path / "new").code == 0


def test_a_final_backup_waits_for_an_aggregator_that_is_served(home: Path, tmp_path: Path, command) -> None:
    with open_home(home / AGGREGATOR, bytes).lock():
        done = command("backup", tmp_path / "both", "--final")
    assert done.code == 4
    assert "being served" in done.err
    assert not (tmp_path / "both").exists()
    assert (home / AGGREGATOR).is_dir()
    assert command("backup", tmp_path / "both", "--final").code == 0


async def test_a_restore_replaces_no_living_aggregator(home: Path, tmp_path: Path) -> None:
    await backup(PeerHome(home), tmp_path / "both")
    marker = home / AGGREGATOR / "later"
    marker.write_text("signed since")
    assert not restore(PeerHome(home), tmp_path / "both", 0.0).aggregator
    assert marker.exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aggregator/../peer.sqlite", "aggregator/a/b", "aggregator/.x", "aggregator/", "x"])
async def test_a_backup_with_other_names_is_none(home: Path, tmp_path: Path, command, name: str) -> None:
    import zipfile

    await backup(PeerHome(home), tmp_path / "both")
    with zipfile.ZipFile(tmp_path / "both", "a") as archive:
        archive.writestr(name, b"")
    assert command("restore", tmp_path / "both", home=tmp_path / "new").code == 3
    assert not (tmp_path / "new" / AGGREGATOR).exists()
