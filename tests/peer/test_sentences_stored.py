"""Sentences in a peer's store: they come back with their parts, and plain text of an old home as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anon.errors import Damaged
from anon.text.sentences import Sentence, say
from peer.rules.lifecycle import Event, State
from peer.store.backup.restored import SET_ASIDE
from peer.store.database.integrity import write_digest
from peer.store.store import Store
from peer.store.troubles import Troubles
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer


async def _joined(tmp_path: Path) -> tuple[Store, bytes]:
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    app.close()
    return Store(app._home.store_path, os.urandom), aggregator.study


def _parts(text: str) -> tuple[str, dict[str, object]]:
    assert isinstance(text, Sentence), text
    return text.pattern, dict(text.values)


async def test_reasons_and_troubles_come_back_with_their_parts(tmp_path: Path) -> None:
    store, study = await _joined(tmp_path)
    store.note(study, say("{number} heads were seen", number=3))
    store.trouble(study, Troubles(fault=say("{file}: cannot be written", file="peer.sqlite")))
    store.close()
    assert _parts(store.study(study).reason) == ("{number} heads were seen", {"number": 3})
    assert _parts(store.troubles(study).fault) == ("{file}: cannot be written", {"file": "“peer.sqlite”"})
    store.end(study, Event.CHECK_FAILED, say("the roster has {number} members", number=2))
    ended = store.study(study)
    assert (ended.state, ended.reason) == (State.STOPPED, "the roster has 2 members")
    assert _parts(ended.reason) == ("the roster has {number} members", {"number": 2})


async def test_a_title_in_the_ledger_comes_back_with_its_parts(tmp_path: Path) -> None:
    store, _study = await _joined(tmp_path)
    store.restored((), SET_ASIDE, b"restored")
    store.close()
    titles = [entry.title for entry in store.ledger().entries if entry.study.startswith(b"restored")]
    assert titles[0].startswith(SET_ASIDE + " (")
    assert _parts(titles[0])[1]["title"] == SET_ASIDE
    assert isinstance(_parts(titles[0])[1]["title"], Sentence)


def _write(store: Store, query: str, *values: object) -> None:
    """As another program left it."""
    store._connection.execute("BEGIN IMMEDIATE")
    store._connection.execute(query, values)
    write_digest(store._connection)
    store._connection.execute("COMMIT")


async def test_the_plain_reasons_of_an_old_home_are_read(tmp_path: Path) -> None:
    store, study = await _joined(tmp_path)
    _write(store, "UPDATE studies SET reason = ? WHERE study = ?", "the owner left", study)
    _write(store, "UPDATE ledger SET title = ?", "Sleep {and} tea")
    _write(store, "INSERT INTO meta VALUES (?, ?)", f"fault-{study.hex()}", "a fault in this program")
    assert store.study(study).reason == "the owner left"
    assert store.ledger().entries[0].title == "Sleep {and} tea"
    assert store.troubles(study).told() == "cannot go on: “a fault in this program”; it is tried again by itself"


async def test_a_stored_sentence_that_cannot_be_read_is_damage_and_a_trouble_none(tmp_path: Path) -> None:
    store, study = await _joined(tmp_path)
    _write(store, "INSERT INTO meta VALUES (?, ?)", f"fault-{study.hex()}", "\x02{}")
    assert store.troubles(study) == Troubles()
    _write(store, "UPDATE studies SET reason = ? WHERE study = ?", "\x02{", study)
    with pytest.raises(Damaged):
        store.study(study)
