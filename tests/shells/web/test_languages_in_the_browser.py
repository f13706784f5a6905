"""The owner's pages in every language, in real Chromium: nothing runs over at 320 px, and axe finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from peer.web.languages import COOKIE, NAMES
from tests.support.fake_aggregator import advance

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from tests.shells.web.test_web_browser import MONDAY, STUDY
from tests.support.browsing import Browser, Living, Looker, living, missing

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]


def _visit(browser: Browser, live: Living, looker: Looker, place: str, name: str) -> None:
    browser.open(live.page.server.address + place)
    looker.look(name)


@pytest.mark.parametrize("code", sorted(set(NAMES) - {"en"}))
def test_every_page_fits_a_narrow_screen_in_every_language(
    browser: Browser, axe: str, tmp_path: Path, code: str
) -> None:
    with living(tmp_path / "home", text=STUDY, start=MONDAY) as live:
        browser.view(320, "light")
        browser.open(live.page.server.link)
        browser.driver.add_cookie({"name": COOKIE, "value": code})
        looker = Looker(browser, axe, prefix=f"{code}-", widths=(320,), schemes=("light",))
        browser.open(live.page.server.address)
        browser.type("#link", live.page.aggregator.invite.link())
        browser.follow(browser.find("form:has(#link) button"))
        looker.look("consent")
        browser.follow(browser.find("button[value=yes]"))
        assert browser.find("html").get_attribute("lang") == code
        looker.look("enrolling")
        study = live.page.study
        pages = {
            "studies": "/", "data": "/data", "budget": "/budget", "history": "/history", "diagnosis": "/diagnosis",
            "evidence": "/evidence", "phones": "/phones", "connect": "/start/connect", "choose": "/start/data",
            "limits": "/start/budget", "finish": "/start/finish", "leave": f"{study}/leave",
            "delete": "/data/delete/person", "erase": "/data/erase", "nowhere": "/nowhere",
        }
        for name, place in pages.items():
            _visit(browser, live, looker, place, name)
        live.do(
            advance(live.page.peer, live.page.aggregator, live.page.aggregator.manifest.timetable.enrol_closes + 1.0)
        )
        _visit(browser, live, looker, study, "study")
        assert looker.faults == []
