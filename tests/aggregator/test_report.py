"""The report: whole in itself, without a word that could run, and true about what protects whom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from network import Clock, begin, make_app, published, sealed, study_text


async def _report(home: Path, text: str) -> str:
    clock = Clock()
    async with make_app(home, clock) as app:
        running = await begin(app, clock, text)
        peers = await running.enrol(8)
        await running.close_enrolment(peers)
        await running.go_to(running.opens)
        for peer in peers:
            assert await running.live.submit(sealed(running.live, peer.packet())) == "accepted"
        assert await running.live.submit(b"") == "wrong-size"
        await running.go_to(running.closes)
        return (await published(running.live))["report", 0].decode()


async def test_the_report_says_what_there_is_to_say(tmp_path: Path) -> None:
    page = await _report(tmp_path / "home", study_text())
    assert "Record-level epsilon (local, pure): <strong>2</strong>" in page
    assert "Per-attribute (AnonML eq. 6): 2" in page
    assert re.search(r"packets accepted</th><td class=.n.>8<", page)
    assert re.search(r"refused: wrong-size</th><td class=.n.>1<", page)
    assert "1% hostile" in page
    assert "its sender is among the 8 enrolled" in page
    assert "sex Female, income yes" in page and "30 &lt; age ≤ 50" in page


async def test_the_report_is_whole_and_runs_nothing(tmp_path: Path) -> None:
    text = study_text().replace('title = "Income"', 'title = "<script>alert(1)</script>"')
    page = await _report(tmp_path / "home", text)
    assert "<script" not in page and "&lt;script&gt;" in page
    assert not re.search(r"(src|href|@import|url\()", page)
    assert "://" not in page


@pytest.mark.parametrize("word", ["among the", "anonymous"])
async def test_open_admission_claims_no_anonymity(tmp_path: Path, word: str) -> None:
    page = await _report(tmp_path / "home", study_text(admission="open"))
    assert "No claim of anonymity" in page and word not in page
