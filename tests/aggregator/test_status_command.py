"""`anonml aggregator status` names each study by its title."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from attrs import evolve
from typer.testing import CliRunner

from aggregator.cli.main import app as commands
from aggregator.cli.study import app as studies
from aggregator.opening import demand_served
from aggregator.rules.counters import Count
from aggregator.store.home import open_home
from aggregator.study.status import StudyStatus
from anon.errors import Unreachable

NONE = Count.shown(0, final=False)


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


def test_a_check_fails_where_nothing_is_served_or_no_study_goes_on(tmp_path: Path) -> None:
    """A container's health rests on it: a home that can be read is not one that is served."""
    home = open_home(tmp_path, os.urandom)
    under_way = StudyStatus(b"s" * 32, "", "round", NONE, 0, False, None, NONE, {}, {}, 0, "its keys are missing")
    with pytest.raises(Unreachable, match="no process serves it"):
        demand_served(home, True, [])
    with home.place("127.0.0.1:8750"):
        demand_served(home, True, [])
        demand_served(home, True, [under_way, evolve(under_way, fault="")])
        for over in ("published", "erased"):
            demand_served(home, True, [evolve(under_way, phase=over)])
        with pytest.raises(Unreachable, match=r"no study goes on.*its keys are missing"):
            demand_served(home, True, [under_way, evolve(under_way, phase="published", fault="")])
        with pytest.raises(Unreachable, match="no process leads"):
            demand_served(home, False, [])


def test_the_command_fails_for_a_home_that_nobody_serves(tmp_path: Path) -> None:
    home, run = open_home(tmp_path, os.urandom), CliRunner()
    words = ["status", "--served", "--json", "--home", str(home.path)]
    assert isinstance(run.invoke(commands, words).exception, Unreachable)
    with home.place("127.0.0.1:8750"):
        assert run.invoke(commands, words).exit_code == 0
