"""Makes `homes-COMMIT.zip`: an aggregator and three peers in the middle of two studies, written by an older program.

    git archive COMMIT anon peer aggregator | tar x -C OLD
    PYTHONPATH=OLD:. python tests/upgrade/make_homes.py COMMIT

The first study collects: eve's packet was accepted, ada's waits in her outbox, ben was away since he enrolled. The second
enrols: ada and ben are in; ben has paused it. Copied while everything was open, as a killed program leaves it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from anon.study import parse_proposal
from peer.data.importing import import_rows
from tests.support.studies import income_study
from tests.upgrade.two_studies import FIRST, PEERS, SECOND, Town, town

START = 1_800_000_000.0
PAUSE = 1500.0
HERE = Path(__file__).parent


async def _first(here: Town) -> None:
    await here.aggregator.create_study(parse_proposal(_text(FIRST, 1000)))
    for name, invite in zip(PEERS, await here.invites(FIRST, 3), strict=True):
        peer, number = here.peer(name), PEERS.index(name)
        row = (25 + 20 * number, ("Female", "Male")[number % 2], ("low", "high")[number % 2])
        import_rows(here.folder / name / "data.sqlite", "person", ("age", "sex", "income"), [row])
        await peer.join(invite, (await peer.look(invite)).epsilon)
    await here.work(*PEERS)
    await here.until(START + 1050, "ada", "eve")


async def _second(here: Town) -> None:
    await here.aggregator.create_study(parse_proposal(_text(SECOND, 3000)))
    for name, invite in zip(("ada", "ben"), await here.invites(SECOND, 2), strict=True):
        await here.peer(name).join(invite, (await here.peer(name).look(invite)).epsilon)
        study = here.study(SECOND)
        await here.peer(name).step(study)
    here.peer("ben").pause(here.clock() + PAUSE, here.study(SECOND))


def _text(title: str, enrol: int) -> str:
    return income_study(title=title, enrol=enrol, settle=100, collect=1000, minimum=2)


async def _make(folder: Path) -> float:
    async with town(folder, START) as here:
        await _first(here)
        while not here.route.packets:
            await here.until(here.clock() + 5, "eve")
        await _second(here)
        (waiting,) = here.peer("ada").store.outbox_entries(here.study(FIRST))
        if waiting.send_at < here.clock() + 30:
            raise SystemExit("ada's packet is due before eve's has left: run this again")
        _kept(folder, here.clock())
        return here.clock()


def _kept(folder: Path, clock: float) -> None:
    target = HERE / f"homes-{sys.argv[1]}.zip"
    with tempfile.TemporaryDirectory() as place:
        copy = shutil.copytree(folder, Path(place) / "homes")
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(copy.rglob("*")):
                if file.is_file() and file.name not in ("lock", "serving") and not file.name.endswith("-shm"):
                    archive.write(file, file.relative_to(copy))
            archive.writestr("clock.json", json.dumps(clock))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        asyncio.run(_make(Path(work)))
