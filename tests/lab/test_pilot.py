"""Pilots: made-up people whose label can match, and a caution where nothing can be learned from a file."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from attrs import evolve
from typer.testing import CliRunner

from aggregator.lab.simulation.people import people_from_rows
from aggregator.lab.synthetic import computed, people
from aggregator.report.rehearsal import planted
from anon.errors import Malformed
from anonml import application, wiring
from tests.support.protocols import load_proposal

EXAMPLE = Path(__file__).parents[2] / "aggregator" / "study" / "study.toml"
COMPUTED = "SELECT CASE WHEN left_course = 1 THEN 'yes' ELSE 'no' END FROM person"


def test_made_up_people_have_both_labels_or_are_refused() -> None:
    proposal = load_proposal(EXAMPLE)
    header, body = people(proposal, 60, Random(3))
    assert people_from_rows(proposal, (dict(zip(header, row, strict=True)) for row in body)).alike == ""
    with pytest.raises(Malformed, match=r"label.query: expected SELECT COLUMN FROM TABLE"):
        people(evolve(proposal, label=evolve(proposal.label, query=COMPUTED)), 60, Random(3))


def test_features_that_are_computed_are_named() -> None:
    proposal = load_proposal(EXAMPLE)
    hours, forum = proposal.features
    changed = evolve(proposal, features=(evolve(hours, query="SELECT hours * 2 FROM person"), forum))
    assert (computed(proposal), computed(changed)) == ((), ("hours",))


def test_the_one_feature_that_made_up_labels_go_with_is_named() -> None:
    """Shares of some 2,000 people each, seeded: six standard errors are below .06."""
    proposal = load_proposal(EXAMPLE)
    header, rows = people(proposal, 4_000, Random(5))
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    hours, label = columns[planted(proposal)], columns["left_course"]
    low, high = proposal.features[0].range
    for upper, share in ((True, 0.75), (False, 0.25)):
        among = [said in proposal.label.positive for hour, said in zip(hours, label, strict=True)
                 if (float(hour) > (low + high) / 2) == upper]
        assert abs(sum(among) / len(among) - share) < 0.06
    first, second = proposal.features
    hidden = evolve(proposal, features=(evolve(first, query="SELECT hours * 2 FROM person"), second))
    assert planted(hidden) == "forum"


@pytest.mark.slow
@pytest.mark.parametrize(("labels", "said"), [
    ("0 0 0 0", "all 4 people count as negative"), ("1 1 1 1", "all 4 people count as positive"),
    ("perhaps 7 8 9", "all 4 people count as negative"), ("0 1 0 1", ""),
])
def test_simulate_cautions_where_everybody_has_one_label(tmp_path: Path, labels: str, said: str) -> None:
    data = tmp_path / "people.csv"
    rows = [f"{10 * number},{('never', 'often')[number % 2]},{label}" for number, label in enumerate(labels.split())]
    data.write_text("\n".join(["hours,forum,left_course", *rows]) + "\n", "utf-8")
    words = [str(EXAMPLE), "--data", str(data), "--test", str(data), "--trials", "1", "--seed", "1"]
    done = CliRunner().invoke(application("simulate"), words, obj=wiring(), catch_exceptions=False)
    assert (said or "caution") in done.stderr if said else "caution" not in done.stderr
