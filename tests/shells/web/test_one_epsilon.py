"""After a study of exact sums its owner reads one epsilon and the odds, on the pages as on the terminal.

Rho stands nowhere but in the arithmetic, and no screen says that nothing was spent.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from anon.protocols.registry import charge_of
from peer.cli.amounts import budget_json, show_budget
from peer.cli.show import receipt_json, show_receipts, show_sheet, show_status, status_json
from peer.data.importing import import_rows
from peer.data.readiness import own_data
from peer.rules.consent import explain
from peer.rules.packet_lifecycle import Status
from peer.store import rows
from peer.store.summaries import Receipt, StudyStatus, parts_of
from tests.support.sums import TABLES, countersigned, sum_study
from tests.support.visiting import Visited, visited

pytestmark = pytest.mark.slow
ODDS = "the chances of whatever is published move by at most a factor of 2.72, and by one in a million more"
FALSE = re.compile(r"\brho\b|[Ss]pent (epsilon )?0\b|\b0 spent")


async def spent(page: Visited) -> list[StudyStatus]:
    """Join, and count all of the reservation as spent."""
    import_rows(page.home.data_path, "person", ("age", "sleep", "cups", "tired"), [(30, 8, "some", 1)])
    page.aggregator.publish("tellers", countersigned(page.aggregator.manifest))
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    await page.submit(page.invite, page.invite, answer="yes")
    with page.peer.store._writing("test") as connection:
        rows.write_entry(connection, page.peer.budget().forfeit_rest(page.aggregator.study), page.aggregator.study)
    return page.peer.status()


async def test_pages_show_one_epsilon(tmp_path: Path) -> None:
    async with visited(tmp_path, sum_study(TABLES)) as page:
        await spent(page)
        place = f"/study/{page.aggregator.study.hex()}"
        for where, said in {
            "/": "Noisy sums about a person spent",
            "/budget": f"epsilon 1 spent, 0 reserved; {ODDS}",
            "/history": f" 1 {ODDS}",
            place: f"Spent epsilon 1 Reserved epsilon 0 With this study, {ODDS}.",
        }.items():
            words = (await page.get(where)).words
            shown = words.partition("The arithmetic of it")[0]
            assert said in words, where
            assert not FALSE.search(shown), (where, FALSE.search(shown))


async def test_the_terminal_shows_one_epsilon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with visited(tmp_path, sum_study(TABLES)) as page:
        manifest, peer = page.aggregator.manifest, page.peer
        before = explain(manifest, peer.policy(), peer.budget(), page.server.site.now())
        show_sheet(before, own_data(page.home.data_path, ()), tmp_path, queries=False, code=False)
        sheet = capsys.readouterr().out
        assert "It costs you epsilon 1: " in sheet and "rho" not in sheet.partition("The arithmetic")[0]
        (status,) = await spent(page)
        receipt = Receipt(status.study, "Sleep", 0, 0, status.held(charge_of(manifest).amount), Status.QUEUED, "")
        show_status(peer)
        show_budget(peer.budget(), peer.policy(), parts_of(peer.budget(), [status]))
        show_receipts([receipt], {status.study: None})
        shown = " ".join(capsys.readouterr().out.split())
        assert shown.count(ODDS) == 3 and not FALSE.search(shown), shown
        told = json.dumps([
            status_json(status),
            receipt_json(receipt, None),
            budget_json(peer.budget(), peer.policy(), parts_of(peer.budget(), [status])),
        ])
    assert told.count('"epsilon_spent": 1.0') == 2 and '"epsilon": 1.0' in told
