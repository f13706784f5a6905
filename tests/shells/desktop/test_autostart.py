"""Start at login, switched on and off by the command, into a real folder of a user.

No user's systemd runs where these tests do, so `systemctl` is a script that writes down what it was asked, and enables
as the real one does. Windows' registry is a dictionary behind `winreg`'s own names; nothing here ran on Windows or
macOS.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from anon.errors import Refused
from peer.app import PeerApp
from peer.desktop import resident
from peer.desktop.login import run_key, systemd_unit, xdg_autostart
from peer.desktop.login.autostart import demand_sensible, switch_off, switch_on
from peer.desktop.login.item import LoginItem
from peer.desktop.login.places import RegistryPlace, launchd_place
from peer.store.home import PeerHome
from tests.shells.desktop.test_login_formats import _as_desktops_read
from tests.support.patience import PATIENCE, turns, until
from tests.support.peer_command import Command, Served

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is written is looked for where Linux has it")


def _files(folder: Path) -> dict[str, str]:
    found = sorted(one for one in folder.rglob("*") if not one.is_dir())
    return {
        str(one.relative_to(folder)): str(one.readlink()) if one.is_symlink() else one.read_text("utf-8")
        for one in found
    }


@pytest.fixture
def systemctl(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A systemctl that says yes; returns what it was asked, a line each."""
    asked, programs = tmp_path / "asked", tmp_path / "programs"
    programs.mkdir()
    wants = user / ".config/systemd/user/default.target.wants"
    script = f"""#!/bin/sh
printf '%s\\n' "$*" >> '{asked}'
case "$2" in
enable) mkdir -p '{wants}' && ln -sf "../$4" '{wants}'/"$4" ;;
disable) rm -f '{wants}'/"$4" ;;
esac
"""
    (programs / "systemctl").write_text(script)
    (programs / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return asked


@pytest.fixture
def no_systemd(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "none"
    programs.mkdir()
    (programs / "systemctl").write_text("#!/bin/sh\nexit 1\n")
    (programs / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")


UNIT = f".config/systemd/user/{systemd_unit.NAME}"
ENTRY = f".config/autostart/{xdg_autostart.NAME}"


def test_on_and_off_leave_nothing_but_what_was_there(command: Command, user: Path, systemctl: Path) -> None:
    (user / ".config/systemd/user").mkdir(parents=True)
    (user / ".config/systemd/user/other.service").write_text("[Service]\n")
    before = _files(user)
    assert "starts when you log in" in command("autostart", "on", "--as-root").out
    assert set(_files(user)) - set(before) == {UNIT, f".config/systemd/user/default.target.wants/{systemd_unit.NAME}"}
    asked = systemctl.read_text().splitlines()
    assert asked == ["--user show-environment", "--user daemon-reload", f"--user enable --now {systemd_unit.NAME}"]
    written = _files(user)
    assert command("autostart", "on", "--as-root").code == 0 and _files(user) == written
    assert systemctl.read_text().splitlines()[3:] == ["--user show-environment"]  # the same again changes nothing
    assert command("autostart", "status", "--json").json["on"] is True
    assert UNIT in command("autostart", "off").out
    assert _files(user) == before
    assert (
        "nothing" in command("autostart", "off").out and command("autostart", "status", "--json").json["places"] == []
    )


def test_another_route_replaces_what_was_written(command: Command, user: Path, systemctl: Path) -> None:
    command("autostart", "on", "--as-root")
    assert command("autostart", "on", "--as-root", "--route", "tor").code == 0
    assert '"--route" "tor"' in (user / UNIT).read_text() and "disable --now" in systemctl.read_text()
    assert command("autostart", "on", "--as-root", "--route", "carrier-pigeon").code == 4
    assert '"--route" "tor"' in (user / UNIT).read_text()


def test_the_link_goes_also_when_systemd_is_not_there_any_more(
    command: Command, user: Path, systemctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("autostart", "on", "--as-root")
    monkeypatch.setenv("PATH", "/nowhere")
    assert command("autostart", "off").code == 0
    assert _files(user / ".config") == {}


@pytest.mark.usefixtures("no_systemd")
def test_without_systemd_the_desktop_starts_it(command: Command, user: Path) -> None:
    assert command("autostart", "on", "--as-root").code == 0
    assert list(_files(user)) == [ENTRY]
    assert command("autostart", "off").code == 0
    assert _files(user) == {}


def test_there_is_never_more_than_one_of_them(
    command: Command, user: Path, no_systemd: None, systemctl: Path
) -> None:
    (user / ".config/autostart").mkdir(parents=True)
    entry = xdg_autostart.render(LoginItem(str(command.home), ("/usr/bin/true",)))
    (user / ENTRY).write_text(entry)
    assert command("autostart", "on", "--as-root").code == 0
    assert UNIT in _files(user) and ENTRY not in _files(user)


@pytest.mark.parametrize("somebody", ["[Unit]\nDescription=mine\n", "", b"\xff\xfe"])
def test_a_file_of_somebody_else_is_neither_replaced_nor_removed(
    command: Command, user: Path, systemctl: Path, somebody: str | bytes
) -> None:
    (user / UNIT).parent.mkdir(parents=True)
    content = somebody if isinstance(somebody, bytes) else somebody.encode()
    (user / UNIT).write_bytes(content)
    done = command("autostart", "on", "--as-root")
    assert done.code == 4 and "not written by this command" in done.err
    assert command("autostart", "off").code == 0
    assert (user / UNIT).read_bytes() == content and [one.name for one in (user / ".config").rglob("*.*")] == [
        systemd_unit.NAME
    ]
    assert "enable" not in systemctl.read_text()


def test_a_link_is_somebody_elses(command: Command, user: Path, systemctl: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text(systemd_unit.render(LoginItem(str(command.home), ("/usr/bin/true",))))
    (user / UNIT).parent.mkdir(parents=True)
    (user / UNIT).symlink_to(target)
    assert command("autostart", "on", "--as-root").code == 4
    assert command("autostart", "off").code == 0 and (user / UNIT).is_symlink() and target.exists()


def test_another_home_is_left_as_it_is(command: Command, user: Path, systemctl: Path) -> None:
    command("autostart", "on", "--as-root")
    before = _files(user)
    for words in (("on", "--as-root"), ("off",)):
        done = command("autostart", *words, home=user / "second")
        assert done.code == 4 and str(command.home) in done.err
    assert command("autostart", "status", "--json", home=user / "second").json["on"] is False
    assert _files(user) == before


def test_root_is_asked_to_say_so(command: Command, user: Path, systemctl: Path) -> None:
    with pytest.raises(Refused, match="without sudo"):
        demand_sensible(0, as_root=False, under_passphrase=False)
    demand_sensible(1000, as_root=False, under_passphrase=False)
    if os.geteuid() == 0:
        assert command("autostart", "on").code == 4 and _files(user) == {}


def test_a_home_under_a_passphrase_cannot_start_by_itself(
    command: Command, user: Path, systemctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("autostart", "on", "--as-root").code == 0
    monkeypatch.setenv("ANONML_NEW_PASSPHRASE", "correct horse")
    assert command("passphrase").code == 0
    status = command("autostart", "status", "--json").json
    assert status["on"] is True and status["hindered"] is True
    assert "passphrase" in command("autostart", "status").out
    assert command("autostart", "off").code == 0
    done = command("autostart", "on", "--as-root")
    assert done.code == 4 and "nobody can type at login" in done.err and not (user / UNIT).exists()


# macOS and Windows: the rules on their places


def _item(home: str) -> LoginItem:
    command = ("C:\\Program Files\\Python\\pythonw.exe", "-m", "anonml", "peer", "run", "--stay", "--route", "auto")
    return LoginItem(home, (*command, "--home", home))


def test_an_agent_is_written_to_the_users_library_and_goes_again(user: Path) -> None:
    place = launchd_place(user, 501)
    assert switch_on(_item("/Users/zoë/peer"), [place]).endswith("/Library/LaunchAgents/org.anonml.peer.plist")
    assert switch_off("/Users/zoë/peer", [place]) == (str(place),) and _files(user) == {}
    assert place.after == (("launchctl", "bootstrap", "gui/501", str(place)),)
    assert place.before == (("launchctl", "bootout", "gui/501/org.anonml.peer"),)


class _Registry:
    """The part of `winreg` that is used, over one key."""

    HKEY_CURRENT_USER, KEY_READ, KEY_SET_VALUE, REG_SZ = "HKCU", 1, 2, 1

    def __init__(self) -> None:
        self.values: dict[str, str] = {"OneDrive": "onedrive.exe"}

    @contextmanager
    def CreateKeyEx(self, key: str, name: str, reserved: int, access: int) -> Iterator[dict[str, str]]:
        assert (key, name, reserved) == ("HKCU", r"Software\Microsoft\Windows\CurrentVersion\Run", 0)
        yield self.values

    def QueryValueEx(self, key: dict[str, str], name: str) -> tuple[str, int]:
        if name not in key:
            raise FileNotFoundError(name)
        return key[name], self.REG_SZ

    def SetValueEx(self, key: dict[str, str], name: str, reserved: int, kind: int, value: str) -> None:
        assert kind == self.REG_SZ
        key[name] = value

    def DeleteValue(self, key: dict[str, str], name: str) -> None:
        if name not in key:
            raise FileNotFoundError(name)
        del key[name]


def test_the_run_value_is_written_and_goes_again() -> None:
    registry, home = _Registry(), "C:\\Users\\a b\\peer"
    place = RegistryPlace(registry)
    assert switch_off(home, [place]) == ()
    switch_on(_item(home), [place])
    assert registry.values[run_key.NAME].endswith(f'peer run --stay --route auto --home "{home}"')
    assert switch_off(home, [place]) == (str(place),) and registry.values == {"OneDrive": "onedrive.exe"}
    registry.values[run_key.NAME] = "somebody.exe"
    with pytest.raises(Refused, match="not written by this command"):
        switch_on(_item(home), [place])
    assert switch_off(home, [place]) == () and registry.values[run_key.NAME] == "somebody.exe"
    del registry.values[run_key.NAME]
    with pytest.raises(Refused, match="260"):
        switch_on(_item("C:\\" + "long\\" * 60), [place])


# The peer that is started


def _of_session(number: int) -> list[str]:
    done = subprocess.run(["ps", "-o", "pid=,args=", "-s", str(number)], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


@pytest.mark.process
@pytest.mark.usefixtures("no_systemd")
def test_what_was_written_starts_a_peer_that_works_and_ends_when_told(
    command: Command, served: Served, user: Path, tmp_path: Path
) -> None:
    command("budget", "--minimum-cohort", "3")
    assert command("join", served.link, "--yes").code == 0
    assert command("autostart", "on", "--as-root").code == 0
    words = _as_desktops_read((user / ENTRY).read_text())
    (tmp_path / "attrs.py").write_text("raise SystemExit('a stray file was imported')")
    login = {"HOME": str(user), "PATH": "/usr/bin:/bin"}  # what a login gives, not what this shell has
    started = subprocess.Popen(
        words,
        env=login,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while not served.aggregator.sent("enrol") and started.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        with pytest.raises(Refused, match="another process"), PeerHome(command.home).running():
            pass
        assert len(_of_session(started.pid)) == 1
        started.send_signal(signal.SIGTERM)
        out, err = started.communicate(timeout=PATIENCE)
    finally:
        if started.poll() is None:
            started.kill()
            started.communicate()
    assert len(served.aggregator.sent("enrol")) == 1 and started.returncode == 0
    assert out == "" and err == ""  # it ends in the system's journal
    assert _of_session(started.pid) == []
    with PeerHome(command.home).running():
        pass
    assert command("autostart", "off").code == 0


def _peer(home: Path) -> PeerApp:
    def no_route() -> Any:
        raise AssertionError("nothing is due")

    return PeerApp(PeerHome(home), no_route, time.time, os.urandom)


async def test_it_waits_while_the_page_runs_the_home_and_takes_over_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "RETRY_SECONDS", 0.05)
    peer, seen = _peer(tmp_path), []

    async def beside(supervisor: Any) -> None:
        while True:
            seen.append(str(supervisor.running))
            await asyncio.sleep(0.01)

    staying = asyncio.create_task(resident.stay(peer, beside))
    with PeerHome(tmp_path).running():
        await until(lambda: "elsewhere" in seen)
        await turns()
        assert not staying.done()
    await until(lambda: seen[-20:] == ["here"] * 20)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(staying, PATIENCE)
    peer.close()


def test_it_refuses_a_limit_and_a_home_that_was_moved(command: Command, user: Path) -> None:
    assert command("run", "--stay", "--once").code == 4
    command("budget", "--lifetime", "4")
    done = command("backup", user / "copy", "--final")
    assert done.code == 0, done.err
    assert command("run", "--stay").code == 4
