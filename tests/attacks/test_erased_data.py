"""Data that the owner deleted, replaced or failed to import is left in no byte of any file."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from anon.errors import Refused
from anon.protocols.models.tables import from_json
from anon.queries.sandbox import plain_tables_of
from anon.storage.overwriting import remove_file
from peer.app import PeerApp
from peer.data.deleting import delete_all, delete_table
from peer.data.importing import import_rows
from peer.predict import predict_people
from peer.rules.lifecycle import State
from peer.rules.study_secrets import StudySecrets
from peer.store.home import PeerHome
from tests.support.browsing_model import model_of
from tests.support.canaries import CANARIES, NUMBER, TEXT, WHOLE, forgetful_sqlite, spellings, traces
from tests.support.fake_aggregator import DECLARED, PAPER, FakeAggregator, peer
from tests.support.whole_lives import COLUMNS, ROW, life, owner


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with forgetful_sqlite(monkeypatch):
        yield


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data file with the canaries in one table of many pages, beside another table."""
    (tmp_path / "home").mkdir()
    file = tmp_path / "home" / "data.sqlite"
    import_rows(file, "other", ("kept",), [("stays",)])
    import_rows(file, "person", COLUMNS, [ROW] * 500)
    assert len({line.partition(": ")[2] for line in traces(tmp_path)}) >= 3, "they are in the cage"
    return file


# The owner's tables


def test_data_imported_just_after_all_was_erased_stay(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock goes with the file: from then on another program may begin a new one."""

    imported = False

    def removed(path: Path) -> None:
        nonlocal imported
        remove_file(path)
        if path == data and not imported:
            imported = True
            import_rows(data, "person", COLUMNS, [(1, "some", 0)])

    monkeypatch.setattr("peer.data.deleting.remove_file", removed)
    delete_all(data)
    assert plain_tables_of(data) == {"person": COLUMNS}


def test_a_replaced_table_leaves_nothing(data: Path) -> None:
    import_rows(data, "person", COLUMNS, [(1, "some", 0)])
    assert traces(data.parent) == []


def test_a_failed_import_leaves_nothing_in_the_log_beside_a_reader(data: Path) -> None:
    """A program that has the file open keeps its log from being removed, in which a long import was written."""

    def many() -> Iterator[tuple[object, ...]]:
        for _ in range(60_000):
            yield ("Zeisigfeder" * 10,)
        raise Refused("it breaks off")

    with closing(sqlite3.connect(data)) as reader:
        reader.execute("SELECT count(*) FROM person").fetchone()
        with pytest.raises(Refused):
            import_rows(data, "long", ("text",), many())  # type: ignore[arg-type]
        assert traces(data.parent, spellings("text", "Zeisigfeder")) == []


def test_a_deleted_table_leaves_nothing_also_of_what_earlier_programs_deleted(data: Path) -> None:
    with closing(sqlite3.connect(data)) as connection:  # as a program from before did it
        connection.execute("CREATE TABLE older (text)")
        connection.executemany("INSERT INTO older VALUES (?)", [(f"Zeisigfeder{number}",) for number in range(900)])
        connection.commit()
        connection.execute("DROP TABLE older")
    zeisig = spellings("text", "Zeisigfeder")
    assert traces(data.parent, zeisig)
    delete_table(data, "person")
    assert traces(data.parent, CANARIES | zeisig) == []
    assert plain_tables_of(data) == {"other": ("kept",)}


@pytest.mark.slow
def test_deleting_waits_for_no_reader_and_changes_nothing_then(data: Path) -> None:
    with closing(sqlite3.connect(data, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM person").fetchone()
        import_rows(data, "third", ("kept",), [("stays",)])  # something the reader does not see yet
        with pytest.raises(Refused, match="in use"):
            delete_table(data, "person", patience=0.1)
        with pytest.raises(Refused, match="in use"):
            delete_all(data, patience=0.1)
    assert sorted(plain_tables_of(data)) == ["other", "person", "third"]


def test_deleting_beside_an_import_is_refused(data: Path) -> None:
    with closing(sqlite3.connect(data, isolation_level=None)) as importing:
        importing.execute("BEGIN IMMEDIATE")
        for delete in (lambda: delete_table(data, "person", 0.1), lambda: delete_all(data, 0.1)):
            with pytest.raises(Refused, match="an import"):
                delete()


def test_no_such_table_is_refused_with_the_names_there_are(data: Path) -> None:
    with pytest.raises(Refused, match="yours are: “other”, “person”"):
        delete_table(data, "persons")


def test_the_whole_data_file_goes_a_damaged_one_too(data: Path) -> None:
    delete_all(data)
    assert list(data.parent.iterdir()) == []
    data.write_bytes(TEXT.encode() * 100)
    delete_all(data)
    assert list(data.parent.iterdir()) == []


def test_a_backup_that_shares_the_file_by_a_hard_link_keeps_its_content(data: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.sqlite").hardlink_to(data)
    delete_all(data)
    assert TEXT.encode() in (tmp_path / "copy.sqlite").read_bytes()


# Data that are kept for a while only


def test_rows_of_people_lie_in_the_home_and_go_with_the_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed prediction left them in the system's temporary folder, where nothing ever looked again."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    home, people = tmp_path / "home", tmp_path / "people.csv"
    for folder in (home, tmp_path / "tmp"):
        folder.mkdir()
    people.write_text(f"age,cups,tired\n{NUMBER},{TEXT},{WHOLE}\n")
    predicting = predict_people(from_json(model_of("ab" * 32)), people, None, 1, home)
    next(predicting)
    with PeerHome(home).running():
        assert traces(home) and traces(tmp_path / "tmp") == [], "a living one's are let be"
    predicting.close()
    assert traces(home) == []
    left = home / "people" / "killed"
    left.mkdir(parents=True)
    (left / "everyone.sqlite").write_text(TEXT)
    with PeerHome(home).running():
        assert traces(home) == []


# Studies that ended


@pytest.mark.parametrize("text", [DECLARED, PAPER])
@pytest.mark.slow
async def test_an_ended_study_leaves_nothing_but_its_receipt(tmp_path: Path, text: str) -> None:
    """Snapshot, packets, secrets and the times of packets: also in free pages and in the log."""
    aggregator = FakeAggregator.with_study(text)
    app = owner(tmp_path, aggregator)
    needles = dict(CANARIES)

    def caged(app: PeerApp) -> None:
        made = StudySecrets.from_bytes(app._tools.vault.open(app.store.study(aggregator.study).secrets or b""))
        needles.update({"seed": made.signing_seed, "contribution": made.contribution})
        needles.update({f"nym {at}": bytes(secret) for at, secret in enumerate(made.commitment.nym_secrets)})
        needles.update({f"drawn {at}": drawn for at, drawn in enumerate(made.drawn)})
        assert len(traces(tmp_path, needles)) > 4

    await life(app, aggregator, enrolled=caged)
    assert app.store.state(aggregator.study) is State.FINISHED
    delete_all(tmp_path / "data.sqlite")  # the tables are another matter here
    sent = aggregator.sent("packets")
    assert len(sent) == aggregator.manifest.packets == len(app.receipts())
    assert traces(tmp_path, needles | {f"packet {at}": body for at, body in enumerate(sent)}) == []
    assert [one.send_at for one in app.store.outbox_entries(aggregator.study)] == [0.0] * len(sent)


async def test_who_leaves_early_keeps_nothing_but_the_withdrawal(tmp_path: Path) -> None:
    """The aggregator does not answer, for as long as it likes; the secrets need not wait for it."""
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    made = StudySecrets.from_bytes(app._tools.vault.open(app.store.study(aggregator.study).secrets or b""))
    app.store.freeze(aggregator.study, TEXT.encode())  # as a backup does
    aggregator.deaf.add("withdraw")
    await app.leave(aggregator.study)
    assert app.store.state(aggregator.study) is State.LEAVING and app.store.study(aggregator.study).withdrawal
    needles = CANARIES | {"seed": made.signing_seed, "nym": bytes(made.commitment.nym_secrets[0])}
    assert traces(tmp_path, needles) == []
