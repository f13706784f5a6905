"""The pages for researchers: the interface from docstrings, the figures on one page, the citation, and the
notebooks."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
import zipfile
from argparse import ArgumentTypeError
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from aggregator.audit import Verdict, audit
from aggregator.lab.cli_simulate import app
from anon.errors import AnonmlError
from benchmarks.api_page import PAGE, page
from benchmarks.data import data_folder
from benchmarks.notebook_study import TARGET
from benchmarks.parties.groups import TASKS
from benchmarks.sums import Census
from tests.docs.blocks import all_blocks
from tests.docs.repository import ROOT

pytestmark = pytest.mark.source

PAGES = ROOT / "docs" / "researcher"
NOTEBOOKS = sorted((PAGES / "notebooks").glob("*.ipynb"))
FIGURE = re.compile(r"0\.\d+ ± 0\.\d+(?: \(\d+ %\))?")


def test_the_interface_is_the_docstrings() -> None:
    """After a change of a public docstring: `python -m benchmarks.api_page`."""
    assert PAGE.read_text("utf-8") == page()


@pytest.mark.parametrize(
    "kind", ["**Parameters**", "* `epsilon` (float, required):", "* `model_`: ", "#### Study.run", "`ok`"]
)
def test_the_interface_shows_sections_methods_and_properties(kind: str) -> None:
    assert kind in page()


def test_each_figure_of_accuracy_is_in_the_results() -> None:
    """A row's data set, number of people and epsilons stand in one section of the results."""
    results = (ROOT / "docs" / "results.md").read_text("utf-8").replace("*", "")
    shown = [line for line in (PAGES / "accuracy.md").read_text("utf-8").splitlines() if FIGURE.search(line)]
    assert len(shown) == 32
    for line in shown:
        figures = FIGURE.findall(line)
        row = [one for one in results.splitlines() if all(figure in FIGURE.findall(one) for figure in figures)]
        assert row, line


@pytest.mark.slow
@pytest.mark.parametrize("summed", [False, True])
def test_a_study_that_starts_from_what_is_expected_is_simulated_as_the_page_says(summed: bool, tmp_path: Path) -> None:
    """Of people who all leave if they were hardly there; the packets of each, and sums of tellers."""
    blocks = [block for block in all_blocks() if block.page == "docs/researcher/accuracy.md"]
    file, tellers = (block.text for block in blocks if block.language == "toml")
    if summed:
        kind = file.replace('kind = "one-packet"', 'kind = "rule"').replace('asks = "rule"\n', "")
        file = kind.replace('binning = "1d"', 'binning = "0s"') + tellers
    rows = [f"{hours},{forum},{int(hours < 5)}" for hours, forum in product(range(20), ("never", "often"))]
    (tmp_path / "rule.toml").write_text(file)
    (tmp_path / "last-year.csv").write_text("\n".join(["hours,forum,left_course", *rows * 10]))
    (command,) = (block.text.split() for block in blocks if block.language == "sh")
    named = [str(tmp_path / word) if word.endswith((".toml", ".csv")) else word for word in command[2:]]
    done = CliRunner().invoke(app, [*named, "--trials", "3", "--seed", "1"], env={"COLUMNS": "160"})
    assert done.exit_code == 0, done.output
    assert "what you expect, asking nobody: AUC" in done.stdout and "shown to beat a guess in" in done.stdout
    assert ("a trusted party" in done.stdout) is not summed


def test_the_citation_names_the_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    cited = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {project['version']}\n" in cited and f"\nlicense: {project['license']['text']}\n" in cited
    assert "doi" not in cited.lower()


def test_the_notebooks_are_named_on_their_page() -> None:
    told = (PAGES / "notebooks.md").read_text("utf-8")
    assert len(NOTEBOOKS) == 3 and all(f"(notebooks/{notebook.name})" in told for notebook in NOTEBOOKS)


def test_the_study_beside_them_was_made_by_this_program(tmp_path: Path) -> None:
    """After a change of a report's words or of a document's form: `python -m benchmarks.notebook_study`."""
    with zipfile.ZipFile(TARGET) as archive:
        archive.extractall(tmp_path)
    checked = audit(tmp_path)
    assert checked.verdict is Verdict.ALL_CHECKED, checked.lines()


def test_each_file_that_a_benchmark_reads_is_named() -> None:
    told, sources = (PAGES / "data.md").read_text("utf-8"), [*(ROOT / "benchmarks").rglob("*.py")]
    read = {name for file in sources for name in re.findall(r"\b\w+\.(?:csv|svm)\.gz", file.read_text("utf-8"))}
    assert len(read) > 8 and [name for name in sorted(read) if f"`{name}`" not in told] == []


def test_a_missing_file_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    with pytest.raises(ArgumentTypeError, match=r"data\.md"):
        data_folder(str(tmp_path / "nowhere"))
    for read in (TASKS["Spambase"], Census.of):
        with pytest.raises((FileNotFoundError, AnonmlError)) as raised:
            read(data_folder(str(tmp_path)))
        sys.excepthook(raised.type, raised.value, raised.tb)
        said = capsys.readouterr().err
        assert ".csv.gz" in said and "docs/researcher/data.md" in said and said.count("\n") == 1


def _run(notebook: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """All cells of code, in order, in a copy of the folder; the names they leave."""
    shutil.copytree(notebook.parent, folder, dirs_exist_ok=True)
    monkeypatch.chdir(folder)
    content = json.loads(notebook.read_text("utf-8"))
    assert content["nbformat"] == 4 and not any(cell.get("outputs") for cell in content["cells"])
    known: dict[str, Any] = {}
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{notebook.name} {cell['id']}", "exec"), known)
    return known


@pytest.mark.slow
def test_the_estimators_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words beside the figures hold: much is shown at epsilon 4, little with a hundred people."""
    known = _run(NOTEBOOKS[0], tmp_path, monkeypatch)
    assert known["found"][4.0] == 1 and known["sizes"][100] < 0.2
    assert 0.6 < known["auc"] < known["ceiling"]


@pytest.mark.slow
def test_the_notebook_of_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = _run(NOTEBOOKS[1], tmp_path, monkeypatch)
    expected = known["expected"]
    assert expected[1.0, 60].auc_mean < 0.6 < expected[4.0, 4000].auc_mean < expected[4.0, 4000].auc_ceiling_raw
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.slow
def test_the_notebook_of_an_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The study that lies beside it is whole, and the byte that the notebook changes is noticed."""
    known = _run(NOTEBOOKS[2], tmp_path, monkeypatch)
    assert known["result"].ok and known["result"].packets == 80
    assert any("transcript" in finding.document for finding in known["caught"].findings)
    assert known["model"].shown is True
