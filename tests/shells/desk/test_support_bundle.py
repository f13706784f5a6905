"""The support bundle: useful, shown first, and without anything about anybody."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anon.errors import Refused
from anon.kit.terminal.support import app, contents, write
from tests.support.world import in_memory, study_text

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]


async def _homes(folder: Path) -> tuple[Path, Path, set[str]]:
    """An aggregator's home with a finished study, a peer's home with data; and words that must stay here."""
    async with in_memory(folder / "staff-of-alice", study_text()) as running:
        peers = await running.collected(4)
        secret = {
            running.live.study.hex(),
            running.app.home.public_key.hex(),
            "Income",
            "alice",
            *(bytes(one.key.verify_key).hex() for one in peers),
        }
    home = folder / "alice"
    environment = os.environ | {"HOME": str(folder), "ANONML_PEER_HOME": str(home)}
    data = folder / "diary.csv"
    data.write_text("mood,illness\nsad,flu\n")
    command = [sys.executable, "-m", "anonml", "peer", "import", str(data), "--table", "diary", "--home", str(home)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=environment)
    return folder / "staff-of-alice", home, secret | {"diary", "mood", "illness", "flu", str(folder)}


async def test_it_says_what_helps_and_nothing_of_anybody(tmp_path: Path) -> None:
    staff, peer, secrets = await _homes(tmp_path)
    bundle = contents((peer, staff, tmp_path / "nowhere"))
    text = "".join(bundle.values())
    assert not [word for word in secrets | {socket.gethostname(), str(Path.home())} if word in text]
    user = getpass.getuser()
    assert not re.search(rf"\b{re.escape(user)}\b", text)
    assert not re.search(r"[0-9a-f]{16}", text) and "/" not in text.replace("n/a", "")
    homes = json.loads(bundle["homes.json"])
    assert [one["role"] for one in homes] == ["peer", "aggregator"]
    kept = homes[1]["databases"]["aggregator.sqlite"]
    assert kept["whole"] and kept["rows"]["packets"] == "fewer than 50" and kept["phases"] == {"collecting": 1}
    assert homes[0]["files"].count("data.sqlite") == 1 and "data.sqlite" not in homes[0]["databases"]
    versions = json.loads(bundle["versions.json"])
    assert versions["anonml"] != "not installed" and re.match(r"3\.", versions["python"]) and "aiohttp" in versions
    assert all(set(one) == {"name", "ok", "action"} for one in json.loads(bundle["doctor.json"]))


def test_a_damaged_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "aggregator.sqlite").write_bytes(b"not a database at all" * 500)
    (found,) = json.loads(contents((tmp_path,))["homes.json"])
    assert found["databases"]["aggregator.sqlite"] == {"fault": "DatabaseError"}


def test_counts_are_in_steps(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "aggregator.sqlite") as connection:
        connection.execute("CREATE TABLE packets (tag)")
        connection.executemany("INSERT INTO packets VALUES (?)", [(number,) for number in range(149)])
    (found,) = json.loads(contents((tmp_path,))["homes.json"])
    assert found["databases"]["aggregator.sqlite"]["rows"] == {"packets": "100 or more"}


def test_it_is_shown_before_it_is_written(tmp_path: Path) -> None:
    target = tmp_path / "bundle.zip"
    asked = [str(target), "--home", str(tmp_path)]
    shown = CliRunner().invoke(app, [*asked, "--show"])
    assert "versions.json" in shown.stdout and "doctor.json" in shown.stdout and not target.exists()
    refused = CliRunner().invoke(app, asked, input="n\n")
    assert isinstance(refused.exception, Refused) and not target.exists()
    assert CliRunner().invoke(app, [*asked, "--yes"]).exit_code == 0
    assert target.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(target) as packed:
        assert set(packed.namelist()) == {"versions.json", "doctor.json", "settings.json", "homes.json"}
    with pytest.raises(Refused):
        write({}, target)
