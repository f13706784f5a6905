"""`study plan` of a study whose members write, or are parties: windows, bytes and work of rounds, no simulation."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import aggregator.lab.cli_plan
from aggregator.lab.planning import letters
from aggregator.lab.planning.letters import COMPUTER, PHONE, letters_plan, with_rounds
from aggregator.lab.planning.outlook import outlook_of
from aggregator.lab.simulation.parties import weight_noise
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.simulate import simulate
from aggregator.rules.lengths import TooLong
from anon.errors import Refused
from anon.protocols.board import page_of
from anon.protocols.posts import layout_of_packets
from anon.protocols.sizes import longest_body, with_members
from anon.protocols.vectors.logistic import steps_for
from anon.study.proposal import Proposal
from anonml import application
from tests.support.groups_study import groups_study
from tests.support.letters_study import PROTOCOLS, STUDY, proposed, resolved
from tests.support.masks_study import AVERAGING, masks_study
from tests.support.oblivious_study import oblivious_study
from tests.support.protocols import load_proposal, parse_proposal
from tests.support.sums import many, sum_study, tellers

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
    assert with_rounds(load_proposal(CENSUS / "study.toml"), 1.0) is None and with_rounds(proposed(), 1.0) is not None


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
    assert [planned["name"] for planned in told["rounds"]][-1] == "after the last"


def of_parties(design: str = "averaging", most: int = 20, unit: str = "record") -> Proposal:
    keys = many(most, unit) + ("least_records = 5\n" if design.endswith("averaging") else "")
    text = f'kind = "{design}"\nepsilon = 4.0' + ("\nstrength = 0.1" if design.endswith("averaging") else "")
    return parse_proposal(sum_study(text, tellers(entries=False), keys=keys))


@pytest.mark.slow
def test_parties_are_planned_with_their_own_work() -> None:
    """One window, one packet; a model fitted to ten times the records takes ten times as long."""
    few, plenty = (with_rounds(of_parties(most=most), 1.0) for most in (20, 200))
    assert few is not None and plenty is not None
    (planned, last), (longer, _) = (letters_plan(study, 10) for study in (few, plenty))
    assert (planned.name, planned.sends) == ("collection", layout_of_packets(few).sealed_size)
    assert last.fetches == longest_body(with_members(few, 10), "sums", 0)
    own = 2 * steps_for(Fraction(1, 10)) * 20 * 3 * letters._MULTIPLIED
    assert longer.computer - planned.computer == pytest.approx(9 * own) == longer.phone - planned.phone
    assert planned.computer > COMPUTER.made + own, "and its proof"
    rounds = with_rounds(of_parties("gradient"), 1.0)
    assert rounds is not None and len(letters_plan(rounds, 10)) == len(rounds.surveys) + 1 > 2


@pytest.mark.slow
def test_the_noise_in_a_mean_weight_follows_from_parties_and_epsilon() -> None:
    one, half = (with_rounds(of_parties(), epsilon) for epsilon in (1.0, 0.5))
    masked = with_rounds(parse_proposal(masks_study(AVERAGING, many())), 1.0)
    assert one is not None and half is not None and masked is not None
    first, more = (weight_noise(one, people) for people in (10, 40))
    assert first and more and first == pytest.approx(4 * more) and 1.9 < weight_noise(half, 10) / first < 2.1
    assert weight_noise(masked, 10) == pytest.approx(2 * weight_noise(masked, 40)), "each adds its own"
    moments = with_rounds(of_parties("moments"), 1.0)
    assert moments is not None and weight_noise(moments, 10) is None


@pytest.mark.parametrize("text", [
    sum_study('kind = "averaging"\nepsilon = 1.0\nstrength = 0.1', tellers(entries=False), keys=many()),
    masks_study(AVERAGING, many()), oblivious_study(), groups_study(group=4, minimum=5),
])
def test_the_command_plans_parties(tmp_path: Path, text: str) -> None:
    (file := tmp_path / "study.toml").write_text(text, "utf-8")
    arguments = ["plan", str(file), "--epsilon", "1", "--cohort", "5"]
    shown = CliRunner().invoke(application("study"), arguments, env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.output
    assert "`anonml simulate STUDY.toml --data FILE.csv` forecasts it" in " ".join(shown.output.split())
    assert ("come on top" in shown.output) == ("oblivious" in text)
    told = json.loads(CliRunner().invoke(application("study"), [*arguments, "--json"]).stdout)
    study = with_rounds(parse_proposal(text), 1.0)
    assert study is not None and told["weight_noise"] == weight_noise(study, 5) and told["rounds"][0]["sends"] > 0
    assert f"deviation of {told['weight_noise']:.3g}" in shown.output
