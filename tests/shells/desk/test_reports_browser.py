"""Reports of sums in real Chromium, as staff have them and as a member's page shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from aggregator.report.page import render
from aggregator.rules.counters import Traffic
from peer.published_report import as_page
from tests.aggregator.protocols.test_sum_part import learned, published
from tests.support.browsing import Browser, Looker, missing
from tests.support.sums import MARGINALS, MOMENTS, TABLES, manifest_of

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.mark.parametrize("design", [TABLES, MARGINALS, MOMENTS])
def test_a_report_fits_a_phone_and_axe_finds_nothing(browser: Browser, axe: str, tmp_path: Path, design: str) -> None:
    study = manifest_of(design)
    report = render(study, learned(study, published(study)[0]), Traffic(10, {}, {}), {0: 10}).encode()
    look = Looker(browser, axe, "report-", widths=(320, 390, 1280))
    for name, page in (("staffs", report), ("members", as_page(report, study.title, "As staff published it."))):
        file = tmp_path / f"{name}.html"
        file.write_bytes(page)
        browser.open(file.as_uri())
        look.look(f"{name}-{study.surveys[0].kind}")
    assert not look.faults, "\n".join(look.faults)
