"""A teller's folder and journal: one process, one key, a full disk, a file that is damaged or a newer program's."""

from __future__ import annotations

import gc
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from anon.errors import Damaged, NoRoom, Refused
from anon.sharing.arrangement import Sum
from anon.teller.home import open_home
from anon.teller.journal import SCHEMA, Journal
from anon.teller.session import Teller
from anon.vdaf.circuits import blocks
from tests.support.canaries import forgetful_sqlite
from tests.support.reopened_teller import reopened
from tests.support.tellers import PLACES, SILENT, expected, held_tags, ready_world


def test_a_home_keeps_its_key(tmp_path: Path) -> None:
    first = open_home(tmp_path / "home", os.urandom)
    assert bytes(open_home(tmp_path / "home", os.urandom).key) == bytes(first.key)
    assert first.path.stat().st_mode & 0o777 == 0o700


def test_one_process_serves_a_home(tmp_path: Path) -> None:
    home = open_home(tmp_path, os.urandom)
    held = home.lock()
    with pytest.raises(Refused, match="another process"):
        home.lock()
    os.close(held)
    os.close(home.lock())


@pytest.mark.parametrize("key", [None, b"", bytes(31)])
def test_a_key_that_is_gone_or_cut_is_not_replaced(tmp_path: Path, key: bytes | None) -> None:
    home = open_home(tmp_path, os.urandom)
    Journal(home.journal).close()
    (tmp_path / "signing.key").unlink()
    if key is not None:
        (tmp_path / "signing.key").write_bytes(key)
    with pytest.raises(Damaged, match=r"signing\.key"):
        open_home(tmp_path, os.urandom)


def test_the_first_noisy_share_holds(tmp_path: Path) -> None:
    """Also where two calls got past the look before it."""
    world = ready_world(tmp_path)
    journal, occasion = world.journals[0], world.occasion()
    journal.keep_list(occasion, b"list")
    assert journal.keep_noisy(occasion, b"first", [occasion]) == b"first"
    assert journal.keep_noisy(occasion, b"second", [occasion]) == b"first"
    assert journal.end(occasion).noisy == b"first"


def test_the_first_verdict_holds(tmp_path: Path) -> None:
    """Also where two calls got past the look before it: a second verdict would open a second sum."""
    world = ready_world(tmp_path)
    world.admit(world.packets())
    journal, occasion = world.journals[0], world.occasion()
    tag = min(held_tags(journal, occasion))
    for message, valid in ((b"first", True), (b"second", False)):
        journal.keep_verdicts(occasion, {tag: (message, valid)}, occasion)
    (share,) = journal.shares(occasion, [tag])
    assert (share.message, share.accepted) == (b"first", True) and share.output is not None


def test_an_offer_has_two_secrets(tmp_path: Path) -> None:
    """A fellow gets the part of the verification key. It must tell nothing of the key that opens shares."""
    key, journal = reopened(tmp_path)
    offer = journal.offer(Teller(key, journal, os.urandom).offer("clinic", "127.0.0.1:9000").to_bytes())
    assert offer is not None and len({offer.sealing, offer.part}) == 2


def test_a_full_disk_stops_before_anything_is_said(tmp_path: Path) -> None:
    lengths = (200, 200)
    asked = Sum(0, 0, "blocks", blocks(lengths).parameters, SILENT)
    world = ready_world(tmp_path, sums=[asked])
    packets = world.packets()
    connection = world.journals[0]._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(NoRoom, match="nothing that was stored is lost"):
        world.admit(packets)
    assert not held_tags(world.journals[0], world.occasion())
    connection.execute("PRAGMA max_page_count = 1000000")
    assert world.summed(packets).values == expected(PLACES[:4], lengths)


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    file = tmp_path / "teller.sqlite"
    file.write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(Damaged, match=r"teller\.sqlite"):
        Journal(file)


def test_the_journal_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "teller.sqlite"
    Journal(file).close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA.version + 1}")
    with pytest.raises(Refused, match="newer"):
        Journal(file)


def test_a_word_is_durable_before_it_leaves_and_what_is_erased_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share that stayed in the file would make the sum of another list possible, and a lost word would be said
    otherwise."""
    with forgetful_sqlite(monkeypatch):
        world = ready_world(tmp_path)
    world.admit(world.packets())
    connection = world.journals[0]._connection
    settings = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("secure_delete", "synchronous", "journal_mode")
    }
    assert settings == {"secure_delete": 1, "synchronous": 2, "journal_mode": "wal"}
    secrets = [seed or output for seed, output in connection.execute("SELECT seed, output FROM shares")]
    sealing = [secret for (secret,) in connection.execute("SELECT sealing FROM offers")]
    assert len(secrets) == 4 and all(secrets) and all(sealing)
    files = [path for path in (tmp_path / "0").iterdir() if path.name.startswith("teller.sqlite")]
    assert any(secrets[0] in path.read_bytes() for path in files)
    world.tellers[0].finish(world.study, 0)
    left = [one for one in (*secrets, *sealing) for path in files if path.exists() and one in path.read_bytes()]
    assert not left and connection.execute("SELECT count(*) FROM shares").fetchone() == (0,)


def test_a_journal_that_no_program_holds_leaves_no_file_open(tmp_path: Path) -> None:
    """The functions that its connection calls must not know the connection: no collector sees through that."""
    home = open_home(tmp_path, os.urandom)
    journal = Journal(home.journal)
    assert len(_open_below(tmp_path)) > 1
    del journal
    gc.collect()
    assert _open_below(tmp_path) == []


def _open_below(folder: Path) -> list[Path]:
    here = folder.resolve()
    return [path for held in Path("/proc/self/fd").iterdir() if (path := held.resolve()).is_relative_to(here)]
