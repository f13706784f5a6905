"""`anonml aggregator status` names each study by its title."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aggregator.cli.main import app as commands
from aggregator.cli.study import app as studies


@pytest.mark.slow
def test_the_table_shows_the_title(tmp_path: Path) -> None:
    home, run = str(tmp_path / "home"), CliRunner()
    for words in (
        ["init", str(tmp_path / "study.toml")],
        ["publish", str(tmp_path / "study.toml"), "--loopback", "--home", home],
    ):
        assert run.invoke(studies, words, catch_exceptions=False).exit_code == 0
    said = run.invoke(commands, ["status", "--home", home], env={"COLUMNS": "120"}, catch_exceptions=False).stdout
    (row,) = [line for line in said.splitlines() if "enrolling" in line]
    cells = [cell.strip(" \u2066\u2067\u2068\u2069") for cell in row.split("│")[1:-1]]
    assert cells[1:6] == ["Course dropout", "enrolling", "fewer than 50", "100 (not reached)", "fewer than 50"]
    for width in ("120", "80", "60"):
        narrow = run.invoke(commands, ["status", "--home", home], env={"COLUMNS": width}, catch_exceptions=False).stdout
        until = "".join(
            cell.strip() for line in narrow.splitlines() if line.startswith("│") for cell in [line.split("│")[-2]]
        )
        assert re.fullmatch(r"\d{4}-\d\d-\d\d ?\d\d:\d\d:\d\d ?UTC", until), f"no part of the date is cut at {width}"
