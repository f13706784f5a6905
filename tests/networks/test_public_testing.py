"""An author's test of a protocol, through `anonml.testing` alone: nothing of these tests' own support but the toys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from anon.errors import Malformed
from anon.protocols.models.rows import PublishedRows
from anonml import testing
from tests.networks.test_halving import STUDY
from tests.networks.test_rows_protocol import GIVEN
from tests.networks.test_rows_protocol import STUDY as DRAWN
from tests.networks.test_second_protocol import STUDY as COUNTED
from tests.support import drawn_rows, halving, noisy_count

pytestmark = pytest.mark.slow

PEOPLE = [{"person": [{"age": 30 + 3 * number, "cups": 2, "tired": 1}]} for number in range(8)]


def test_a_whole_study_repeats_itself_with_its_seed_alone(tmp_path: Path) -> None:
    protocols = testing.with_protocol(halving.PROTOCOL)
    first, again, other = (
        testing.run(STUDY, PEOPLE, tmp_path / name, protocols, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first.audit.ok and first.audit.packets == 24 and set(first.states) == {"finished"} and len(first.states) == 8
    assert isinstance(rows := first.results["rows", 0], PublishedRows) and rows.columns == ("feature", "above", "up to")
    assert first.documents == again.documents and rows == again.results["rows", 0]
    assert not {first.documents[place] for place in first.documents} & set(other.documents.values())


async def test_records_decide_the_result_and_a_model_predicts(tmp_path: Path) -> None:
    """At the most that a study may cost, a yes is turned over once in some 20,000: eight say what they are."""
    text, protocols = COUNTED.replace("epsilon = 2.0", "epsilon = 20.0"), testing.with_protocol(noisy_count.PROTOCOL)
    people = [{"person": [{"age": 30, "cups": 0, "tired": int(number < 6)}]} for number in range(8)]
    outcome = await testing.run_study(text, people, tmp_path, protocols, seed=1)
    assert outcome.audit.ok and abs(outcome.results["model", 0].share - 0.75) < 0.01, outcome.results


def test_public_documents_are_given_by_name(tmp_path: Path) -> None:
    outcome = testing.run(DRAWN, PEOPLE, tmp_path, testing.with_protocol(drawn_rows.PROTOCOL), given=GIVEN)
    assert outcome.audit.ok and set(outcome.results) == {("model", 0), ("rows", 0)}
    assert outcome.documents["given", 0] == GIVEN["classes"]


def test_a_study_that_cannot_be_is_refused_as_for_everybody(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match="design"):
        testing.run(STUDY, PEOPLE, tmp_path / "unknown", testing.PROTOCOLS)
    for number, tables in enumerate(
        (
            {"persons": [{"age": 1}]},
            {"person": [{"age": 1, "tired": 0}]},
            {"person": [{"age": 1, "cups": 1, "tired": 0, "x": 0}]},
        )
    ):
        with pytest.raises(Malformed, match="people: person"):
            testing.run(STUDY, [tables], tmp_path / str(number), testing.with_protocol(halving.PROTOCOL))


def test_the_example_of_its_head_is_the_one_of_the_guide() -> None:
    """And what it promises is what comes of it, with that seed."""
    root = Path(__file__).parents[2]
    guide = (root / "docs/adding-a-protocol.md").read_text("utf-8")
    shown = re.findall(r"^    (.+)\n", testing.__doc__ or "", re.MULTILINE)
    assert len(shown) == 4 and all(f"\n{line}\n" in guide for line in shown)


def test_the_example_holds(tmp_path: Path) -> None:
    names = {"testing": testing, "MY_PROTOCOL": halving.PROTOCOL, "STUDY": STUDY, "tmp_path": tmp_path}
    exec("\n".join(re.findall(r"^    (.+)\n", testing.__doc__ or "", re.MULTILINE)), names)
