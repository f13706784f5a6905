"""Pages keep what they tell of results that are not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.paper.claims import CLAIMS
from benchmarks.paper.findings import Findings
from benchmarks.paper.sections import merged, section_of, table_beside, tables_of
from benchmarks.parties import closing, ensembles_page, pfds_page
from benchmarks.parties import page as parties_page

DOCS = Path(__file__).resolve().parents[2] / "docs"
KEPT = "### Its own\n\nkept\n\n## Two\n\nsecond\n"
OLD = f"# Page\n\nOld words.\n\n## One\n\nfirst\n\n### Below\n\nlow\n\n{KEPT}\n## Gone\n\nx\n"
HEADER, OTHER = ["set", "epsilon", "error"], ["set", "lambda", "error"]


def test_a_heading_with_nothing_below_it_keeps_what_the_old_page_has() -> None:
    new = "# Page\n\nNew words.\n\n## One\n\nafresh\n\n### Below\n\n## Two\n\n## Three\n"
    kept = f"# Page\n\nNew words.\n\n## One\n\nafresh\n\n### Below\n\nlow\n\n{KEPT}"
    assert merged(OLD, new) == kept
    assert merged(OLD, new, "none") == f"{kept}\n## Three\n\nnone\n"
    assert merged("", new) == "# Page\n\nNew words.\n\n## One\n\nafresh\n"


def test_a_line_of_the_old_table_stays_where_no_new_one_has_its_names() -> None:
    old = table_beside("", HEADER, [["a", "1", ""], ["a", "2", ".2"], ["b", "1", ".3"]], 2)
    old += "\n\n" + table_beside("", OTHER, [["c", "1", ".4"]], 2)
    assert table_beside(old, HEADER, [["a", "1", ".9"]], 2) == table_beside(
        "", HEADER, [["a", "1", ".9"], ["a", "2", ".2"], ["b", "1", ".3"]], 2
    )
    assert tables_of(table_beside(old, OTHER, [], 2)) == [[OTHER, ["c", "1", ".4"]]]
    assert section_of(OLD, "### Below") == "low" and section_of(OLD, "## One").startswith("first\n\n### Below")


@pytest.mark.slow
def test_without_results_no_page_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "kept_rows", lambda: Findings({}))
    rows, parties, groups = ((DOCS / f"{name}.md").read_text("utf-8") for name in (
        "rows-and-groups", "parties", "ensembles"
    ))  # fmt: skip
    assert pfds_page.page(rows) == rows and parties_page.page(Findings({}), parties) == parties
    monkeypatch.setattr(ensembles_page, "PAGE", tmp_path / "ensembles.md")
    (tmp_path / "ensembles.md").write_text(groups, "utf-8")
    pictures = pytest.importorskip("benchmarks.parties.ensembles_pictures", reason="matplotlib is in the bench extra")
    drawn = dict[str, Any]()
    monkeypatch.setattr(pictures, "draw", lambda file, grid: drawn.update({f"results/{file.name}": grid}))
    assert ensembles_page.write_page([], 4) == []
    assert (tmp_path / "ensembles.md").read_text("utf-8") == groups
    assert len(drawn) == 5 and all((DOCS / name).is_file() and f"({name})" in groups for name in drawn)
    (adult, spambase), = drawn["results/groups-figure-1.svg"]
    assert adult.lines[1].points[0] == (0.03125, 0.2434, 0.0076) and spambase.lines[1].level == 0.1273


@pytest.mark.slow
def test_without_results_the_papers_page_keeps_tables_and_verdicts(tmp_path: Path) -> None:
    page = pytest.importorskip("benchmarks.paper.page", reason="matplotlib is in the bench extra")
    text = (DOCS / "results.md").read_text("utf-8")
    nothing = Findings({})
    assert {claim.verdict(nothing)[0] for claim in CLAIMS} == {"not measured"}
    assert page.render(nothing, [], text) == text
    assert page.render(nothing, []).count("Not measured") > len(page.SECTIONS)


def test_a_part_that_was_measured_takes_the_place_of_its_own_lines_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"set": "Bikes", "task": "linear", "labels": None, "epsilon": None, "error": 0.5}
    kept = Findings({"table": [{**row, "way": "majority"}]})
    monkeypatch.setattr(pfds_page, "found", lambda: kept)
    old = (DOCS / "rows-and-groups.md").read_text("utf-8")
    new = pfds_page.page(old, "table")
    cells, before = ({tuple(line[:3]): line for line in tables_of(text)[0]} for text in (new, old))
    assert cells["Bikes", "linear", "1"][10] == ".500"
    assert all(cells[name] == line for name, line in before.items() if name[0] != "Bikes")
    assert section_of(new, "## Groups") == section_of(old, "## Groups")
