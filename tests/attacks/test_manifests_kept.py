"""A joined study's manifest is parsed once, and one that this program refuses stops its own study only.

`PeerApp.status` parsed every manifest again from the fifth study on: 280 to 560 ms, twice a second, in the loop that
times packets.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from anon.study.manifest import Manifest, parse_manifest, study_id_of
from anon.wire.cbor import decode, encode
from peer.app import PeerApp
from peer.cli.show import show_status
from peer.data.evaluate import at_once
from peer.data.importing import import_rows
from peer.rules.checks import vetted_manifest
from peer.rules.consent import Policy
from peer.rules.lifecycle import State
from peer.run.taking_back import Choice
from peer.store.backup.archive import backup, restore
from peer.store.database.integrity import write_digest
from peer.store.home import PeerHome
from peer.store.manifests import ManifestRefused
from peer.web.views.diagnosis import home_checks
from tests.support.clock import Clock
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer, reopened, stored
from tests.support.visiting import visited

STUDIES = 20


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[bytes]]:
    """How often each study's manifest was parsed."""
    counted: Counter[bytes] = Counter()

    def counting(body: bytes) -> Manifest:
        counted[study_id_of(body)] += 1
        return parse_manifest(body)

    monkeypatch.setattr("anon.protocols.registry.parse_manifest", counting)
    return counted


async def joined(folder: Path, number: int) -> tuple[PeerApp, list[FakeAggregator]]:
    """A peer in so many studies, each an aggregator of its own."""
    clock = Clock()
    aggregators = [FakeAggregator.with_study(DECLARED, clock) for _ in range(number)]
    app = peer_of(folder, aggregators[0])
    for aggregator in aggregators:
        app._route_factory = lambda aggregator=aggregator: aggregator  # type: ignore[assignment,misc]
        await app.join(aggregator.invite, aggregator.manifest.epsilon)
    return app, aggregators


def restarted(folder: Path, aggregator: FakeAggregator) -> PeerApp:
    """The peer in a process that has vetted nothing yet."""
    vetted_manifest.cache_clear()
    return reopened(PeerHome(folder), aggregator)


def peer_of(folder: Path, aggregator: FakeAggregator) -> PeerApp:
    app = peer(folder, aggregator)
    app.set_policy(Policy(lifetime=10**12, minimum_cohort=3))
    return app


@pytest.mark.slow
async def test_no_manifest_is_parsed_twice_however_many_studies_there_are(
    tmp_path: Path, parsed: Counter[bytes]
) -> None:
    app, aggregators = await joined(tmp_path, STUDIES)
    app.close()
    app = restarted(tmp_path, aggregators[0])
    parsed.clear()
    for _ in range(50):
        assert len(app.status()) == STUDIES
        assert all(study.manifest.title for study in app.store.studies())
    for study in app.store.active():
        assert app.store.study(study).manifest is app.store.study(study).manifest
    assert parsed == {aggregator.study: 1 for aggregator in aggregators}
    app.close()


async def test_where_studies_stand_is_told_without_any_manifest(tmp_path: Path, parsed: Counter[bytes]) -> None:
    """Titles are the ledger's. So nothing that a study's size decides is in the loop that times packets."""
    app, aggregators = await joined(tmp_path, 3)
    app.close()
    app = restarted(tmp_path, aggregators[0])
    parsed.clear()
    assert {one.title for one in app.status()} == {"Sleep and coffee"}
    assert not parsed
    app.close()


# A manifest that an earlier program accepted


def spoil(home: PeerHome, study: bytes) -> bytes:
    """Put in the place of a stored study one of an earlier program, with a label that no float holds."""
    with closing(sqlite3.connect(home.store_path)) as connection:
        (body,) = connection.execute("SELECT manifest FROM studies WHERE study = ?", (study,)).fetchone()
        fields = decode(body)
        fields["label"]["positive"] = [10**400]
        older = encode(fields)
        other = study_id_of(older)
        for table in ("studies", "ledger"):
            connection.execute(f"UPDATE {table} SET study = ? WHERE study = ?", (other, study))
        connection.execute("UPDATE studies SET manifest = ? WHERE study = ?", (older, other))
        write_digest(connection)
        connection.commit()
    return other


async def aged(folder: Path) -> tuple[PeerApp, FakeAggregator, bytes]:
    """A home in two studies, one of them joined by an earlier program."""
    app, aggregators = await joined(folder, 2)
    app.close()
    old = spoil(PeerHome(folder), aggregators[1].study)
    return restarted(folder, aggregators[0]), aggregators[0], old


async def test_such_a_study_stops_with_a_reason_and_no_other_does(tmp_path: Path) -> None:
    app, aggregator, old = await aged(tmp_path)
    await app.run(once=True)
    standing = {one.study: one for one in app.status()}
    assert standing[old].state is State.STOPPED
    assert "ask staff to publish the study again" in standing[old].reason
    assert "-2**53 to 2**53" in standing[old].reason
    assert standing[old].reserved == 0
    assert standing[aggregator.study].state in (State.CONSENTED, State.ENROLLED)
    aggregator.crowd(3)
    aggregator.clock.seconds = aggregator.manifest.timetable.published
    for _ in range(20):
        await app.step(aggregator.study)
        aggregator.clock.seconds += 300
    assert app.store.state(aggregator.study) is State.ENROLLED
    app.close()


async def test_everything_else_of_the_home_goes_on_meanwhile(tmp_path: Path) -> None:
    """Before the study was stopped, and afterwards: what lists studies, and what copies the home."""
    app, aggregator, old = await aged(tmp_path / "home")
    with pytest.raises(ManifestRefused):
        _ = app.store.study(old).manifest
    for _ in range(2):
        assert len(app.status()) == 2
        assert app.receipts() == []
        assert app.accounting(old) is None
        show_status(app)
        await app.run(once=True)
    app.close()
    copy = tmp_path / "copy.backup"
    await backup(PeerHome(tmp_path / "home"), copy, evaluate=at_once)
    restore(PeerHome(tmp_path / "restored"), copy, aggregator.clock())
    again = restarted(tmp_path / "restored", aggregator)
    assert len(again.status()) == 2
    again.close()


async def test_its_owner_can_leave_it(tmp_path: Path) -> None:
    app, _aggregator, old = await aged(tmp_path)
    await app.leave(old)
    assert app.store.state(old) in (State.WITHDRAWN, State.STOPPED)
    app.close()


async def test_what_it_holds_goes_with_a_table_that_its_owner_deletes(tmp_path: Path) -> None:
    """Which tables it reads is not known any more, so its answers go with any."""
    app, aggregator, old = await aged(tmp_path)
    import_rows(PeerHome(tmp_path).data_path, "other", ("a",), [(1,)])
    app.store.freeze(old, b"answers")
    with app.taking_back() as taking:
        assert taking.concerned("person") == [app.store.study(aggregator.study)]
        taking.delete_table("other", Choice.GO_ON)
    assert app.store.state(old) is State.WITHDRAWN
    assert stored(app, old, "snapshot") is None
    assert app.store.state(aggregator.study) is State.CONSENTED
    app.close()


async def test_the_page_goes_on_and_says_why(tmp_path: Path) -> None:
    async with visited(tmp_path) as page:
        await page.peer.join(page.aggregator.invite, page.aggregator.manifest.epsilon)
        page.peer.close()
        old = spoil(page.home, page.aggregator.study)
        for place in ("/", "/history", "/data", "/diagnosis", "/budget"):
            assert (await page.get(place)).status == 200, place
        got = await page.get(f"/study/{old.hex()}")
        assert got.status == 400
        assert "ask staff to publish the study again" in got.words
        assert any("publish the study again" in check.action for check in await home_checks(page.server.site))


async def test_a_damaged_manifest_is_said_to_be_that(tmp_path: Path) -> None:
    app, aggregators = await joined(tmp_path, 1)
    app.close()
    with closing(sqlite3.connect(PeerHome(tmp_path).store_path)) as connection:
        (body,) = connection.execute("SELECT manifest FROM studies").fetchone()
        connection.execute("UPDATE studies SET manifest = ?", (body + b"\0",))
        connection.commit()
    app = restarted(tmp_path, aggregators[0])
    with pytest.raises(ManifestRefused, match="damaged; restore a backup"):
        _ = app.store.study(aggregators[0].study).manifest
    app.close()
