"""Workbooks that were made to be read for ever, to fill the memory, or to read a file beside themselves."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from anon.errors import AnonmlError
from anon.queries.process import has_children
from peer.data import foreign
from peer.data.formats import excel
from peer.data.importing import import_file
from peer.data.preview import preview
from tests.attacks.test_damaged_files import _changed, _read
from tests.support.workbooks import SHEET, changed_inside, repacked, sheet, with_shared_texts, workbook

pytest.importorskip("openpyxl", reason="openpyxl is missing: install the extra `test`")
HEADING = '<row><c t="inlineStr"><is><t>day</t></is></c></row>'
SECRET = "something beside the workbook"


def _cell(text: str) -> str:
    return f'{HEADING}<row><c t="inlineStr"><is><t>{text}</t></is></c></row>'


def _laughs() -> str:
    names = "abcdefghi"
    more = "".join(f'<!ENTITY {name} "{f"&{of};" * 10}">' for of, name in zip(names, names[1:], strict=False))
    return f'<!DOCTYPE x [<!ENTITY a "ha">{more}]>'


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "zip": (lambda: repacked(workbook([]), {SHEET: sheet("<row/>" * 2_000_000)}), "300 times its size"),
    "texts": (lambda: with_shared_texts(workbook([]), "<si/>" * 2_000_000, HEADING), "300 times its size"),
    "entities": (lambda: repacked(workbook([]), {SHEET: sheet(_cell("&i;"), _laughs())}), "damaged or unusual"),
    "nested": (lambda: repacked(workbook([]), {SHEET: sheet("<x>" * 100_000)}), "damaged or unusual"),
    "far row": (
        lambda: repacked(workbook([]), {SHEET: sheet(f'{HEADING}<row r="99999999"><c><v>1</v></c></row>')}),
        "Excel allows",
    ),
    "one text in each row": (
        lambda: with_shared_texts(
            workbook([]),
            f"<si><t>a</t></si><si><t>{'x' * 30_000}</t></si>",
            '<row><c t="s"><v>0</v></c></row>' + '<row><c t="s"><v>1</v></c></row>' * 20_000,
        ),
        "far more rows",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_with_a_sentence(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: the bounds hold also where there are no child processes."""
    monkeypatch.setattr(foreign, "has_children", lambda: False)
    make, said = BOMBS[name]
    file = tmp_path / "bomb.xlsx"
    file.write_bytes(make())
    assert file.stat().st_size < 100_000
    with pytest.raises(AnonmlError, match=said):
        import_file(tmp_path / "d.sqlite", file)


def test_a_workbook_reads_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "beside.txt").write_text(SECRET)
    before = f'<!DOCTYPE x [<!ENTITY a SYSTEM "{(tmp_path / "beside.txt").as_uri()}">]>'
    (tmp_path / "a.xlsx").write_bytes(repacked(workbook([]), {SHEET: sheet(_cell("&a;"), before)}))
    with pytest.raises(AnonmlError, match="damaged or unusual") as caught:
        preview(tmp_path / "a.xlsx")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("bound", ["LARGEST_UNPACKED", "LARGEST_HELD"])
def test_all_that_unpacks_is_bounded_before_it_is(tmp_path: Path, bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "has_children", lambda: False)
    (tmp_path / "a.xlsx").write_bytes(workbook([["day"], [1]]))
    assert preview(tmp_path / "a.xlsx").tables[0].rows == ((1,),)
    monkeypatch.setattr(excel, bound, 100)
    with pytest.raises(AnonmlError, match="unpacks to more than 100 bytes; save it as CSV in Excel"):
        preview(tmp_path / "a.xlsx")


def _damaged(seed: int) -> bytes:
    source, whole = random.Random(seed), workbook([["day", "hours"], ["2024-02-05", 7.5], ["2024-02-06", True]])
    return changed_inside(whole, source, _changed) if seed % 3 else _changed(whole, source)


@pytest.mark.slow
@pytest.mark.skipif(not has_children(), reason="no child processes here")
def test_changed_workbooks_end_nothing(tmp_path: Path) -> None:
    """Also one part of a workbook alone, packed anew: otherwise the archive's own checks would find nearly all."""
    assert {_read(tmp_path, _damaged(seed), ".xlsx") for seed in range(30)} >= {"told/told", "read/read"}


@pytest.mark.soak
@pytest.mark.skipif(not has_children(), reason="no child processes here")
def test_two_thousand_changed_workbooks_end_nothing(tmp_path: Path) -> None:
    assert sum(bool(_read(tmp_path, _damaged(seed), ".xlsx")) for seed in range(2_000)) == 2_000
