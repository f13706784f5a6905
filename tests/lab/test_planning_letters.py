"""`study plan` of a study whose members write: windows, bytes and work of each round, and no simulation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import aggregator.lab.cli_plan
from aggregator.lab.planning.letters import COMPUTER, PHONE, letters_plan, with_letters
from aggregator.lab.planning.outlook import outlook_of
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.simulate import simulate
from aggregator.rules.lengths import TooLong
from anon.errors import Refused
from anon.protocols.board import page_of
from anon.protocols.posts import layout_of_packets
from anon.protocols.sizes import longest_body
from anonml import application
from tests.support.letters_study import PROTOCOLS, STUDY, proposed, resolved
from tests.support.protocols import load_proposal

CENSUS = Path(__file__).parents[2] / "examples" / "census"


def test_each_round_says_what_it_takes() -> None:
    """Six packets of one size; each page is fetched once, as long as with so many members."""
    study = resolved(50)
    *planned, last = letters_plan(study, 50)
    size = layout_of_packets(study).sealed_size
    assert [planned_round.sends for planned_round in planned] == [2 * size, size, size, size, size]
    pages = [longest_body(study, *page_of(number)) for number in range(5)]
    seat = longest_body(study, "seat", 3)
    assert [planned_round.fetches for planned_round in planned] == [0, *pages[:3], pages[3] + seat]
    assert (last.fetches, last.sends) == (pages[4], 0)
    keys = study.survey(0).window.opens - study.timetable.enrol_closes
    assert (planned[0].opens, planned[0].lasts, planned[1].opens) == (keys, 3600, keys + 3600 + 1200)
    shares = COMPUTER.made + 50 * COMPUTER.sealed + 100 * COMPUTER.checked
    assert planned[1].computer == pytest.approx(shares) and planned[1].phone > 10 * planned[1].computer
    assert last.phone == pytest.approx(300 * PHONE.checked + 50 * PHONE.opened)


def test_fewer_members_fetch_less() -> None:
    half, whole = (letters_plan(resolved(50), people)[2].fetches for people in (25, 50))
    assert 0.45 < half / whole < 0.55


def test_a_page_that_no_member_reads_is_refused() -> None:
    with pytest.raises(TooLong, match="no reader takes"):
        letters_plan(resolved(1000), 1000)


def test_other_studies_have_no_plan_of_letters() -> None:
    assert with_letters(load_proposal(CENSUS / "study.toml")) is None and with_letters(proposed()) is not None


def test_the_lab_says_that_it_does_not_simulate_it() -> None:
    people = People({}, np.zeros(4, dtype=bool))
    with pytest.raises(Refused, match="no lab simulates that"):
        simulate(proposed(), people, trials=1, seed=1, test=people)
    assert outlook_of(proposed(), resolved()) is None


def test_the_command_shows_the_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregator.lab.cli_plan, "PROTOCOLS", PROTOCOLS)
    (file := tmp_path / "study.toml").write_text(STUDY, "utf-8")
    arguments = ["plan", str(file), "--epsilon", "1"]
    shown = CliRunner().invoke(application("study"), arguments, env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.output
    assert "sharing masks" in shown.output and "awake in each of its 5 windows" in shown.output
    told = json.loads(CliRunner().invoke(application("study"), [*arguments, "--cohort", "8", "--json"]).stdout)
    assert [planned["name"] for planned in told["letters"]][-1] == "after the last"
