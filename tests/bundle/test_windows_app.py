"""The folder for Windows: the same bytes twice, nothing that was compiled or made for tests, no more than 60 MB."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest

from bundle.windows_app import COMPILER, SOURCES, launcher, packed, release, unpacked
from peer.desktop import launcher as words_to_it
from peer.desktop.login.item import LAUNCHER

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
LONGEST_SOURCE = 300
MOST_BYTES = 60_000_000
needs_compiler = pytest.mark.skipif(
    not shutil.which(COMPILER), reason=f"{COMPILER} is missing: apt-get install gcc-mingw-w64-x86-64-win32"
)


@needs_compiler
def test_the_launcher_has_the_same_bytes_twice_with_icon_version_and_manifest(tmp_path: Path) -> None:
    for name in ("once", "twice"):
        (tmp_path / name).mkdir()
        launcher("1.22.3", tmp_path / name / LAUNCHER)
    once, twice = ((tmp_path / name / LAUNCHER).read_bytes() for name in ("once", "twice"))
    assert once == twice
    (header,) = struct.unpack_from("<I", once, 0x3C)
    assert struct.unpack_from("<I", once, header + 8) == (0,), "no time of the build"
    assert struct.unpack_from("<H", once, header + 92) == (2,), "a program without a console"
    for held in (b'level="asInvoker"', b">true</longPathAware>", b">UTF-8</activeCodePage>", b'version="1.22.3.0"'):
        assert held in once, held
    assert "1.22.3".encode("utf-16-le") in once and (SOURCES / "anonml.ico").read_bytes()[-2000:] in once
    assert b"@" not in once[once.index(b"<assembly") : once.index(b"</assembly>")]


def test_the_launchers_source_is_short_and_its_names_are_the_peers() -> None:
    source = (SOURCES / "launcher.c").read_text("ascii")
    assert source.count("\n") <= LONGEST_SOURCE and max(map(len, source.splitlines())) <= 120
    assert f'#define NAME L"{words_to_it.NAME}"' in source and "A_LINK = 1, A_NOTICE }" in source
    assert words_to_it.A_NOTICE == 2 and f"{words_to_it.NAME}.exe" == LAUNCHER


def test_a_zip_shows_neither_clock_nor_order_nor_modes(tmp_path: Path) -> None:
    made = []
    for name in ("once", "twice"):
        place = tmp_path / name
        for file in ("b/x", "a") if name == "once" else ("a", "b/x"):
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(file * 1000)
        (place / "a").chmod(0o600 if name == "once" else 0o755)
        os.utime(place / "a", (10**9, 10**9 + len(made)))
        (place / "__pycache__").mkdir()
        (place / "__pycache__" / "a.pyc").write_text(name)
        packed(place, 1_750_000_000, tmp_path / f"{name}.zip")
        made.append((tmp_path / f"{name}.zip").read_bytes())
    assert made[0] == made[1]
    with zipfile.ZipFile(tmp_path / "once.zip") as archive:
        assert archive.namelist() == ["AnonML/a", "AnonML/b/x"]


def test_a_wheel_is_unpacked_without_its_manual_and_one_with_modules_elsewhere_is_refused(tmp_path: Path) -> None:
    for name, files in {"good": ("a/b.py", "good.data/data/man"), "bad": ("bad.data/purelib/b.py",)}.items():
        with zipfile.ZipFile(tmp_path / f"{name}.whl", "w") as wheel:
            for file in files:
                wheel.writestr(file, "")
    unpacked(tmp_path / "good.whl", tmp_path / "place")
    assert [path.name for path in (tmp_path / "place").rglob("*") if path.is_file()] == ["b.py"]
    with pytest.raises(ValueError, match=r"bad\.data"):
        unpacked(tmp_path / "bad.whl", tmp_path / "place")


@pytest.mark.soak
@needs_compiler
def test_two_builds_have_one_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second with another clock's zone and another umask."""
    subprocess.run(["make", "windows-app"], cwd=ROOT, check=True, timeout=1800)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1750000000")
    once, digest = release(ROOT, tmp_path / "once", tmp_path / "folder")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    before = os.umask(0o077)
    try:
        twice, _ = release(ROOT, tmp_path / "twice", tmp_path / "another folder")
    finally:
        os.umask(before)
    assert once.read_bytes() == twice.read_bytes() and once.stat().st_size <= MOST_BYTES
    assert digest.read_text() == f"{hashlib.sha256(once.read_bytes()).hexdigest()}  {once.name}\n"
    with zipfile.ZipFile(once) as archive:
        held = set(archive.namelist())
    assert {"AnonML/AnonML.exe", "AnonML/python/python.exe", "AnonML/packages/anonml.py"} <= held
    foreign = ("bcryptprimitives", ".pyc", "packages/pytest", "packages/numpy")
    assert not [name for name in held if any(word in name for word in foreign)]
