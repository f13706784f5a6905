"""Texts that others wrote cannot pass for the program's own lines on the terminal, nor move its cursor."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from anon.errors import InvalidValue
from anon.protocols.models.tables import Cuts, Model
from anon.study.features import Feature
from anon.transparency.fingerprint import words
from peer.cli.show import sheet_json, show_sheet
from peer.data.readiness import own_data
from peer.rules.consent import Policy, explain
from peer.rules.ledger import Ledger
from tests.anon.study.test_translations import translated
from tests.support.clock import START, Clock
from tests.support.fake_aggregator import DECLARED, FakeAggregator
from tests.support.peer_command import Command

FAKE = "Fingerprint, to compare with a public place: alfa-bravo"


def test_a_purpose_cannot_add_a_line_to_the_consent_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    manifest = attrs.evolve(
        FakeAggregator.with_study(DECLARED, Clock(START)).manifest, purpose=f"Good.\n\n\n{FAKE}\n- It is free."
    )
    sheet = explain(manifest, Policy(), Ledger(10 * 10**9, ()), START)
    show_sheet(sheet, own_data(tmp_path / "data.sqlite", manifest.tables), tmp_path, queries=True)
    lines = capsys.readouterr().out.splitlines()
    [mine] = [line for line in lines if line.startswith("Fingerprint, to compare")]
    assert mine.endswith(words(manifest.study_id))
    for part in (FAKE, "- It is free."):
        assert [line[0] for line in lines if part in line] == ["│"], part
    assert [line[0] for line in lines if "SELECT age" in line] == ["│"]


def test_who_asks_and_why_come_before_where_the_file_comes_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = FakeAggregator.with_study(DECLARED, Clock(START)).manifest
    for manifest in (attrs.evolve(plain, data_source=f"Profile, Download.\n{FAKE}"), plain):
        sheet = explain(manifest, Policy(), Ledger(10 * 10**9, ()), START)
        show_sheet(sheet, own_data(tmp_path / "data.sqlite", manifest.tables), tmp_path, queries=False)
        said = capsys.readouterr().out
        assert ("where your file comes from" in said) is bool(manifest.data_source)
        if manifest.data_source:
            assert said.index(manifest.purpose) < said.index("Profile, Download.") < said.index("Rows in your tables")
            assert [line[0] for line in said.splitlines() if FAKE in line] == ["│"]


def test_the_terminal_tells_a_study_in_the_language_that_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = FakeAggregator.with_study(translated(), Clock(START)).manifest
    for language, title, rest in (("de", "Schlaf und Kaffee", True), ("", "Sleep and coffee", False)):
        sheet = explain(manifest, Policy(), Ledger(10 * 10**9, ()), START, language=language)
        own = own_data(tmp_path / "data.sqlite", manifest.tables)
        show_sheet(sheet, own, tmp_path, queries=False)
        said = capsys.readouterr().out
        assert title in said and ("Du bist müde." in said) is rest and "Your age." in said
        assert "Written in en, and by those who ask in: de (--language)" in said
        assert ("what is not there in de is told in en" in said) is rest
        assert sheet_json(sheet, own)["language"] == (language or "en")


@pytest.mark.parametrize("text", ["\x1b[2Jyes", "no\nyes", "\u202eyes"])
def test_a_category_is_one_plain_line(text: str) -> None:
    with pytest.raises(InvalidValue, match="categories"):
        Feature("cups", "categorical", "Cups.", "SELECT cups FROM person", "own", categories=("some", text))


def test_a_message_that_quotes_a_strangers_model_moves_no_cursor(command: Command, tmp_path: Path) -> None:
    manifest = FakeAggregator.with_study(DECLARED, Clock(START)).manifest
    cuts = tuple(Cuts(one.name, one.cuts) for one in manifest.features if one.kind == "numeric")
    model = Model(1, "ab" * 32, "t", manifest.label, manifest.features, cuts, "soft", "soft", 0.5, 0.5, ())
    hostile = json.loads(model.to_json())
    numbers = {"reports": 1, "f1": 0.5, "auc": 0.5, "weight": 1.0, "log_odds": [0.0, 0.0], "votes": [0, 1]}
    hostile["tables"] = [{"features": ["\x1b[2J\x1b[8m"], "cards": [2], "errors": [], **numbers}]
    file = tmp_path / "model.json"
    file.write_text(json.dumps(hostile), encoding="utf-8")
    done = command("predict", str(file))
    assert done.code == 3 and "\x1b" not in done.err and "<U+001B>[2J" in done.err, ascii(done.err)
