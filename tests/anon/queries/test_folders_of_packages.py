"""A child finds its packages in a folder of any name: an emoji, quotation marks, bytes that are no text."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from anon.queries.process import Server

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    "name", [b"Neu f\xc3\xbcr \xf0\x9f\x98\x80", b"'a' \"b\" \\n {c}", b"\xff"], ids=["emoji", "marks", "no text"]
)
def test_a_child_finds_its_packages_in_a_folder_of_any_name(name: bytes, tmp_path: Path) -> None:
    place = tmp_path / os.fsdecode(name)
    place.mkdir()
    (place / "probe.py").write_text("def main(): print('found')")
    command = Server("probe", "--probe", lambda: [str(place)]).command()
    done = subprocess.run(command, env={}, cwd="/", capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "found\n", done.stderr
