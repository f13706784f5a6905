"""The life of a packet as a table: the store moves along it and no other way, and the docs show it as it is."""

import sqlite3
from itertools import product
from pathlib import Path

import pytest

from anon.errors import Conflict
from benchmarks.diagrams import DIAGRAMS, PAGE, filled, mermaid
from peer.rules.lifecycle import TABLE, Unlisted
from peer.rules.packet_lifecycle import PACKET_TABLE, PacketEffect, PacketEvent, Status, move_packet
from peer.store.outbox import _move
from peer.store.records import PacketKey
from tests.peer.test_peer_faults_unnoticed import collecting
from tests.support.fake_aggregator import FakeAggregator

SETTLED = {Status.INCLUDED, Status.NOT_INCLUDED, Status.REFUSED, Status.GIVEN_UP, Status.MISSED, Status.STOPPED}


def test_every_pair_is_listed_or_raises() -> None:
    for status, event in product((None, *Status), PacketEvent):
        if (status, event) in PACKET_TABLE:
            assert move_packet(status, event) == PACKET_TABLE[status, event]
        else:
            with pytest.raises(Unlisted, match=event):
                move_packet(status, event)


def test_what_is_settled_never_moves_and_only_a_queued_packet_is_attempted() -> None:
    assert not {status for status, _event in PACKET_TABLE} & SETTLED
    assert [status for status, event in PACKET_TABLE if event is PacketEvent.ATTEMPTED] == [Status.QUEUED]
    charging = [key for key, moved in PACKET_TABLE.items() if PacketEffect.CHARGE in moved.effects]
    assert charging == [(None, PacketEvent.JOURNALLED)], "charged once, and before anything can leave"


@pytest.mark.slow
@pytest.mark.parametrize("status", Status)
async def test_the_store_moves_a_packet_along_the_table_alone(tmp_path: Path, status: Status) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator)
    connection: sqlite3.Connection = app.store._connection
    for event in PacketEvent:
        connection.execute("UPDATE outbox SET status = ?, attempts = 2", (status,))
        if (status, event) in PACKET_TABLE:
            moved = PACKET_TABLE[status, event]
            _move(connection, aggregator.study, PacketKey(0, 0), event)
            (after,) = app.store.outbox_entries(aggregator.study)
            change = (PacketEffect.COUNT in moved.effects) - (PacketEffect.UNCOUNT in moved.effects)
            assert (after.status, after.attempts) == (moved.status, 2 + change)
        else:
            with pytest.raises(Conflict, match="nothing was sent"):
                _move(connection, aggregator.study, PacketKey(0, 0), event)
            (after,) = app.store.outbox_entries(aggregator.study)
            assert (after.status, after.attempts) == (status, 2)


async def test_a_slot_without_a_packet_and_an_erased_packet_are_not_attempted(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator)
    with pytest.raises(Conflict, match="nothing was sent"):
        app.store.attempt(aggregator.study, PacketKey(0, 7), 1e12)
    app.store._connection.execute("UPDATE outbox SET packet = NULL")
    with pytest.raises(Conflict, match="nothing was sent"):
        app.store.attempt(aggregator.study, PacketKey(0, 0), 1e12)
    assert [one.attempts for one in app.store.outbox_entries(aggregator.study)] == [0]


def test_the_docs_show_both_tables_as_they_are() -> None:
    page = PAGE.read_text("utf-8")
    assert page == filled(page), "run `python -m benchmarks.diagrams`"


def test_every_move_of_both_tables_is_an_arrow() -> None:
    for table, name in ((TABLE, "study"), (PACKET_TABLE, "packet")):
        for (before, event), moved in table.items():
            after = moved.state if name == "study" else moved.status  # type: ignore[union-attr]
            ends = f"{before.replace('-', '_') if before else '[*]'} --> {after.replace('-', '_')}: "
            (line,) = [line for line in DIAGRAMS[name].splitlines() if line.strip().startswith(ends)]
            assert event in [label.split(" + ")[0] for label in line.partition(": ")[2].split(", ")]


def test_a_diagram_begins_at_what_nothing_precedes_and_ends_where_nothing_follows() -> None:
    drawn = mermaid(
        [(None, PacketEvent.JOURNALLED, Status.QUEUED, ()), (Status.QUEUED, PacketEvent.GIVEN_UP, Status.GIVEN_UP, ())]
    )
    assert drawn.splitlines()[2:-1] == [
        "    [*] --> queued: journalled", "    queued --> given_up: given-up", "    given_up --> [*]",
    ]
