"""Notifications: what is said and when by the rules, and really shown over a bus of its own by a desktop of its own."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from peer_command import Command
from village import DECLARED, START, Village, advance, peer

from anon.errors import Refused
from peer.data.importing import import_rows
from peer.desktop import notices
from peer.desktop.reminding import TOLD, Reminders, reminding
from peer.desktop.telling import (
    FIRST_LOOK,
    NEXT_LOOK,
    SENTENCES,
    Happening,
    Matter,
    Seen,
    draw_look,
    happenings,
    next_told,
)
from peer.home import PeerHome
from peer.session import State
from peer.web.engine import Engine, Running

A, B = "aa" * 32, "bb" * 32


def seen(state: State, closes: float = 100.0, troubled: bool = False, study: str = A) -> Seen:
    return Seen(study, state, closes, troubled)


# The rules


@pytest.mark.parametrize(("one", "now", "matter"), [
    (seen(State.CONSENTED), 50, None),
    (seen(State.ENROLLED), 50, None),
    (seen(State.CHECKED), 50, None),
    (seen(State.SENT), 99, None),  # somebody who hears it now would know that it left by now
    (seen(State.SENT), 100, Matter.SENT),
    (seen(State.FINISHED), 99, None),
    (seen(State.FINISHED), 100, Matter.OVER),
    (seen(State.ABANDONED), 50, Matter.OVER),
    (seen(State.WITHDRAWN, troubled=True), 200, None),
    (seen(State.REFUSED), 50, Matter.ATTENTION),
    (seen(State.STOPPED), 50, Matter.ATTENTION),
    (seen(State.ENROLLED, troubled=True), 50, Matter.ATTENTION),
    (seen(State.LEAVING), 50, None),
])
def test_what_a_state_is_worth_telling(one: Seen, now: float, matter: Matter | None) -> None:
    expected = {Happening(matter, A)} if matter is not None else set()
    assert happenings([one], (), False, now) == expected


def test_a_link_waits_until_it_is_answered_and_a_fault_is_the_homes() -> None:
    assert happenings([], [A], False, 0) == {Happening(Matter.ANSWER, A)}
    assert happenings([seen(State.CONSENTED)], [A], False, 0) == frozenset()
    assert happenings([], [], True, 0) == {Happening(Matter.ATTENTION, "home")}


def test_the_most_urgent_comes_first_and_none_twice() -> None:
    happened = [Happening(matter, study) for matter, study in product(reversed(Matter), (A, B))]
    told: set[str] = set()
    order = []
    while (matter := next_told(happened, told)) is not None:
        order.append(matter)
        told |= {one.key for one in happened if one.matter is matter}
    assert order == [Matter.ANSWER, Matter.ATTENTION, Matter.SENT, Matter.OVER]


def test_the_times_of_looks_come_from_nothing_but_randomness() -> None:
    draws = [draw_look(first=False, random_bytes=os.urandom) for _ in range(200)]
    assert all(NEXT_LOOK[0] <= one <= NEXT_LOOK[1] for one in draws) and len(set(draws)) == 200
    assert draw_look(True, lambda size: bytes(size)) == FIRST_LOOK[0]
    assert NEXT_LOOK[0] >= 1800  # at most one notification in half an hour


def test_nothing_that_could_be_somebodys_is_in_a_sentence() -> None:
    assert set(SENTENCES) == set(Matter)
    assert all("{" not in one and "%" not in one and not any(sign.isdigit() for sign in one) for one in SENTENCES.values())


# A home


class Told:
    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.refusing = False

    async def __call__(self, sentence: str) -> None:
        if self.refusing:
            raise Refused("nobody is logged in")
        self.sentences.append(sentence)


def _reminders(tmp_path: Path, village: Village, app: Any, told: Told, **more: Any) -> Reminders:
    return Reminders(app, PeerHome(tmp_path), told, village.clock, os.urandom, Engine(app), **more)


async def _sent(tmp_path: Path, **settings: object) -> tuple[Village, Any]:
    village = Village.found(DECLARED)
    app = peer(tmp_path, village, **settings)
    import_rows(PeerHome(tmp_path).data_path, "person", ("age", "cups", "tired"), [(30, "some", 1)])
    await app.join(village.invite, village.manifest.epsilon)
    await advance(app, village, START + 3600)
    village.crowd(5)
    village.close()
    window = village.manifest.windows[-1]
    while app.store.state(village.study) is not State.SENT:
        due = await app.step(village.study)
        village.clock.seconds = max(village.clock.seconds, due or 0)
        assert village.clock.seconds < window.closes
    return village, app


async def test_a_whole_study_is_told_after_its_windows_and_once(tmp_path: Path) -> None:
    village, app = await _sent(tmp_path, notifications=True)
    told = Told()
    reminders = _reminders(tmp_path, village, app, told)
    await reminders.look()
    await reminders.look()
    assert told.sentences == []  # it was sent, and its window is still open
    village.clock.seconds = village.manifest.windows[-1].closes
    for _ in range(3):
        await reminders.look()
    assert told.sentences == [SENTENCES[Matter.SENT]]
    again = _reminders(tmp_path, village, app, told)  # as after a restart
    await again.look()
    assert len(told.sentences) == 1
    said = (tmp_path / TOLD).read_bytes()
    assert village.manifest.title.encode() not in said and (tmp_path / TOLD).stat().st_mode & 0o077 == 0


async def test_off_is_the_default_and_what_is_there_already_is_no_news(tmp_path: Path) -> None:
    village, app = await _sent(tmp_path)
    village.clock.seconds = village.manifest.windows[-1].closes
    told = Told()
    reminders = _reminders(tmp_path, village, app, told)
    await reminders.look()
    assert not (tmp_path / TOLD).exists() and told.sentences == []
    peer(tmp_path, village, notifications=True)
    await reminders.look()
    await reminders.look()
    assert told.sentences == [] and json.loads((tmp_path / TOLD).read_text()) == [f"sent:{village.study.hex()}"]
    waiting = _reminders(tmp_path, village, app, told, waiting=lambda: ["cc" * 32])
    await waiting.look()
    assert told.sentences == [SENTENCES[Matter.ANSWER]]


@pytest.mark.parametrize("spoilt", [b"{", b"\xff", b'{"a": 1}', b""])
async def test_a_spoilt_memory_tells_too_little(tmp_path: Path, spoilt: bytes) -> None:
    village, app = await _sent(tmp_path, notifications=True)
    village.clock.seconds = village.manifest.windows[-1].closes
    (tmp_path / TOLD).write_bytes(spoilt)
    told = Told()
    reminders = _reminders(tmp_path, village, app, told)
    await reminders.look()
    await reminders.look()
    assert told.sentences == []


async def test_a_fault_and_a_desktop_that_takes_nothing_stop_nothing(tmp_path: Path) -> None:
    village = Village.found(DECLARED)
    app = peer(tmp_path, village, notifications=True)
    told, slept = Told(), []
    told.refusing = True

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > 6:
            raise asyncio.CancelledError
        if len(slept) == 3:
            reminders.engine.running = Running.FAULTY
        if len(slept) == 4:
            (tmp_path / "settings.json").write_text("spoilt")
        if len(slept) == 5:
            peer(tmp_path, village, notifications=True)
            reminders.engine.running = Running.HERE
        if len(slept) == 6:
            told.refusing, reminders.engine.running = False, Running.FAULTY

    reminders = _reminders(tmp_path, village, app, told, sleep=sleep)
    with pytest.raises(asyncio.CancelledError):
        await reminders.run()
    assert told.sentences == [SENTENCES[Matter.ATTENTION]]
    assert FIRST_LOOK[0] <= slept[0] <= FIRST_LOOK[1] and all(NEXT_LOOK[0] <= one <= NEXT_LOOK[1] for one in slept[1:])


# The command


def test_it_is_switched_on_and_off_and_off_at_first(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("notify", "status", "--json").json == {"on": False}
    assert not command.home.exists()
    if notices.sys.platform == "linux":
        monkeypatch.setattr(notices, "find_spec", lambda name: None)
        monkeypatch.setenv("PATH", "/nowhere")
        done = command("notify", "on")
        assert done.code == 4 and "apt install libnotify-bin" in done.err and "pipx install" in done.err
        monkeypatch.undo()
    command("budget")
    PeerHome(command.home).write_settings(PeerHome(command.home).settings())
    assert command("notify", "on").code == 0 and command("notify", "status", "--json").json == {"on": True}
    assert command("notify", "off").code == 0 and command("notify", "status").out.strip() == "off"


# A desktop


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A session bus of its own; its address is in the environment."""
    if shutil.which("dbus-daemon") is None:
        pytest.skip("dbus-daemon is missing")
    command = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address", f"--address=unix:path={tmp_path}/bus"]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert daemon.stdout is not None
        address = daemon.stdout.readline().strip()
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        yield address
    finally:
        daemon.terminate()
        daemon.communicate()


ANSWERS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "Notify": ("u", (1,)),
    "GetServerInformation": ("ssss", ("test", "test", "1", "1.2")),
    "GetCapabilities": ("as", (["body"],)),
}


class Desktop(threading.Thread):
    """Takes notifications as a desktop does, and keeps them."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.taken: list[tuple[Any, ...]] = []
        self.ready = threading.Event()

    def run(self) -> None:
        jeepney, blocking = pytest.importorskip("jeepney"), pytest.importorskip("jeepney.io.blocking")
        with blocking.open_dbus_connection(bus="SESSION") as connection:
            asked = jeepney.message_bus.RequestName("org.freedesktop.Notifications")
            connection.send_and_get_reply(asked)
            self.ready.set()
            while True:
                try:
                    message = connection.receive()
                except (ConnectionError, OSError):
                    return
                if message.header.message_type is jeepney.MessageType.method_call:
                    self.taken.append(message.body)
                    member = message.header.fields[jeepney.HeaderFields.member]
                    connection.send(jeepney.new_method_return(message, *ANSWERS[member]))


@pytest.mark.parametrize("way", ["_by_dbus", "_by_notify_send"])
def test_a_desktop_takes_it_with_nothing_but_the_sentence(bus: str, way: str) -> None:
    pytest.importorskip("jeepney")
    if way == "_by_notify_send" and shutil.which("notify-send") is None:
        pytest.skip("notify-send is missing")
    desktop = Desktop()
    desktop.start()
    assert desktop.ready.wait(5)
    asyncio.run(getattr(notices, way)(SENTENCES[Matter.ANSWER]))
    shown = [body for body in desktop.taken if len(body) == 8]
    assert [(body[0], body[3], body[4]) for body in shown] == [("AnonML", "AnonML", "A study waits for your answer.")]


def test_no_desktop_is_one_clear_line(bus: str) -> None:
    pytest.importorskip("jeepney")
    with pytest.raises(Refused, match="log in to one"):  # the bus is there, and nobody on it shows notifications
        asyncio.run(notices._by_dbus("x"))
    os.environ["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/nowhere/bus"
    with pytest.raises(Refused, match="log in to one"):
        asyncio.run(notices._by_dbus("x"))


async def test_where_nothing_can_notify_the_peer_runs_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise Refused("nothing here can notify")

    monkeypatch.setattr("peer.desktop.reminding.notices_here", none)
    village = Village.found(DECLARED)
    app = peer(tmp_path, village, notifications=True)
    async with reminding(app, PeerHome(tmp_path), Engine(app), village.clock, os.urandom):
        pass
