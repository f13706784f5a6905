"""One file of a home is spoilt, emptied, removed or put back to an earlier day: nothing of it is lost without a word.

Ledger, studies and sums of all three roles, with their logs. An image is taken while the home is open, as a power cut
leaves it. 5,000 damages are soak; a sample runs each time.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from anon.errors import AnonmlError, Damaged
from anon.sharing.combine import combine
from peer.data.evaluate import at_once
from peer.store.backup.archive import backup, restore
from peer.store.home import PeerHome
from tests.attacks.damage import Harm
from tests.attacks.soak_pieces import piece
from tests.attacks.test_damaged_homes import _seen as seen_by_owner
from tests.support.clock import Clock
from tests.support.fake_aggregator import FakeAggregator, advance, peer, reopened, until_closed
from tests.support.tellers import PLACES, expected, ready_world
from tests.support.world import begin, make_app, study_text

HOW = ("bit", "bit", "zeros", "end", "emptied", "gone", "earlier")
PIECES, WHOLE = 20, 5000
Look = Callable[[Path], object]


def imaged(home: Path, to: Path) -> Path:
    """All files as they are at this moment."""
    shutil.copytree(home, to, ignore=shutil.ignore_patterns("*-shm", "lock", "serving"))
    return to


def spoil(draw: Random, image: Path, earlier: Path) -> str:
    """Harm one file of an image; how."""
    files = sorted(
        path.relative_to(image) for path in image.rglob("*") if path.is_file() and path.name != "data.sqlite"
    )
    file, how = draw.choice(files), draw.choice(HOW)
    here, before = image / file, earlier / file
    if how == "gone" or (how == "earlier" and not before.exists()):
        here.unlink()
    elif how == "earlier":
        shutil.copyfile(before, here)
    elif how == "emptied" or not here.stat().st_size:
        here.write_bytes(b"")
    else:
        Harm(how, draw.randrange(here.stat().st_size)).do(here)
    return f"{file} {how}"


def damages(folder: Path, images: list[Path], look: Look, seeds: range) -> Counter[str]:
    """Spoil the last image in ways drawn by each seed. It shows what it showed before, or a fault is told."""
    whole = look(imaged(images[-1], folder / "whole"))
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        draw, copy = Random(seed), folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        imaged(images[-1], copy)
        told = spoil(draw, copy, draw.choice(images[:-1]))
        try:
            seen = look(copy)
        except AnonmlError:
            outcomes["told"] += 1
            continue
        assert seen == whole, (seed, told)
        outcomes["unharmed"] += 1
    return outcomes


def peers(folder: Path) -> tuple[list[Path], Look]:
    """Before a consent, after it, enrolled, and with a packet decided."""
    aggregator, images = FakeAggregator.with_study(), []

    async def lived() -> None:
        app = peer(folder / "home", aggregator)
        images.append(imaged(folder / "home", folder / "0"))
        await app.join(aggregator.invite, aggregator.manifest.epsilon)
        images.append(imaged(folder / "home", folder / "1"))
        await until_closed(app, aggregator)
        images.append(imaged(folder / "home", folder / "2"))
        await advance(app, aggregator, aggregator.manifest.timetable.settled - 1)
        images.append(imaged(folder / "home", folder / "3"))
        app.close()

    def look(image: Path) -> object:
        app = reopened(PeerHome(image), aggregator)
        try:
            return seen_by_owner(app)
        finally:
            app.close()

    asyncio.run(lived())
    return images, look


def aggregators(folder: Path) -> tuple[list[Path], Look]:
    """With no study, one, and two."""
    clock, images = Clock(), []

    async def lived() -> None:
        async with make_app(folder / "home", clock) as app:
            images.append(imaged(folder / "home", folder / "0"))
            await (await begin(app, clock, study_text())).collected(4)
            images.append(imaged(folder / "home", folder / "1"))
            await (await begin(app, clock, study_text())).enrol(2)
            images.append(imaged(folder / "home", folder / "2"))

    async def seen(image: Path) -> object:
        async with make_app(image, clock) as app:
            await app.tick()
            if faults := [one.fault for one in await app.status() if one.fault]:
                raise Damaged(faults[0])
            return [
                (one.study, str(one.phase), one.enrolled.number, one.accepted.number, one.documents)
                for one in sorted(await app.status(), key=lambda one: one.study)
            ]

    asyncio.run(lived())
    return images, lambda image: asyncio.run(seen(image))


def tellers(folder: Path) -> tuple[list[Path], Look]:
    """A teller before its packets, with them, and with its verdicts; it signs the list and the sum then."""
    world = ready_world(folder)
    place = folder / "0"
    images = [imaged(place, folder / "image0")]
    packets = world.packets()
    statements = world.admit(packets)
    images.append(imaged(place, folder / "image1"))
    body = world.list_of(world.settle(statements))
    images.append(imaged(place, folder / "image2"))
    imaged(folder / "1", folder / "fellow")

    def look(image: Path) -> object:
        for number, source in enumerate((image, folder / "fellow")):
            world.journals[number].close()
            shutil.rmtree(folder / str(number))
            shutil.copytree(source, folder / str(number))
            world.restart(number)
        again = world.signatures(body)
        return combine(world.arrangement, world.occasion(), body, again, world.noisy(again)).values

    assert look(images[-1]) == expected(PLACES[:4])
    return images, look


ROLES = {"peer": peers, "aggregator": aggregators, "teller": tellers}


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_no_damage_of_one_file_is_a_silent_loss(role: str, tmp_path: Path) -> None:
    images, look = ROLES[role](tmp_path / "made")
    outcomes = damages(tmp_path, images, look, range(40))
    assert outcomes["told"] > 5 and outcomes["unharmed"] > 5, outcomes


@pytest.mark.soak
@pytest.mark.parametrize("number", range(PIECES))
@pytest.mark.parametrize("role", ROLES)
def test_no_damage_of_five_thousand_is_a_silent_loss(
    role: str, number: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    each = -(-WHOLE // len(ROLES) // PIECES)
    with piece(pytestconfig, f"single-damages-{role}", number, PIECES):
        images, look = ROLES[role](tmp_path / "made")
        damages(tmp_path, images, look, range(1000 + number * each, 1000 + (number + 1) * each))


TRIGGER = "CREATE TRIGGER free AFTER UPDATE ON {table} BEGIN UPDATE {table} SET {column} = {column}; END"


async def test_a_backup_with_a_trigger_or_a_view_is_not_restored(tmp_path: Path) -> None:
    """SQLite finds nothing wrong with it, and it runs within our own transactions."""
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path / "home", aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    app.close()
    await backup(app._home, tmp_path / "file", evaluate=at_once)
    for number, sql in enumerate((TRIGGER.format(table="ledger", column="spent"), "CREATE VIEW v AS SELECT 1")):
        with zipfile.ZipFile(tmp_path / "file") as whole:
            whole.extractall(tmp_path / f"parts{number}")
        with closing(sqlite3.connect(tmp_path / f"parts{number}" / "peer.sqlite")) as connection, connection:
            connection.execute(sql)
        with zipfile.ZipFile(tmp_path / f"bad{number}", "w") as spoilt:
            for part in (tmp_path / f"parts{number}").iterdir():
                spoilt.write(part, part.name)
        with pytest.raises(Damaged, match="a trigger or a view"):
            restore(PeerHome(tmp_path / f"new{number}"), tmp_path / f"bad{number}", aggregator.clock())
    with closing(sqlite3.connect(app._home.store_path)) as connection, connection:
        connection.execute(TRIGGER.format(table="ledger", column="spent"))
    with pytest.raises(Damaged, match="a trigger or a view"):
        reopened(app._home, aggregator)


def test_a_flipped_value_in_a_tellers_journal_makes_no_sum(tmp_path: Path) -> None:
    """Its share went into a signed sum."""
    world = ready_world(tmp_path)
    world.settle(world.admit(world.packets()))
    world.journals[0].close()
    (file,) = (tmp_path / "0").glob("*.sqlite")
    with closing(sqlite3.connect(file)) as connection, connection:
        (output,) = connection.execute("SELECT output FROM shares LIMIT 1").fetchone()
        spoilt = bytes([output[0] ^ 1]) + output[1:]
        connection.execute("UPDATE shares SET output = ? WHERE output = ?", (spoilt, output))
    with pytest.raises(Damaged, match="not the one that was written"):
        world.restart(0)


async def test_a_consent_needs_no_log(tmp_path: Path) -> None:
    """A reservation stood in the log alone until the release."""
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path / "home", aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    copy = imaged(tmp_path / "home", tmp_path / "copy")
    (copy / "peer.sqlite-wal").unlink(missing_ok=True)
    again = reopened(PeerHome(copy), aggregator)
    assert again.budget().held == aggregator.manifest.epsilon
