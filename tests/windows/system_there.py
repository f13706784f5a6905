"""Run by Windows' Python alone: consoles, paths, open files, registry, clock and Ctrl-C, as Windows has them."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import anonml
from anon.errors import Refused
from anon.kit.terminal.options import local_time
from anon.machine.clock import elapsed_seconds
from anon.storage import open_elsewhere
from anon.storage.durable import connect
from anon.storage.overwriting import remove_file
from anon.storage.private_files import write_private
from peer.data.kept import DATA_KEPT
from peer.desktop.login import run_key
from peer.store.home import PeerHome, RunElsewhere
from tests.support.peer_command import Command, Served

ROOT = Path(__file__).resolve().parents[2]
UMLAUTS = "Änne Müller 学生 😀 #1 100%"
NO_WINDOW, DETACHED = 0x8000000, 0x8
"""A console of its own, without a window; no console."""
PRESSED = """
import ctypes, signal, subprocess, sys, time
from pathlib import Path
kernel = ctypes.WinDLL("kernel32")
words = [sys.executable, "-m", "anonml", "peer", "run", "--stay", "--home", sys.argv[1]]
child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
while not Path(sys.argv[1], "peer.sqlite").exists() and child.poll() is None:
    time.sleep(0.1)
time.sleep(2)
kernel.SetConsoleCtrlHandler(None, True)
sent = kernel.GenerateConsoleCtrlEvent(0, 0)
try:
    out, _ = child.communicate(timeout=40)
    print(sent, child.returncode, out.decode("cp1252"))
finally:
    child.kill()
"""
SYNCHRONISED = """
import ctypes, os, random, sys, time
kernel = ctypes.WinDLL("kernel32")
kernel.CreateFileW.restype = ctypes.c_void_p
kernel.CloseHandle.argtypes = (ctypes.c_void_p,)
chance, seen, held, missed = random.Random(int(sys.argv[2])), {}, 0, 0
print("begun", flush=True)
while not os.path.exists(sys.argv[3]):
    for folder, _, names in os.walk(sys.argv[1]):
        for path in (os.path.join(folder, name) for name in names):
            try:
                now = os.stat(path)
            except OSError:
                continue
            if seen.get(path) == (now.st_mtime_ns, now.st_size):
                continue
            seen[path] = now.st_mtime_ns, now.st_size
            time.sleep(chance.uniform(0, 0.02))
            handle = kernel.CreateFileW(path, 0x80000000, 0, None, 3, 0, None)
            if handle in (None, 2**64 - 1):
                missed += 1
                continue
            held += 1
            time.sleep(chance.uniform(0, 0.1))
            kernel.CloseHandle(handle)
    time.sleep(0.005)
print(held, missed)
"""
"""Reads each changed file below a folder, at moments by a seed, and shares it with nobody meanwhile."""


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """A file of the owner's, with Windows' ends of lines and a name in capitals."""
    file = tmp_path / "PERSON.CSV"
    file.write_bytes("age,city\r\n31,Köln\r\n".encode("cp1252"))
    return file


@contextmanager
def printing(code_page: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.BytesIO]:
    """The streams of a program whose pipes have this code page."""
    written = io.BytesIO()
    with monkeypatch.context() as patched:
        stream = io.TextIOWrapper(written, encoding=code_page, write_through=True)
        patched.setattr(sys, "stdout", stream), patched.setattr(sys, "stderr", stream)
        yield written
        stream.detach()


def anonml_there(patched: pytest.MonkeyPatch, *words: str | Path) -> int:
    """`anonml WORDS` on the streams that are there; its exit code."""
    patched.setattr(sys, "argv", ["anonml", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        anonml.main()
    return int(ended.value.code or 0)


# Consoles, pipes and none


@pytest.mark.parametrize("code_page", ["cp437", "cp850", "cp1252", "utf-8"])
def test_a_study_is_joined_and_shown_in_every_code_page(
    code_page: str, tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = ("--home", tmp_path / UMLAUTS)
    with printing(code_page, monkeypatch) as written:
        for words in (("budget", "--minimum-cohort", "2"), ("join", served.link, "--yes"), ("status",), ("receipts",)):
            assert anonml_there(monkeypatch, "peer", *words, *home) == 0, written.getvalue()
    assert "is reserved" in written.getvalue().decode(code_page)


def test_output_goes_to_a_file_and_through_a_pipe(tmp_path: Path) -> None:
    """In the code page of this system, with a letter that it lacks."""
    told = tmp_path / "told.txt"
    words = [sys.executable, "-m", "anonml", "peer", "status", "--home", tmp_path / UMLAUTS / "no home"]
    piped = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, stdin=subprocess.PIPE, timeout=120)
    with told.open("wb") as file:
        subprocess.run(words, cwd=ROOT, check=False, stdout=file, stderr=file, stdin=subprocess.PIPE, timeout=120)
    assert b"no studies yet" in piped.stdout and piped.returncode == 0
    assert told.read_bytes() == piped.stdout + piped.stderr


def test_a_program_without_a_console_does_its_work(tmp_path: Path) -> None:
    """`pythonw` has neither output nor input: an item that starts at login, or a link that is opened."""
    windowless, home = Path(sys.executable).with_name("pythonw.exe"), tmp_path / UMLAUTS
    words = [windowless, "-m", "anonml", "peer", "budget", "--lifetime", "3", "--home", home]
    assert subprocess.run(words, cwd=ROOT, check=False, creationflags=DETACHED, timeout=120).returncode == 0
    assert PeerHome(home).store_path.exists()


def test_control_c_ends_a_run_in_order(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PRESSED, str(tmp_path / "home")]
    pressed = subprocess.run(
        words, cwd=ROOT, check=False, capture_output=True, stdin=subprocess.PIPE, creationflags=NO_WINDOW, timeout=150
    )
    said = pressed.stdout.decode("cp1252")
    failed = said + pressed.stderr.decode("cp1252")
    assert said.split()[:2] in (["1", "0"], ["1", "130"]) and "Traceback" not in said, failed


# Paths


@pytest.mark.parametrize(
    "name", ["with spaces", UMLAUTS, "OneDrive - Universität", "/".join(["a folder of thirty characters!"] * 9)],
    ids=["spaces", "umlauts and emoji", "synchronised", "over 260 characters"],
)
def test_a_home_lives_in_a_folder_of_any_name(name: str, tmp_path: Path, person: Path, command: Command) -> None:
    home, copy = tmp_path / name / "home", tmp_path / name / "copy.zip"
    assert command("import", person, home=home).code == 0
    assert command("backup", copy, home=home).code == 0
    assert command("restore", copy, home=tmp_path / name / "restored").code == 0


def test_a_home_on_another_drive_is_one(person: Path, command: Command) -> None:
    with tempfile.TemporaryDirectory(dir=f"{ROOT.drive}/tmp", ignore_cleanup_errors=True) as folder:
        assert person.drive != Path(folder).drive
        assert command("import", person, home=Path(folder) / UMLAUTS).code == 0


def test_a_home_is_the_same_in_capitals(tmp_path: Path, person: Path, command: Command) -> None:
    assert command("import", person, home=tmp_path / "home").code == 0
    with PeerHome(tmp_path / "home").running(), pytest.raises(RunElsewhere), PeerHome(tmp_path / "HOME").running():
        pass


def test_files_that_an_editor_wrote_with_windows_line_ends_are_read(tmp_path: Path, command: Command) -> None:
    home = PeerHome(tmp_path / "home")
    assert command("budget", home=home.path).code == 0
    home.settings_path.write_bytes(b'{\r\n  "head_checks": 3\r\n}\r\n')
    assert home.settings().head_checks == 3
    write_private(home.settings_path, b'{"head_checks": 4}\n')
    assert b"\r" not in home.settings_path.read_bytes()


# Open files


def test_a_file_that_another_program_has_open_is_replaced_once_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, waits = tmp_path / "settings.json", []
    file.write_bytes(b"old")
    with file.open("rb") as other:
        monkeypatch.setattr(time, "sleep", lambda seconds: waits.append(seconds) or other.close())
        write_private(file, b"new")
    assert file.read_bytes() == b"new" and len(waits) == 1


def test_a_file_that_stays_open_is_told_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b"old")
    monkeypatch.setattr(open_elsewhere, "PAUSE", 0)
    with file.open("rb") as other:
        for act in (lambda: write_private(file, b"new"), lambda: remove_file(file)):
            with pytest.raises(Refused, match="another program has this file open"):
                act()
            assert len(other.read()) <= 3
    assert file.exists()


def test_a_database_that_another_program_shared_with_nobody_is_written(tmp_path: Path) -> None:
    """SQLite opens it for reading alone, and that connection stays so."""
    import ctypes

    file = tmp_path / "data.sqlite"
    file.touch()
    kernel = ctypes.WinDLL("kernel32")
    kernel.CreateFileW.restype, kernel.CloseHandle.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    handle = kernel.CreateFileW(str(file), 0x80000000, 0, None, 3, 0, None)
    later = threading.Timer(0.2, kernel.CloseHandle, (handle,))
    later.start()
    with closing(connect(file, DATA_KEPT)) as connection:
        connection.execute("CREATE TABLE person (age)")
    later.join()


@pytest.mark.soak
def test_a_home_lives_in_a_folder_whose_program_reads_what_changes_and_shares_nothing(
    tmp_path: Path, person: Path, command: Command
) -> None:
    """Commands succeed all the same, and the last backup has all."""
    folder, over, turns = tmp_path / "OneDrive - Universität", tmp_path / "over", 6
    folder.mkdir()
    words = [sys.executable, "-I", "-S", "-c", SYNCHRONISED, str(folder), "7", str(over)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None and reader.stdout.readline() == "begun\n"
        try:
            for turn in range(1, turns + 1):
                for asked in (
                    ("import", person), ("budget", "--lifetime", str(turn)), ("backup", folder / f"copy {turn}.zip")
                ):  # fmt: skip
                    done = command(*asked, home=folder / "home")
                    assert done.code == 0, done.err
        finally:
            over.touch()
        held, missed = map(int, reader.stdout.read().split())
    print(f"held {held} files, {missed} were in use")
    assert held > turns
    assert command("restore", folder / f"copy {turns}.zip", home=tmp_path / "restored").code == 0
    assert command("tables", "--json", home=tmp_path / "restored").json == {"person": ["age", "city"]}
    assert command("budget", "--json", home=tmp_path / "restored").json["lifetime"] == turns


# Threads, clock and registry


def test_a_loop_is_woken_by_each_of_two_threads_at_once() -> None:
    """Without `tests.support.wakeful` Wine lost a third of these bytes, and with them the work of the one thread."""
    loop, each, came = asyncio.SelectorEventLoop(), 3000, 0
    loop._ssock.settimeout(10)  # type: ignore[attr-defined]
    threads = [threading.Thread(target=lambda: [loop._write_to_self() for _ in range(each)]) for _ in range(2)]  # type: ignore[attr-defined]
    for thread in threads:
        thread.start()
    while came < 2 * each:
        came += len(loop._ssock.recv(4096))  # type: ignore[attr-defined]
    for thread in threads:
        thread.join()
    loop.close()


def test_the_clock_that_nobody_sets_counts_sleep_and_times_have_short_zones() -> None:
    assert time.get_clock_info("monotonic").implementation == "GetTickCount64()"
    first = elapsed_seconds()
    assert elapsed_seconds() >= first
    assert len(local_time(time.time()).split()[-1]) <= 6, local_time(time.time())


def test_start_at_login_is_a_value_of_the_run_key_that_starts(tmp_path: Path, command: Command) -> None:
    import winreg

    home = tmp_path / UMLAUTS
    with winreg.CreateKeyEx(winreg.HKEY_CURRENT_USER, r"Software\Microsoft\Windows\CurrentVersion\Run") as key:
        winreg.SetValueEx(key, "Another", 0, winreg.REG_SZ, "another.exe")
    assert command("autostart", "on", home=home).code == 0
    assert str(home) in command("autostart", "status", home=home).out
    with winreg.OpenKey(winreg.HKEY_CURRENT_USER, r"Software\Microsoft\Windows\CurrentVersion\Run") as key:
        value, _ = winreg.QueryValueEx(key, run_key.NAME)
        started = subprocess.Popen(value, cwd=ROOT, creationflags=DETACHED)
        try:
            while not PeerHome(home).store_path.exists():
                assert started.poll() is None
                time.sleep(0.1)
        finally:
            started.kill()
            started.wait()
        assert command("autostart", "off", home=home).code == 0
        with pytest.raises(FileNotFoundError):
            winreg.QueryValueEx(key, run_key.NAME)
        assert winreg.QueryValueEx(key, "Another")[0] == "another.exe"
