"""The entry that starts a peer at login says the same to each operating system's own reader.

A system's reader that is missing on this machine is not asked.
"""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from anon.errors import Refused
from peer.desktop.login import macos, run_key, systemd_unit, xdg_autostart
from peer.desktop.login.item import LAUNCHER, LoginItem, login_item, own_program

pytestmark = pytest.mark.process

HOMES = [
    "/home/zoë/.anonml-peer",
    "/home/a b/.anonml-peer",
    "/home/50%h off/%%/peer",
    "/home/$HOME/${X}/$$/peer",
    "/home/it's \"quoted\"/back\\slash\\\\n/`id`/peer",
    "/home/学生/; rm #/peer ",
]
FORMATS = [systemd_unit, xdg_autostart, macos]


def item(home: str, program: str = "/usr/bin/true", **environment: str) -> LoginItem:
    return login_item((program, "-P", "-m", "anonml"), Path(home), "auto", environment)


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("form", FORMATS)
def test_the_home_is_read_back_from_what_was_written(form: object, home: str) -> None:
    assert form.home_of(form.render(item(home))) == item(home).home  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "", "\x00", "[Unit]\nDescription=x\n", "X-AnonML-Home=nonsense", "[X-AnonML]\nHome=1", "<plist/>",
        "<plist><dict><key>Label</key><string>org.anonml.peer</string></dict></plist>", "{}", "a peer run --stay b",
    ],
)
@pytest.mark.parametrize("form", [*FORMATS, run_key])
def test_what_somebody_else_wrote_is_not_ours(form: object, text: str) -> None:
    assert form.home_of(text) is None  # type: ignore[attr-defined]


# systemd


def _as_systemd_reads(unit: str, folder: Path) -> list[str]:
    """Systemd's own account of a unit, line by line. It fails for what it would not start."""
    path = folder / systemd_unit.NAME
    path.write_text(unit, encoding="utf-8")
    surroundings = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "SYSTEMD_LOG_LEVEL": "debug", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(path)],
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "Unknown" not in done.stderr and "ignoring" not in done.stderr, done.stderr
    return [line.strip() for line in (done.stdout + done.stderr).splitlines()]


def _words(command_line: str) -> list[str]:
    """The words of systemd's own listing, which quotes as a shell does. Dollars are doubled until the start."""
    listed = subprocess.run(["sh", "-c", f"printf '%s\\0' {command_line}"], capture_output=True, check=True).stdout
    return [word.decode().replace("$$", "$") for word in listed.split(b"\0")[:-1]]


needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")


@needs_systemd
@pytest.mark.parametrize("home", HOMES)
def test_systemd_starts_exactly_the_words_that_were_meant(tmp_path: Path, home: str) -> None:
    program = tmp_path / "a program%h é"
    program.symlink_to("/usr/bin/true")
    meant = item(home, str(program), ANONML_TOR="/opt/a $b/50%h/to'r\"", ANONML_TORRC="/x", ANONML_PASSPHRASE="secret")
    said = _as_systemd_reads(systemd_unit.render(meant), tmp_path)
    line = next(line for line in said if line.startswith("Command Line:")).removeprefix("Command Line:")
    assert _words(line) == list(meant.command)
    assert "Environment: ANONML_TOR=/opt/a $b/50%h/to'r\"" in said
    assert not any("secret" in one for one in said)


def test_a_program_that_systemd_could_not_start_is_refused() -> None:
    with pytest.raises(Refused, match="another folder"):
        systemd_unit.render(item("/home/a", "/opt/$x/python"))


# XDG autostart


def _as_desktops_read(entry: str) -> list[str]:
    """The words of `Exec`: a value's escapes undone, field codes undone, then words as a shell reads them."""
    line = next(line for line in entry.splitlines() if line.startswith("Exec=")).removeprefix("Exec=")
    value = line.replace("\\\\", "\0").replace("\0", "\\").replace("%%", "%")
    listed = subprocess.run(["sh", "-c", f"printf '%s\\0' {value}"], capture_output=True, check=True, env={}).stdout
    return [word.decode() for word in listed.split(b"\0")[:-1]]


@pytest.mark.parametrize("home", HOMES)
def test_a_desktop_starts_exactly_the_words_that_were_meant(home: str) -> None:
    meant = item(home)
    assert _as_desktops_read(xdg_autostart.render(meant)) == list(meant.command)
    named = item(home, ANONML_TORRC="/a b/$x%U/brid`ges")
    assert _as_desktops_read(xdg_autostart.render(named)) == ["env", "ANONML_TORRC=/a b/$x%U/brid`ges", *named.command]


@pytest.mark.skipif(shutil.which("desktop-file-validate") is None, reason="desktop-file-validate is missing")
@pytest.mark.parametrize("home", HOMES)
def test_the_entry_is_valid_to_the_desktop_project(tmp_path: Path, home: str) -> None:
    path = tmp_path / xdg_autostart.NAME
    path.write_text(xdg_autostart.render(item(home)), encoding="utf-8")
    done = subprocess.run(["desktop-file-validate", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_program_that_an_entry_cannot_name_is_refused() -> None:
    with pytest.raises(Refused, match="elsewhere"):
        xdg_autostart.render(item("/home/a", "/opt/a=b/python"))


# launchd and Windows, which are not here: the formats alone


@pytest.mark.parametrize("home", HOMES)
def test_a_property_list_holds_exactly_the_words_that_were_meant(home: str) -> None:
    meant = item(home, ANONML_TORRC="/a b/<&>")
    agent = plistlib.loads(macos.render(meant).encode())
    assert agent["ProgramArguments"] == list(meant.command) and agent["RunAtLoad"] is True
    assert agent["EnvironmentVariables"] == {"ANONML_TORRC": "/a b/<&>", "ANONML_PEER_HOME": meant.home}
    assert agent["KeepAlive"] == {"SuccessfulExit": False}  # ended by its owner, it stays ended


WINDOWS_HOMES = ["C:\\Users\\Zoë\\.anonml-peer", "C:\\Users\\a b\\peer", "C:\\Users\\50%h\\peer", "D:\\a b\\"]


def _windows_item(home: str) -> LoginItem:
    program = ("C:\\Program Files\\Python\\pythonw.exe", "-P", "-m", "anonml")
    return LoginItem(home, (*program, "peer", "run", "--stay", "--route", "auto", "--home", home))


@pytest.mark.parametrize("home", WINDOWS_HOMES)
def test_the_run_value_names_its_home(home: str) -> None:
    value = run_key.render(_windows_item(home))
    assert value.startswith('"C:\\Program Files\\Python\\pythonw.exe" -P') and run_key.home_of(value) == home


# The item


@pytest.mark.parametrize("home", ["/home/a\nExecStart=/bin/evil", "/home/\x00", "/home/a\tb", "/home/\u2028"])
def test_a_path_that_could_begin_a_line_is_refused(home: str) -> None:
    with pytest.raises(Refused, match="control character"):
        item(home)
    with pytest.raises(Refused, match="control character"):
        item("/home/a", ANONML_TOR=home)


def test_paths_are_absolute_and_a_bundle_starts_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    meant = login_item(("/p",), Path("here"), "tor", {"ANONML_TOR": "tor", "ANONML_TORRC": ""})
    assert meant.home == str(tmp_path / "here") and meant.environment == (("ANONML_TOR", str(tmp_path / "tor")),)
    assert meant.command == ("/p", "peer", "run", "--stay", "--route", "tor", "--home", meant.home)
    assert own_program("/opt/anonml-peer") == ("/opt/anonml-peer",)
    assert own_program("/venv/bin/python3.12") == ("/venv/bin/python3.12", "-P", "-m", "anonml")
    (tmp_path / "pythonw.exe").touch()
    assert own_program(str(tmp_path / "python.exe"), "win32")[0] == str(tmp_path / "pythonw.exe")
    (tmp_path.parent / LAUNCHER).touch()
    assert own_program(str(tmp_path / "python.exe"), "win32") == (str(tmp_path.parent / LAUNCHER),)


def test_a_child_that_runs_out_of_memory_ends_no_peer() -> None:
    assert "\nOOMPolicy=continue\n" in systemd_unit.render(LoginItem("/home/a", ("/usr/bin/anonml", "peer", "run")))
