"""A PostgreSQL server of the test session's own: in a folder of its own, on a socket alone, by a user without
rights."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from attrs import frozen

SETTINGS = {
    "listen_addresses": "",
    "wal_recycle": "off",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "autovacuum": "off",
}
"""Of a test's server. It loses nothing that a test would see, since only its clients are killed."""


def programs() -> Path | None:
    """The folder of the newest server's programs; None where there is no server."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if found:
        return found[-1].parent
    other = shutil.which("initdb")
    return Path(other).resolve().parent if other else None


_numbers = count()


@frozen
class Server:
    """One that runs. `folder` has its data and its socket."""

    programs: Path
    folder: Path

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    def url(self, name: str) -> str:
        """The address of a database."""
        return f"postgresql+asyncpg://tester@/{name}?host={self.folder}"

    def run(self, statement: str, name: str = "postgres") -> str:
        """The output of a statement, by the superuser."""
        command = [self.programs / "psql", "-h", self.folder, "-U", "tester", "-XAtq", "-c", statement, name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def made(self) -> str:
        """The address of a new, empty database."""
        name = f"study_{next(_numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def control(self, *words: str) -> None:
        """`pg_ctl` as the user that the server runs as."""
        command = [self.programs / "pg_ctl", "-D", self.data, "-l", self.folder / "log", "-w", "-s", *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **_as_nobody())


@contextmanager
def server(**settings: str) -> Iterator[Server]:
    """A server with `settings` beside `SETTINGS`, stopped and removed at the end."""
    found = programs()
    assert found is not None, "PostgreSQL's server is missing: tests/parts names its package"
    folder = Path(tempfile.mkdtemp(prefix="anonml-pg-"))
    made = Server(found, folder)
    try:
        if os.geteuid() == 0:
            os.chown(folder, _nobody().pw_uid, _nobody().pw_gid)
        initdb = [
            found / "initdb",
            "-D",
            made.data,
            "-U",
            "tester",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, **_as_nobody())
        lines = {**SETTINGS, "unix_socket_directories": str(folder), **settings}
        with (made.data / "postgresql.conf").open("a", encoding="utf-8") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in lines.items())
        made.control("start")
        try:
            yield made
        finally:
            made.control("stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder)


def _nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def _as_nobody() -> dict[str, object]:
    """A server refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    return {"user": _nobody().pw_uid, "group": _nobody().pw_gid, "extra_groups": []}
