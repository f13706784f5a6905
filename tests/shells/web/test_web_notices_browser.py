"""Notifications in real Chromium: asked for by a click alone, shown once, refused plainly, and switched off again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from selenium.webdriver.support.ui import WebDriverWait

from peer.run.notices import NEXT_LOOK, SENTENCES, Matter
from tests.support.browsing import Browser, Living, chromium, living, missing

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]

RECORDER = """
window.asked = 0;
window.Notification = class {
  static permission = localStorage.getItem("permission") || "default";
  static async requestPermission() {
    window.asked++;
    Notification.permission = ANSWER;
    localStorage.setItem("permission", ANSWER);
    return ANSWER;
  }
  constructor(title, said) {
    const shown = JSON.parse(localStorage.getItem("shown") || "[]");
    localStorage.setItem("shown", JSON.stringify([...shown, [title, said.body, said.lang]]));
  }
};
"""
"""In the browser's place: whether it was asked, what it answered, and all that it was given to show."""


@pytest.fixture
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Browser, Living]]:
    (tmp_path / "home").mkdir()
    with living(tmp_path / "home") as live, chromium(tmp_path / "profile") as browser:
        source = RECORDER.replace("ANSWER", f'"{request.param}"')
        browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
        live.do(live.page.enter())
        live.do(live.page.joined())
        browser.open(live.page.server.link)
        browser.asked()  # of the window before
        yield browser, live


def _shown(browser: Browser) -> list[list[str]]:
    return list(browser.driver.execute_script('return JSON.parse(localStorage.getItem("shown") || "[]")'))


@pytest.mark.parametrize("opened", ["granted"], indirect=True)
def test_the_browser_is_asked_by_a_click_alone_and_tells_once(opened: tuple[Browser, Living]) -> None:
    browser, live = opened
    assert "Be told by your browser" in browser.text
    assert browser.driver.execute_script("return window.asked") == 0
    browser.find("#notices [data-ask]").click()
    WebDriverWait(browser.driver, 10).until(lambda _driver: "Do not tell me any more" in browser.text)
    WebDriverWait(browser.driver, 10).until(lambda _driver: live.page.server.site.telling._known is not None)
    assert _shown(browser) == []
    live.do(live.page.ended(NEXT_LOOK[1]))
    asked = live.call(lambda: len(live.page.aggregator.gets))
    browser.open(live.page.server.address + "/data")
    WebDriverWait(browser.driver, 10).until(lambda _driver: _shown(browser))
    browser.open(live.page.server.address + "/")
    assert _shown(browser) == [["AnonML", str(SENTENCES[Matter.SENT]), "en"]]
    assert live.call(lambda: len(live.page.aggregator.gets)) == asked
    assert all(address.startswith(live.page.server.address) for address in browser.asked())
    browser.press("Do not tell me any more")
    assert "Switched off." in browser.text


@pytest.mark.parametrize("opened", ["denied"], indirect=True)
def test_a_browser_that_refuses_is_said_plainly(opened: tuple[Browser, Living]) -> None:
    browser, live = opened
    assert "refuses notifications" not in browser.text
    browser.find("#notices [data-ask]").click()
    WebDriverWait(browser.driver, 10).until(lambda _driver: "Your browser refuses notifications" in browser.text)
    assert "Do not tell me any more" not in browser.text and live.page.server.site.telling._known is None


@pytest.mark.parametrize("opened", ["granted"], indirect=True)
def test_without_scripts_nothing_is_offered_that_cannot_be(opened: tuple[Browser, Living]) -> None:
    browser, live = opened
    browser.scripts(False)
    browser.open(live.page.server.address + "/")
    assert "Be told by your browser" not in browser.text
