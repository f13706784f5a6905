"""No run that fell short ends in a sentence of success: each failure is planted in the figures of a good one."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from examples import demo
from examples.checks import CONTROL, faults
from examples.closing import closing

STUDY: dict[str, Any] = {
    "title": "Who leaves?",
    "peers": 500, "joined": 500, "enrolled": 500, "packets": 1, "sent": 500, "attempts": 501, "accepted": 500,
    "included": 500, "refused": {}, "missed": 0, "lost": 0, "epsilon_record": 4.0, "epsilon_eq6": 1.0,
    "most_spent": 4.0, "audited": True, "shown": True, "local": True, "auc": 0.81, "auc_ceiling_binned": 0.86,
    "auc_ceiling_raw": 0.9,
}  # fmt: skip
GOOD = STUDY | {CONTROL: STUDY | {"shown": False, "auc": 0.5}}
TOR = STUDY | {"packet_connections": 501, "packet_circuits": 501, "control_requests": 20, "control_circuits": 1}
PARTIES = {name: figure for name, figure in STUDY.items() if name != "shown" and "auc" not in name} | {
    "records": 60, "unit": "record", "price": "rho 0.1", "promise": "it holds", "noise_of": "the tellers",
    "local": False, "distance": 1.1, "distance_band": [0.12, 2.35],
    "models": {
        "published": (0.18, 0.88), "without noise": (0.17, 0.89), "one party alone": (0.19, 0.87),
        "majority": (0.24, 0.5),
    },
}  # fmt: skip
TREES = PARTIES | {
    "trees": 500, "rows": 29_000, "noise_of": "the members", "distance_band": [0.79, 1.21],
    "models": {name: scores for name, scores in PARTIES["models"].items() if name != "without noise"},
}  # fmt: skip
SUCCESS = (
    "rows that stand for nobody",
    "made one model", "handed over a record", "trained one model", "nobody handed over", "AUC", "none was lost",
    "nothing was found", "of their own",
)  # fmt: skip


def planted(where: str, **changes: Any) -> Callable[[dict[str, Any]], None]:
    def plant(figures: dict[str, Any]) -> None:
        (figures[CONTROL] if where == CONTROL else figures).update(changes)

    return plant


def without(where: str, name: str) -> Callable[[dict[str, Any]], None]:
    def plant(figures: dict[str, Any]) -> None:
        del (figures[CONTROL] if where == CONTROL else figures)[name]

    return plant


EMPTY = {"enrolled": 0, "joined": 0, "sent": 0, "accepted": 0, "included": 0, "missed": 500, "most_spent": 0.0}
FAILURES: dict[str, Callable[[dict[str, Any]], None]] = {
    "nobody took part": planted("", peers=0, **(EMPTY | {"missed": 0})),
    "one did not enrol": planted("", enrolled=499),
    "one does not know that it is a member": planted("", joined=499),
    "a stranger is in the roster": planted("", enrolled=501),
    "packets missed their window": planted("", sent=14, accepted=14, included=14, missed=486),
    "a packet was sent and is in no transcript": planted("", accepted=499, lost=1),
    "a packet nobody sent is in a transcript": planted("", accepted=501, lost=-1),
    "a sender did not find its packet": planted("", included=499),
    "a packet was refused": planted("", refused={"not-a-member": 1}),
    "a ledger spent too much": planted("", most_spent=8.0),
    "no ledger spent anything": planted("", most_spent=0.0),
    "the audit found something": planted("", audited=False),
    "no model": without("", "auc"),
    "a score that is no number": planted("", auc=float("nan")),
    "a ceiling above one": planted("", auc_ceiling_raw=1.2),
    "a verdict that is none": planted("", shown=None),
    "it ended without a report": planted("", unpublished="the teller Library does not answer"),
    "the control ended without a report": planted(CONTROL, unpublished="too few packets"),
    "the control is empty": planted(CONTROL, **EMPTY),
    "the control lost packets": planted(CONTROL, accepted=497, lost=3),
    "the control's packets missed their windows": planted(CONTROL, sent=100, missed=400, accepted=100, included=100),
    "the control has fewer people": planted(
        CONTROL, peers=400, enrolled=400, joined=400, sent=400, accepted=400, included=400
    ),
    "the control has no model": without(CONTROL, "shown"),
    "the control was not audited": without(CONTROL, "audited"),
}
PARTY_FAILURES = {
    "a party is lost": planted("", enrolled=499),
    "a party's packet is lost": planted("", accepted=499, lost=1),
    "the sum has no noise": planted("", distance=0.0),
    "the sum is not the parties'": planted("", distance=2.4),
    "a distance that is no number": planted("", distance=float("nan")),
    "no band": without("", "distance_band"),
    "no models": planted("", models={}),
    "an error that is no number": planted("", models=PARTIES["models"] | {"published": (float("nan"), 0.8)}),
    "a sum that says the opposite": planted("", models=PARTIES["models"] | {"without noise": (0.83, 0.11)}),
    "the audit found something": planted("", audited=False),
}
TREES_FAILURES = {
    "a tree is lost": planted("", trees=499),
    "no row was drawn": planted("", rows=0),
    "the trees have no noise": planted("", distance=0.0),
    "the trees are of other records": planted("", distance=1.3),
    "no models of rows": planted("", models={}),
    "a share that is no number": planted("", models=TREES["models"] | {"published": (float("nan"), 0.8)}),
}
TOR_FAILURES = {
    "two packets shared a circuit": planted("", packet_circuits=500),
    "a packet took no circuit": planted("", packet_connections=499, packet_circuits=499),
    "tor's log could not show sharing": planted("", control_circuits=20),
    "tor's control did not run": planted("", control_requests=0, control_circuits=0),
}


def said(figures: dict[str, Any]) -> str:
    console = Console(width=200, record=True, file=StringIO())
    console.print(closing(figures, Path("report.html"), "mooc"))
    return plain(console.export_text())


def plain(printed: str) -> str:
    """The words without the frame around them and the breaks of its lines."""
    return " ".join(printed.replace("│", " ").split())


def failed(good: dict[str, Any], plant: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    figures = deepcopy(good)
    plant(figures)
    return figures


CASES = [
    *((name, GOOD, plant) for name, plant in FAILURES.items()),
    *((name, TOR, plant) for name, plant in TOR_FAILURES.items()),
    *((name, PARTIES, plant) for name, plant in PARTY_FAILURES.items()),
    *((name, TREES, plant) for name, plant in TREES_FAILURES.items()),
]


@pytest.mark.parametrize("figures", [STUDY, GOOD, TOR], ids=["study", "with a control", "through Tor"])
def test_a_good_run_says_so(figures: dict[str, Any]) -> None:
    assert faults(figures) == []
    assert "500 people trained one model" in said(figures) and "none was lost" in said(figures)


def test_of_a_study_without_a_report_one_thing_is_told() -> None:
    assert faults({"unpublished": "too few packets"}) == ["the study ended without a report: too few packets"]


def test_a_study_whose_model_was_not_tried_has_the_other_checks() -> None:
    untried = {name: figure for name, figure in STUDY.items() if name != "shown"}
    assert faults(untried, scored=False) == [] and faults(untried)
    assert faults(untried | {"accepted": 499}, scored=False)


@pytest.mark.parametrize(("good", "plant"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_no_failure_ends_in_a_sentence_of_success(
    good: dict[str, Any], plant: Callable[[dict[str, Any]], None]
) -> None:
    text = said(failed(good, plant))
    assert not [sentence for sentence in SUCCESS if sentence in text]
    assert "This run failed" in text


@pytest.mark.parametrize(("good", "plant"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_no_failure_ends_with_exit_code_0(
    good: dict[str, Any], plant: Callable[[dict[str, Any]], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    figures = failed(good, plant)
    runs = iter([{name: value for name, value in figures.items() if name != CONTROL}, figures.get(CONTROL)])
    monkeypatch.setattr(demo, "_run", lambda *_: next(runs))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(demo.app, ["mooc"] if CONTROL in figures else ["census"])
    assert done.exit_code == 1, done.output
    assert not [sentence for sentence in SUCCESS if sentence in plain(done.output)]


def test_parties_are_told_of_each_model_and_of_the_noise() -> None:
    assert faults(PARTIES) == []
    text = said(PARTIES)
    assert "500 parties with 60 records each made one model" in text and "published 0.180 0.880" in text
    assert "error from 0.190 to 0.180, and its AUC from 0.870 to 0.880" in text
    assert "1.10 times as far" in text and "price for each record" in text and "the tellers added the noise" in text


def test_a_demo_of_trees_tells_of_rows_and_of_noise() -> None:
    assert faults(TREES) == []
    text = said(TREES)
    assert "500 parties with 60 records each made 29,000 rows that stand for nobody" in text
    assert "wrong by 1.10 times as much" in text and "lies between 0.79 and 1.21" in text and "public as it is" in text


def test_a_good_run_ends_with_exit_code_0(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs = iter([deepcopy(STUDY), deepcopy(GOOD[CONTROL])])
    monkeypatch.setattr(demo, "_run", lambda *_: next(runs))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(demo.app, ["mooc", "--json", "figures.json"])
    assert done.exit_code == 0 and "nothing was found" in plain(done.output), done.output
