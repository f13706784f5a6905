"""Evidence against one aggregator, as long as its roster: it once was hashed again before each packet of every
study."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from peer.store.database import integrity
from peer.store.store import Store

LONG = 2**20


def test_no_transaction_reads_what_an_aggregator_made_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """26 MiB of it took 0.1 s of the event loop at each commit, for as long as the home lived."""
    store = Store(tmp_path / "peer.sqlite", os.urandom)
    with store._writing("end") as connection:
        connection.execute("INSERT INTO evidence VALUES (?, 'bad-bucket', ?)", (bytes(32), bytes(LONG)))
    hashed: list[int] = []

    def counted(values: list[object]) -> bytes:
        encoded = own_encode(values)
        hashed.append(len(encoded))
        return encoded

    own_encode = integrity.encode
    monkeypatch.setattr(integrity, "encode", counted)
    store.pause(None, 5.0)
    assert sum(hashed) < LONG / 10
    store.close()
    again = Store(tmp_path / "peer.sqlite", os.urandom)
    assert again.evidence() == [(bytes(32), "bad-bucket", bytes(LONG))]
    again.close()
