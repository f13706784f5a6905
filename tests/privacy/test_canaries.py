"""Canaries through a whole study, from the upload to the prediction, faults included: where a person's values may be,
and that they are nowhere else: no log at any level, no output, no support bundle, nothing of the aggregator's.

Everything is real but the clock: aggregator, its HTTP surface, its desk, three peers and their pages, over TCP.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import warnings
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from attrs import define, field

import peer.web.site
from aggregator.desk.link import metrics_token
from aggregator.desk.routes import ROUTES
from aggregator.network import http
from aggregator.study.live import LiveStudy
from anon.kit.terminal.support import contents
from anon.wire.addresses import is_loopback
from anon.wire.invite import Invite
from anon.wire.packets import parse_published
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.pairing import page as phones
from peer.rules.consent import Policy
from peer.rules.lifecycle import LAST
from peer.run.supervisor import Supervisor
from peer.store.home import PeerHome
from peer.web.server import PageServer
from tests.support.clock import Clock
from tests.support.desk_browser import Desk, opened
from tests.support.documents import plaintexts_of
from tests.support.protocols import parse_proposal
from tests.support.visiting import Visited
from tests.support.world import make_app, study_text

pytestmark = pytest.mark.slow

AGES, SEX, DIARY, NAME = ("43.7193", "38.6147", "52.9171"), "Papageienkanarie", "Mein Kanarienbuch", "kanarienliste"
CANARIES = (*AGES, SEX, DIARY, NAME)
HEADING = "age,sex,income,diary"


class Everything(logging.Handler):
    """Every record of every logger, as the plainest formatter writes it: traceback, task and stack included."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def log() -> Iterator[Everything]:
    handler, root = Everything(), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.setLevel(before)
    root.removeHandler(handler)


class Spoken:
    """Every address that this process names to the system, while it listens; an audit hook cannot be taken out
    again."""

    def __init__(self) -> None:
        self.listening, self.addresses = True, list[tuple[str, Any]]()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.listening and event in ("socket.connect", "socket.sendto", "socket.bind", "socket.sendmsg"):
            self.addresses.append((event, arguments[1]))
        elif self.listening and event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
            self.addresses.append((event, arguments[0]))

    def beyond_loopback(self) -> list[tuple[str, Any]]:
        """Those that are no address of this machine alone. A path is a socket file."""
        return [
            (event, address)
            for event, address in self.addresses
            if not isinstance(address, str | bytes | type(None)) or event.startswith("socket.get")
            if not is_loopback(f"{address[0] if isinstance(address, tuple) else address}:1")
        ]


@define
class DeskAndPages:
    """One study, its desk, and three people at their pages."""

    clock: Clock
    live: LiveStudy
    desk: Desk
    pages: list[Visited]
    answers: list[str] = field(factory=list)

    async def go_to(self, when: float) -> None:
        """Everything that is due until then, on both sides."""
        for _ in range(400):
            due = [await page.peer.step(self.live.study) for page in self.pages]
            await self.desk.app.tick()
            next_due = min((one for one in due if one is not None), default=when + 1)
            if next_due > when:
                break
            self.clock.seconds = max(self.clock.seconds, next_due)
        self.clock.seconds = when
        await self.desk.app.tick()


@asynccontextmanager
async def desk_and_pages(folder: Path) -> AsyncIterator[DeskAndPages]:
    clock = Clock()
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(make_app(folder / "staff", clock))
        manifest = await app.create_study(parse_proposal(study_text(minimum=2)))
        live = app.study(manifest.study_id)
        runner, port = await http.start({live.study: live}, "127.0.0.1", 0)
        stack.push_async_callback(runner.cleanup)
        desk = await stack.enter_async_context(opened(app))
        invites = await app.create_invites(live.study, 3, f"127.0.0.1:{port}")
        pages = [await _page(stack, folder / f"peer{number}", clock, invite) for number, invite in enumerate(invites)]
        yield DeskAndPages(clock, live, desk, pages)


async def _page(stack: AsyncExitStack, folder: Path, clock: Clock, invite: Invite) -> Visited:
    from anon.route import DirectRoute

    home = PeerHome(folder)
    app = PeerApp(home, DirectRoute, clock, os.urandom, policy=Policy(minimum_cohort=2), evaluate=at_once)
    stack.callback(app.close)
    server = PageServer(app, home, now=clock, guests=[phones.routes])
    await server.start(run=False)
    stack.push_async_callback(server.close)
    session = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)))
    page = Visited(server, app, cast(Any, None), home, session)
    assert (await page.get(server.link)).status == 200
    server.site.invites[invite.study] = invite
    return page


def _bad_uploads() -> dict[str, bytes]:
    """Files that cannot be read, each of which holds the words."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"../{DIARY}.csv", SEX)
    return {
        f"{NAME}.json": f'{{"{DIARY}": "{SEX}'.encode(),
        f"{NAME}.zip": packed.getvalue(),
        f"{NAME}.sqlite": b"SQLite format 3\0" + f"{DIARY} {SEX}".encode() * 50,
        f"{NAME}.gz": b"\x1f\x8b" + DIARY.encode(),
        f"{NAME}.parquet": b"PAR1" + DIARY.encode() + b"PAR1",
        f"{NAME}.bin": DIARY.encode("utf-16") + b"\xff\x00",
    }


async def _import(page: Visited, age: str, words: list[str]) -> None:
    for name, content in _bad_uploads().items():
        refused = await page.upload(name, content)
        words += [refused.words] if refused.status == 400 else []
    text = f"{HEADING}\n{age},{SEX},>50K,{DIARY}\nragged,{SEX},{DIARY},{DIARY},{DIARY}\n"
    looked = await page.upload(f"{NAME}.csv", text.encode())
    assert age in looked.text and DIARY in looked.text, "the owner sees the canaries: they are in the cage"
    place = "/" + looked.url.split("/", 3)[3]
    done = await page.post(place, looked.form(place) | {"table": "person", "answer": "import", "mode": "replace"})
    assert "Imported: 1 row into “person”" in done.words


async def _faults(page: Visited, patch: pytest.MonkeyPatch) -> None:
    """Our own faults, each with a text that quotes the owner: a page, a study's step, the run, forgotten work."""
    def wrong(*_: Any, **__: Any) -> Any:
        raise ValueError(f"{DIARY}: {SEX}")

    async def late() -> None:
        await asyncio.sleep(0.02)
        wrong()

    with patch.context() as broken:
        broken.setattr(page.peer.store, "policy", wrong)
        assert (await page.get("/budget")).status == 500
    with patch.context() as broken:
        broken.setattr("peer.run.following.Following._follow_closely", wrong)
        await page.peer._following._follow(page.server.site.peer.store.active()[0], None)
    with patch.context() as broken:
        broken.setattr(page.peer, "run", wrong)
        supervisor = Supervisor(page.peer.run, retry_seconds=0.01)
        with suppress(TimeoutError):
            await asyncio.wait_for(supervisor.run(), 0.05)
        assert "a fault in this program" in supervisor.fault and SEX not in supervisor.fault
    with patch.context() as broken:
        broken.setattr(peer.web.site, "PATIENCE_SECONDS", 0.0)
        await page.server.site.work("late", late)
        await asyncio.sleep(0.05)
        page.server.site.forget("late")
    await _malformed(page)
    gc.collect()


async def _malformed(page: Visited) -> None:
    """Send a malformed request, such as no browser sends, with canary values in it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", page.server.port)
    writer.write(f"{DIARY} / HTTP/9\r\n{SEX}\r\n\r\n".encode())
    await reader.read()
    writer.close()


async def _whole(shown: DeskAndPages, patch: pytest.MonkeyPatch) -> list[str]:
    """All of it; what the pages said to files that they could not read."""
    words: list[str] = []
    study = f"/study/{shown.live.study.hex()}"
    place = f"/invite/{shown.live.study.hex()}"
    for page, age in zip(shown.pages, AGES, strict=True):
        await _import(page, age, words)
        assert age in (await page.get(place)).text, "the own answer is there, behind a click"
        await page.submit(place, place, answer="yes")
    times = shown.live.manifest.timetable
    await shown.go_to(times.enrol_closes)
    await _faults(shown.pages[0], patch)
    await shown.go_to(float(shown.live.manifest.windows[-1].closes))
    await shown.go_to(times.ends + 1)
    assert shown.live.phase == "published"
    for page in shown.pages:
        said = (await page.get(study)).words
        assert "found in the published transcript" in said, said
        await page.submit(f"{study}/prediction", f"{study}/prediction")
        answer = (await page.get(f"{study}/prediction")).words
        assert "No answer" in answer and "What moved it most" not in answer, "nobody was shown a gain"
        assert (await page.get("/diagnosis")).status == 200
    assert all(one.state in LAST for page in shown.pages for one in page.peer.status())
    return words


async def _of_the_desk(shown: DeskAndPages) -> dict[str, str]:
    desk, study = shown.desk, shown.live.study.hex()
    await desk.get("/")
    bearer = {"Authorization": f"Bearer {metrics_token(desk.app.home.path)}"}
    paths = [route.path.replace("{study}", study) for route in ROUTES if route.method == "GET"]
    seen = {path: await desk.get(path, bearer if path == "/metrics" else None) for path in paths}
    assert all(one.status == 200 for one in seen.values())
    return {path: one.body.decode("latin-1") for path, one in seen.items()}


def caught(text: str) -> list[str]:
    """The canaries in a text."""
    return [canary for canary in CANARIES if canary in text]


async def test_a_persons_values_are_on_their_own_pages_and_nowhere_else(
    tmp_path: Path, log: Everything, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoken = Spoken()
    asyncio.get_running_loop().set_debug(True)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        async with desk_and_pages(tmp_path) as whole:
            words = await _whole(whole, monkeypatch)
            desk = await _of_the_desk(whole)
            laid = (await whole.live.tools.enrolments.keys(whole.live.study)).sound
            keys = [laid[start : start + 32].hex() for start in range(0, len(laid), 32)]
            tags = [tag.hex() for tag in await _tags(whole)]
            bundle = "".join(contents((tmp_path / "staff", *(page.home.path for page in whole.pages))).values())
        gc.collect()
        await asyncio.sleep(0)
    spoken.listening = False
    assert len(log.lines) > 100 and any("ValueError" in line for line in log.lines)
    assert [line for line in log.lines if caught(line)] == []
    assert caught("".join(capfd.readouterr())) == [] and caught(bundle) == []
    assert len(words) >= 12 and [line for line in words if caught(line.replace(f"{NAME}.", ""))] == []
    assert {path: caught(text) for path, text in desk.items() if caught(text)} == {}
    assert not [
        path
        for path in (tmp_path / "staff").rglob("*")
        if path.is_file() and caught(path.read_bytes().decode("latin-1"))
    ]
    kept = {path.name for path in tmp_path.rglob("*") if path.is_file() and caught(path.read_bytes().decode("latin-1"))}
    assert kept <= {"data.sqlite", "data.sqlite-wal"} and "data.sqlite" in kept, "in the owner's tables, and only there"
    assert len(keys) == len(tags) == 3
    assert [line for line in log.lines if any(word in line.lower() for word in (*keys, *tags))] == []
    assert len(spoken.addresses) > 20 and spoken.beyond_loopback() == []
    spoken.listening = True
    for event, address in (
        ("socket.connect", ("192.0.2.1", 80)),
        ("socket.getaddrinfo", "example.org"),
        ("socket.bind", ("0.0.0.0", 1)),
    ):
        spoken._hear(event, (None, address) if event != "socket.getaddrinfo" else (address,))
    spoken.listening = False
    assert len(spoken.beyond_loopback()) == 3, "it would have been heard"


async def _tags(shown: DeskAndPages) -> list[bytes]:

    found = []
    for survey in shown.live.manifest.surveys:
        for one in await plaintexts_of(shown.live.tools.packets, shown.live.study, 0, survey.survey):
            found.append(parse_published(one).token[:32])
    return found
