"""Reports in real Chromium, as staff have them and as a member's page shows them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from aggregator.report.page import render
from aggregator.rules.counters import Traffic
from anon.study.manifest import Manifest
from peer.published_report import as_page
from tests.aggregator.protocols.test_sum_part import learned, published
from tests.support.browsing import Browser, Looker, missing
from tests.support.groups_study import HELD as GROUPS_HELD
from tests.support.groups_study import groups_study
from tests.support.masks_study import Rows, masks_study, members
from tests.support.sums import GRADIENT, MARGINALS, MOMENTS, RULE, TABLES, manifest_of
from tests.support.trees_study import HELD as TREES_HELD
from tests.support.trees_study import trees_study
from tests.support.world import published as documents_of

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.mark.parametrize("design", [TABLES, MARGINALS, MOMENTS, RULE, GRADIENT])
def test_a_report_fits_a_phone_and_axe_finds_nothing(browser: Browser, axe: str, tmp_path: Path, design: str) -> None:
    study = manifest_of(design)
    report = render(study, learned(study, published(study)[0]), Traffic(10, {}, {}), {0: 10}).encode()
    look_at(browser, axe, tmp_path, study.surveys[0].kind, study, report)


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        ("masks", masks_study(), [[row] for held in TREES_HELD for row in held[:1]]),
        ("groups", groups_study(), GROUPS_HELD),
        ("trees", trees_study(), TREES_HELD),
    ],
)
def test_so_does_the_report_of_a_study_without_tellers(
    browser: Browser, axe: str, tmp_path: Path, name: str, text: str, rows: Sequence[Rows]
) -> None:
    async def played() -> tuple[Manifest, bytes]:
        async with members(tmp_path, text, rows) as world:
            await world.go_on()
            return world.live.manifest, (await documents_of(world.live))["report", 0]

    look_at(browser, axe, tmp_path, name, *asyncio.run(played()))


def look_at(browser: Browser, axe: str, folder: Path, name: str, study: Manifest, report: bytes) -> None:
    look = Looker(browser, axe, "report-", widths=(320, 390, 1280))
    for whose, page in (("staffs", report), ("members", as_page(report, study.title, "As staff published it."))):
        file = folder / f"{whose}.html"
        file.write_bytes(page)
        browser.open(file.as_uri())
        look.look(f"{whose}-{name}")
    assert not look.faults, "\n".join(look.faults)
