"""A whole study by programs: two peers on Windows' Python beside one on Linux, against an aggregator on Linux."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from tests.support import command_line as linux
from tests.support.command_line import Serving
from tests.support.studies import course_of_three
from tests.windows import wine
from tests.windows.wine import DISK, needs_windows

pytestmark = [pytest.mark.process, pytest.mark.timeout(900), needs_windows]
STUDY = course_of_three("Ein Kurs mit Umlauten: Größe")
HERE = DISK / "users" / "Änne Müller 学生" / "Anon ML #1 100%"
"""Of the first, below a user's folder on C:. The second one's is on another drive."""
ON_WINDOWS = 2


@define
class Seen:
    """The output of the commands, by kind; on Windows first."""

    receipts: list[Any] = field(factory=list)
    statuses: list[Any] = field(factory=list)
    predictions: list[Any] = field(factory=list)
    consents: list[str] = field(factory=list)
    audit: dict[str, Any] = field(factory=dict)


async def on_linux(*commands: Sequence[str | Path]) -> list[str]:
    """Each `anonml COMMAND`, which must succeed; its text."""
    return [await linux.plain(*words) for words in commands]


@define
class Member:
    """One person, and the system that their commands run on."""

    on: Callable[..., Awaitable[list[str]]]
    home: Path

    async def settle_in(self, file: Path) -> None:
        budget = ("peer", "budget", "--lifetime", "8", "--minimum-cohort", "3")
        await self._run(("peer", "import", file, "--table", "person"), budget)

    async def take_part(self, link: str, seen: Seen) -> None:
        said = await self._run(("peer", "join", link, "--yes"), ("peer", "run", "--once", "--max-seconds", "400"))
        seen.consents.append(said[0])

    async def look_back(self, link: str, seen: Seen) -> None:
        asked = [("peer", "receipts"), ("peer", "status"), ("peer", "predict", link)]
        found = await self._run(*((*words, "--json") for words in asked))
        for kept, text in zip((seen.receipts, seen.statuses, seen.predictions), found, strict=True):
            kept.append(json.loads(text))

    async def _run(self, *commands: Sequence[str | Path]) -> list[str]:
        return await self.on(*((*words, "--home", self.home) for words in commands))


async def play(folder: Path, patience: int = 2) -> Seen:
    """From empty homes to predictions. `patience`: by how much windows are longer than the start of the programs
    tells."""
    seen, staff = Seen(), folder / "staff"
    folder.mkdir()
    members = [Member(wine.plain, HERE), Member(wine.plain, folder / "second"), Member(on_linux, folder / "third")]
    serving = Serving(staff)
    await serving.start()
    try:
        began = time.monotonic()
        for number, _ in enumerate(members):
            (folder / f"{number}.csv").write_bytes(
                f"age,income\r\n{25 + 20 * number},{('low', 'high')[number % 2]}\r\n".encode()
            )
        await _all(one.settle_in(folder / f"{number}.csv") for number, one in enumerate(members))
        took = patience * (time.monotonic() - began)
        file = folder / "study.toml"
        file.write_text(STUDY.format(enrol=ceil(10 + 2 * took), settle=ceil(4 + took), collect=ceil(4 + took)))
        published = await linux.anonml("study", "publish", file, "--home", staff)
        await serving.begun(published["study"])
        words = ("--address", serving.address, "--study", published["study"], "--home", staff)
        links = await linux.anonml("aggregator", "invite", "--count", str(len(members)), *words)
        await _all(one.take_part(link, seen) for one, link in zip(members, links, strict=True))
        await serving.ended(published["study"])
        await _all(one.look_back(link, seen) for one, link in zip(members, links, strict=True))
        exported = ("aggregator", "export", folder / "published", "--study", published["study"], "--home", staff)
        await linux.anonml(*exported)
        key = links[0].split("key=")[1].split("&")[0]
        seen.audit = await linux.anonml("aggregator", "audit", folder / "published", "--key", key)
    finally:
        await serving.stop()
    return seen


async def _all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as together:
        for work in works:
            together.create_task(work)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    shutil.rmtree(HERE, ignore_errors=True)
    """Where a packet missed its window, once more with longer ones: a machine became slower meanwhile."""
    folder = tmp_path_factory.mktemp("windows")
    found = asyncio.run(play(folder / "first"))
    if any(one["status"] == "missed" for mine in found.receipts for one in mine):
        shutil.rmtree(HERE)
        found = asyncio.run(play(folder / "again", patience=4))
    yield found
    shutil.rmtree(HERE.parent, ignore_errors=True)


def test_every_packet_of_windows_and_linux_is_accepted_and_found_again(seen: Seen) -> None:
    assert [[(one["status"], one["word"]) for one in mine] for mine in seen.receipts] == [
        [("included", "accepted")]
    ] * 3
    assert [[one["state"] for one in mine] for mine in seen.statuses] == [["finished"]] * 3
    assert seen.audit["verdict"] == "all-checked" and seen.audit["packets"] == seen.audit["enrolled"] == 3


def test_windows_predicts_for_its_owner_as_linux_does(seen: Seen) -> None:
    own = [mine["probability"] for (mine,) in seen.predictions]
    assert all(0 <= one <= 1 for one in own) and len(own) == 3


def test_consent_names_times_by_utc_and_not_by_windows_long_names(seen: Seen) -> None:
    assert not [text for text in seen.consents if "Standard Time" in text or "Daylight" in text]
