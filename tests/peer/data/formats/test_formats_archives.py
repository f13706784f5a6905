"""Unsafe archives: refused with one line before anything in them is unpacked; ordinary ones are streamed."""

from __future__ import annotations

import builtins
import gzip
import io
import os
import sqlite3
import stat
import struct
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from anon.errors import AnonmlError, Malformed, Refused
from anon.tables.streams import ImportLimits
from peer.data import foreign
from peer.data.formats import archives
from peer.data.importing import import_file, import_rows
from peer.data.preview import preview
from tests.support.real_exports import takeout_json, takeout_path, tarred, zipped

SMALL = ImportLimits(entries=20, archive_bytes=50_000_000, ratio=100, ratio_from=1_000_000, index_bytes=20_000)
GOOD: dict[str, str | bytes] = {"mine/a.csv": "a,b\n1,2\n", "mine/b.jsonl": '{"x": 1}\n'}


@pytest.fixture
def _read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in this process, which is watched, and not in a child."""
    monkeypatch.setattr(foreign, "has_children", lambda: False)


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


# --- one bad archive per flaw ---

Make = Callable[[Path], Path]


def _zip_entry(name: str, mode: int = stat.S_IFREG | 0o644, content: str = "a\n1\n") -> Make:
    def make(folder: Path) -> Path:
        info = zipfile.ZipInfo("x" * len(name))
        info.create_system = 3
        info.external_attr = mode << 16
        with zipfile.ZipFile(folder / "u.zip", "w") as archive:
            archive.writestr("secret.csv", "a\n1\n")
            archive.writestr(info, content)
        data = (folder / "u.zip").read_bytes()
        (folder / "u.zip").write_bytes(data.replace(b"x" * len(name), name.encode()))
        return folder / "u.zip"

    return make


def _tar_entry(name: str, kind: bytes = tarfile.REGTYPE, form: int = tarfile.PAX_FORMAT) -> Make:
    def make(folder: Path) -> Path:
        with tarfile.open(folder / "u.tar", "w", format=form) as archive:
            archive.addfile(tarfile.TarInfo("secret.csv"))
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            archive.addfile(info)
        return folder / "u.tar"

    return make


def _zip_bomb(folder: Path) -> Path:
    """40 MB of zeros in one file of about 40 kB."""
    with (
        zipfile.ZipFile(folder / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("secret.csv", "w") as stream,
    ):
        for _ in range(40):
            stream.write(b"0" * 1_000_000)
    return folder / "bomb.zip"


def _bomb_beside_noise(folder: Path) -> Path:
    """The archive as a whole stays below the ratio."""
    file = _zip_bomb(folder)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("noise.bin", os.urandom(1_000_000))
    return file


def _many_small_bombs(folder: Path) -> Path:
    """No file alone is over the ratio's threshold; all together are."""
    return zipped(folder / "bombs.zip", {f"secret{number}.csv": b"0" * 900_000 for number in range(15)})


def _overlapping(folder: Path) -> Path:
    """Two entries of the list that share one file's bytes, as in bombs that stay below every ratio."""
    zipped(folder / "o.zip", {"a.csv": "a\n1\n", "b.csv": "a\n2\n"}, zipfile.ZIP_STORED)
    data = bytearray((folder / "o.zip").read_bytes())
    second = data.rfind(b"PK\1\2")
    data[second + 42 : second + 46] = struct.pack("<I", 0)
    (folder / "o.zip").write_bytes(data)
    return folder / "o.zip"


def _lying_index(folder: Path) -> Path:
    zipped(folder / "l.zip", GOOD)
    data = bytearray((folder / "l.zip").read_bytes())
    end = data.rfind(b"PK\5\6")
    data[end + 12 : end + 16] = struct.pack("<I", 2**31)
    (folder / "l.zip").write_bytes(data)
    return folder / "l.zip"


def _twice(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "t.zip", "w") as archive:
        archive.writestr("secret.csv", "a\n1\n")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("secret.csv", "a\n2\n")
    return folder / "t.zip"


def _encrypted(folder: Path) -> Path:
    zipped(folder / "e.zip", {"secret.csv": "a\n1\n"}, zipfile.ZIP_STORED)
    data = bytearray((folder / "e.zip").read_bytes())
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.find(mark) + place] |= 1
    (folder / "e.zip").write_bytes(data)
    return folder / "e.zip"


def _huge_extension(folder: Path) -> Path:
    """A header that announces a name of 2 GB."""
    info = tarfile.TarInfo("secret.csv")
    info.type, info.size = tarfile.XHDTYPE, 2 * 10**9
    (folder / "h.tar").write_bytes(info.tobuf(tarfile.USTAR_FORMAT) + bytes(1024))
    return folder / "h.tar"


def _sparse(folder: Path) -> Path:
    """A GNU sparse file of pax: what is there is not what it stands for."""
    with tarfile.open(folder / "s.tar", "w", format=tarfile.PAX_FORMAT, pax_headers={}) as archive:
        info = tarfile.TarInfo("secret.csv")
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.size": str(10**12)}
        archive.addfile(info)
    return folder / "s.tar"


def _gzip_bomb(folder: Path) -> Path:
    with gzip.open(folder / "g.csv.gz", "wb") as stream:
        stream.write(b"a\n")
        for _ in range(100):
            stream.write((b"1" * 9_999 + b"\n") * 100)
    return folder / "g.csv.gz"


def _tar_bomb(folder: Path) -> Path:
    return tarred(folder / "b.tar.gz", {"secret.csv": b"0" * 30_000_000})


UNSAFE: dict[str, tuple[Make, str]] = {
    "a bomb": (_zip_bomb, "times its size"),
    "a bomb beside noise": (_bomb_beside_noise, "entry 1 of the archive unpacks to more than 100 times its size"),
    "many small bombs": (_many_small_bombs, "times its size"),
    "a bomb of gzip": (_gzip_bomb, "times as long"),
    "a bomb of tar.gz": (_tar_bomb, "times as long"),
    "more than the limit in all": (
        lambda folder: tarred(folder / "b.tar", {f"{n}.csv": b"0" * 9_000_000 for n in range(6)}),
        "unpacks to more than",
    ),
    "too many files": (
        lambda folder: zipped(folder / "m.zip", {f"{n}.csv": "a\n" for n in range(21)}),
        "more than 20 files",
    ),
    "too many files in tar": (
        lambda folder: tarred(folder / "m.tar", {f"{n}.csv": "a\n" for n in range(21)}),
        "more than 20 files",
    ),
    "a long list": (lambda folder: zipped(folder / "m.zip", {"x" * 30_000: "a\n"}), "list of files"),
    "a list that lies": (_lying_index, "list of files"),
    "traversal": (_zip_entry("../secret.csv"), "leads out"),
    "traversal inside": (_zip_entry("a/../../secret.csv"), "leads out"),
    "traversal by backslash": (_zip_entry("..\\secret.csv"), "leads out"),
    "absolute": (_zip_entry("/etc/secret.csv"), "leads out"),
    "a drive": (_zip_entry("C:\\secret.csv"), "leads out"),
    "a drive's own folder": (_zip_entry("C:secret.csv"), "leads out"),
    "a share": (_zip_entry("\\\\server\\secret.csv"), "leads out"),
    "a share in tar": (_tar_entry("//server/secret.csv"), "leads out"),
    "nothing but the way up": (_zip_entry("secret/.."), "leads out"),
    "a NUL": (_zip_entry("a\0/../secret.csv"), "leads out"),
    "traversal in tar": (_tar_entry("../secret.csv"), "leads out"),
    "traversal in GNU tar's long name": (_tar_entry("../" + "s" * 200, form=tarfile.GNU_FORMAT), "leads out"),
    "traversal in pax": (_tar_entry("../" + "ü" * 200), "leads out"),
    "absolute in tar": (_tar_entry("/etc/secret.csv"), "leads out"),
    "a symlink": (_zip_entry("secret", stat.S_IFLNK | 0o777, "/etc/passwd"), "link or a device"),
    "a device": (_zip_entry("secret", stat.S_IFCHR | 0o666), "link or a device"),
    "a pipe": (_zip_entry("secret", stat.S_IFIFO | 0o666), "link or a device"),
    "a symlink in tar": (_tar_entry("secret", tarfile.SYMTYPE), "link or a device"),
    "a hard link in tar": (_tar_entry("secret", tarfile.LNKTYPE), "link or a device"),
    "a device in tar": (_tar_entry("secret", tarfile.CHRTYPE), "link or a device"),
    "a block device in tar": (_tar_entry("secret", tarfile.BLKTYPE), "link or a device"),
    "a pipe in tar": (_tar_entry("secret", tarfile.FIFOTYPE), "link or a device"),
    "a sparse file": (_sparse, "link or a device"),
    "an archive in it": (_zip_entry("mine/Secret.ZIP"), "is an archive itself"),
    "a gzip in it": (_zip_entry("mine/secret.log.gz"), "is an archive itself"),
    "an archive in tar": (_tar_entry("mine/secret.tar"), "is an archive itself"),
    "a name twice": (_twice, "name of an earlier one"),
    "a name twice by accents": (
        lambda folder: zipped(folder / "t.zip", {"\u00e4.csv": "a\n", "a\u0308.csv": "a\n"}),
        "name of an earlier one",
    ),
    "a name twice by slashes": (
        lambda folder: zipped(folder / "t.zip", {"./a.csv": "a\n", "a.csv": "a\n"}),
        "name of an earlier one",
    ),
    "a name twice in tar": (_tar_entry("secret.csv"), "name of an earlier one"),
    "overlapping files": (_overlapping, "share the same bytes"),
    "a name of two gigabytes": (_huge_extension, "longer than"),
    "encrypted": (_encrypted, "encrypted"),
    "nothing to import": (lambda folder: zipped(folder / "n.zip", {"secret.jpg": b"\xff\xd8"}), "without any file"),
    "empty": (lambda folder: zipped(folder / "n.zip", {}), "without any file"),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_archive_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    make, says = UNSAFE[name]
    file, database = make(tmp_path), tmp_path / "d.sqlite"
    import_rows(database, "t", ["a"], [(1,)])
    before = set(tmp_path.rglob("*"))
    looks = [lambda: import_file(database, file, limits=SMALL)]
    if name != "a bomb of gzip":  # gzip has no list of what it holds: a preview reads its beginning, and only that
        looks.append(lambda: preview(file, limits=SMALL))
    for look in looks:
        with pytest.raises(Refused) as caught:
            look()
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)
        assert "secret" not in str(caught.value).lower(), "names in an archive are the owner's"
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert set(tmp_path.rglob("*")) == before, "nothing was unpacked"
    assert rows(database, "select * from t") == [(1,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in UNSAFE if "gzip" not in name and "tar" not in name and name != "encrypted"]
)
@pytest.mark.usefixtures("_read_here")
def test_it_is_refused_before_a_byte_of_any_file_is_unpacked(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zip members are deflated data: no decompressor may be made before the whole list was judged."""
    file = UNSAFE[name][0](tmp_path)

    def trap(*_arguments: object) -> None:
        raise AssertionError("unpacked")

    monkeypatch.setattr(zlib, "decompressobj", trap)
    monkeypatch.setattr(archives.zipfile.ZipFile, "open", trap)
    with pytest.raises(Refused):
        preview(file, limits=SMALL)


@pytest.mark.slow
@pytest.mark.usefixtures("_read_here")
def test_bombs_take_little_memory(tmp_path: Path) -> None:
    for name in ("a bomb", "a bomb of gzip", "a bomb of tar.gz", "a name of two gigabytes", "a list that lies"):
        file = UNSAFE[name][0](tmp_path)
        tracemalloc.start()
        with pytest.raises(Refused):
            import_file(tmp_path / "d.sqlite", file, limits=SMALL)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000, name
        tracemalloc.stop()


@pytest.mark.slow
def test_a_member_longer_than_its_header_says_is_stopped(tmp_path: Path) -> None:
    """The list says 1 MB, the stream holds 40 MB: what is counted counts."""
    file = _zip_bomb(tmp_path)
    data = bytearray(file.read_bytes())
    place = data.find(b"PK\1\2") + 24
    data[place : place + 4] = struct.pack("<I", 1_000_000)
    file.write_bytes(data)
    with pytest.raises(AnonmlError):
        import_file(tmp_path / "d.sqlite", file, limits=SMALL)


# --- broken ones ---


@pytest.mark.slow
@pytest.mark.parametrize("make", [
    lambda folder: zipped(folder / "g.zip", GOOD),
    lambda folder: tarred(folder / "g.tar", GOOD),
    lambda folder: tarred(folder / "g.tar.gz", GOOD),
    lambda folder: zipped(folder / "t.zip", {takeout_path("de", "json"): takeout_json()}),
])
def test_an_archive_cut_off_anywhere_or_with_any_byte_changed(tmp_path: Path, make: Make) -> None:
    data = make(tmp_path).read_bytes()
    file = tmp_path / "cut"
    for place in range(0, len(data), max(1, len(data) // 150)):
        for changed in (data[:place], data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]):
            file.write_bytes(changed)
            try:
                preview(file)
            except AnonmlError as error:
                assert "\n" not in str(error)


# --- good ones ---


@pytest.mark.parametrize("make", [
    lambda folder: zipped(folder / "g.zip", GOOD | {"mine/": ""}),
    lambda folder: zipped(folder / "g.zip", GOOD, zipfile.ZIP_STORED),
    lambda folder: zipped(folder / "g.zip", GOOD, zipfile.ZIP_BZIP2),
    lambda folder: tarred(folder / "g.tar", GOOD),
    lambda folder: tarred(folder / "g.tgz", GOOD, tarfile.GNU_FORMAT),
    lambda folder: tarred(folder / "g.tar", GOOD, tarfile.USTAR_FORMAT),
])
def test_an_ordinary_archive_becomes_a_table_a_file(tmp_path: Path, make: Make) -> None:
    summary = import_file(tmp_path / "d.sqlite", make(tmp_path))
    assert (summary.table, summary.rows, summary.skipped) == ("a, b", 2, 0)
    assert rows(tmp_path / "d.sqlite", "select a.b, x from a, b") == [(2, 1)]
    assert (
        import_file(
            tmp_path / "e.sqlite", tmp_path / next(p.name for p in tmp_path.iterdir() if p.name.startswith("g.")), "b"
        ).table
        == "b"
    )


def test_files_of_other_kinds_are_told(tmp_path: Path) -> None:
    members = GOOD | {"photo.jpg": b"\xff\xd8", "README.txt": "hello", "broken.json": "{"}
    seen = preview(zipped(tmp_path / "g.zip", members))
    assert seen.problems[0] == "3 other files in it are not read"
    assert {one.name for one in seen.tables} == {"a", "b"}


def test_long_names_and_big_sizes_of_tar(tmp_path: Path) -> None:
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        name = "ü/" * 80 + "person.csv"
        file = tarred(tmp_path / f"{form}.tar", {name: "a\n1\n"}, form)
        assert import_file(tmp_path / "d.sqlite", file).table == "person"


@pytest.mark.usefixtures("_read_here")
def test_nothing_is_unpacked_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is opened for writing anywhere while an archive is previewed."""
    file = zipped(tmp_path / "g.zip", GOOD | {takeout_path("de", "json"): takeout_json()})
    writes: list[str] = []
    opened, lowest = io.open, os.open

    def watching(name: object, mode: str = "r", *rest: object, **more: object) -> object:
        if set(mode) & set("wax+"):
            writes.append(str(name))
        return opened(name, mode, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(builtins, "open", watching)
    monkeypatch.setattr(io, "open", watching)
    monkeypatch.setattr(
        os,
        "open",
        lambda name, flags, *rest, **more: (
            writes.append(str(name)) if flags & (os.O_WRONLY | os.O_RDWR) else lowest(name, flags, *rest, **more)
        ),
    )
    preview(file)
    assert writes == []


def test_packed_ways_that_are_not_read_say_what_to_do(tmp_path: Path) -> None:
    import bz2
    import lzma

    for name, data in (
        ("a.csv.bz2", bz2.compress(b"a\n1\n")),
        ("a.csv.xz", lzma.compress(b"a\n1\n")),
        ("a.7z", b"7z\xbc\xaf\x27\x1c"),
        ("a.gz", gzip.compress(gzip.compress(b"a\n1\n"))),
        ("b.gz", gzip.compress(zipped(tmp_path / "z.zip", GOOD).read_bytes())),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(Refused, match="unpack"):
            preview(tmp_path / name)
    with pytest.raises(Malformed):
        preview(tmp_path / "absent.zip")
