"""One table of the kinds of documents: its rows lead to code that exists, and no other module lists kinds."""

from __future__ import annotations

import ast
from pkgutil import resolve_name

import pytest

from anon.protocols.kinds import KINDS, DocumentKind, files_of, row_of, rows_of
from tests.docs.repository import ROOT, modules
from tests.support.fake_aggregator import DECLARED, FakeAggregator

OTHERS = {"anon/transparency/bucketed.py", "anon/transparency/closing.py", "anon/study/schema.py"}
"""`KINDS` has them in rows. The first, below it, has the lengths of those in buckets. The second has those that a
credential is checked with; the third has words for keys of a study file that are called the same."""
NAMES = {row.kind for row in KINDS} | {"model"}


def lists(source: str) -> list[int]:
    """The lines on which at least two kinds stand in one tuple, list, set or table."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            members = node.keys if isinstance(node, ast.Dict) else node.elts
            kinds = [one.value for one in members if isinstance(one, ast.Constant) and one.value in NAMES]
            found += [node.lineno] if len(kinds) > 1 else []
    return found


def test_a_list_of_kinds_is_seen() -> None:
    assert lists('x = ("roster", "seed")\ny = {"model": 1, "report": 2}\nz = ["roster", "word"]') == [1, 2]


@pytest.mark.slow
def test_no_other_module_lists_kinds() -> None:
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in modules("anon", "peer", "aggregator")
    }
    found = {
        name: lists(text)
        for name, text in texts.items()
        if sum(f'"{kind}"' in text or f"'{kind}'" in text for kind in NAMES) > 1
    }
    assert {name for name, lines in found.items() if lines} == OTHERS


@pytest.mark.parametrize("row", KINDS, ids=lambda row: f"{row.kind}-{row.stage.name}")
def test_a_kind_is_checked_where_its_row_says(row: DocumentKind) -> None:
    for name in row.checked_by:
        assert resolve_name(name)
    assert set(row.rests_on) <= NAMES


def test_each_document_has_one_row() -> None:
    manifest = FakeAggregator.with_study(DECLARED).manifest
    places = [(row.kind, part) for row in rows_of(manifest) for part in row.parts(manifest)]
    assert ("model", 0) in places and files_of(manifest) == {("model", 0): "model.json", ("report", 0): "report.html"}
    assert len(set(places)) == len(places)
    assert all(row_of(manifest, kind, part) for kind, part in places)
    assert row_of(manifest, "seed", 2) is None and row_of(manifest, "transcript", len(manifest.slots)) is None
