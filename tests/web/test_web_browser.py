"""The page in real Chromium: the whole way from the link to a prediction, with scripts off; and how every page looks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from village import DECLARED, advance

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from browsing import SCHEMES, WIDTHS, Browser, Living, axe_source, chromium, living, missing
from browsing_model import model_of
from selenium.webdriver.support.ui import WebDriverWait

from peer.session import State

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def axe() -> str:
    source = axe_source()
    if source is None:
        pytest.skip("axe-core is missing: npm install --prefix .venv/axe axe-core@4")
    return source


class Looker:
    """Looks at each page in turn: at every width, light and dark, for axe and for what is asked for."""

    def __init__(self, browser: Browser, axe: str, address: str) -> None:
        self.browser, self.axe, self.address = browser, axe, address
        self.faults: list[str] = []

    def look(self, name: str) -> None:
        self._at_every_width(name)
        if self.browser.unfold():
            self._at_every_width(f"{name}-unfolded")
        for scheme in SCHEMES:
            for width in WIDTHS:
                self.browser.view(width, scheme)
                self.faults += [f"{name} at {width} {scheme}: {one}" for one in self.browser.serious(self.axe)]
        self.browser.view(WIDTHS[1], SCHEMES[0])

    def _at_every_width(self, name: str) -> None:
        for scheme in SCHEMES:
            for width in WIDTHS:
                self.browser.view(width, scheme)
                self.browser.shot(f"{name}-{width}-{scheme}")
                if (wider := self.browser.overflow()) > 0:
                    self.faults.append(f"{name} at {width}: {wider} px too wide")
                self.faults += [f"{name} at {width}: a part cannot be seen of {one}" for one in self.browser.clipped()]


MONDAY = 1_800_259_200.0
"""18 January 2027, 08:00 UTC."""
STUDY = (
    DECLARED.replace(
        "To test a peer.",
        "We want to know whether coffee and age tell who is tired in the afternoon, so that the labs can move.",
    )
    .replace("nobody@example.org", "Dr. Ada Example, Sleep Lab, sleep@example.edu")
    .replace('enrol = "1h"', 'enrol = "5d"')
    .replace('settle = "10m"', 'settle = "6h"')
    .replace('collect = "1h"', 'collect = "2d"')
)


def _files(folder: Path) -> Path:
    file = folder / "sleep.csv"
    file.write_text("age,cups,tired\n41,many,1\n")
    return file


def _collecting(live: Living) -> None:
    """Enrolment closes and the checks pass."""
    page = live.page
    live.do(advance(page.peer, page.village, float(page.village.manifest.timetable.enrol_closes)))

    async def close() -> None:
        page.village.crowd(5)
        page.village.close()
        while page.peer.store.state(page.village.study) is not State.CHECKED:
            page.village.clock.seconds = max(page.village.clock(), await page.peer.step(page.village.study) or 0)

    live.do(close())


def _sent(live: Living) -> None:
    """The packet leaves, the transcript and a model are published, the study ends."""
    page = live.page
    live.do(advance(page.peer, page.village, float(page.village.manifest.windows[-1].closes)))

    async def publish() -> None:
        page.village.transcribe()
        page.village.publish("model", model_of(page.village.study.hex()))

    live.do(publish())
    live.do(advance(page.peer, page.village))


def walk(browser: Browser, live: Living, folder: Path, look: Looker | None) -> None:
    """Wizard, import, consent, sending, pause, prediction."""
    seen = look.look if look is not None else lambda name: None
    browser.open(live.page.server.link)
    assert browser.path == ""  # the link is not in the address bar any more
    seen("01-welcome")
    browser.press("Begin")
    seen("02-connect")
    browser.type("#link", "anonml://nothing")
    browser.press("Continue")
    assert "not an AnonML link" in browser.text
    seen("02-connect-refused")
    browser.press("Try again")
    browser.type("#link", live.page.village.invite.link())
    browser.press("Continue")
    seen("03-choose-data")
    browser.find("#file").send_keys(str(_files(folder)))
    browser.press("Look at it")
    assert "41" in browser.text and "many" in browser.text
    browser.type("#minimum_cohort", "3")
    seen("04-preview-and-budget")
    browser.press("Import, and read what is asked")
    assert "Imported: 1 row into person" in browser.text
    for page, name in (("/start/data", "05-data-chosen"), ("/start/budget", "06-budget"), ("/start/finish", "07-finish")):
        browser.open(live.page.server.address + page)
        seen(name)
    browser.press("Read what is asked")
    assert "Your true answer is sent in" in browser.text and "above 30, up to 60" not in _closed(browser)
    seen("08-consent")
    browser.press("Yes, take part")
    assert "You take part" in browser.text
    seen("09-enrolling")
    _collecting(live)
    browser.open(live.page.server.address + live.page.study)
    assert "waits for its time" in browser.text and "Prediction for me" not in browser.text
    seen("10-sending")
    browser.press("Pause")
    assert "Paused until" in browser.text and live.call(lambda: live.page.peer.paused_until(live.page.village.study))
    seen("11-paused")
    browser.press("Go on")
    assert "Not paused any more" in browser.text
    browser.press("Leave this study, or send nothing more")
    seen("12-leave")
    browser.press("Stay")
    _sent(live)
    assert len(live.page.village.sent("packets")) == 1
    browser.open(live.page.server.address + live.page.study)
    assert "found in the published transcript" in browser.text
    seen("13-finished")
    browser.press("Prediction for me")
    seen("14-prediction-asked")
    browser.press("Fetch the model and show me")
    assert "77.8 %" in browser.text and "cups" in browser.text and "towards yes" in browser.text
    seen("15-prediction")
    for name, words in (("16-history", "History"), ("17-budget", "Budget"), ("18-data", "Data"), ("19-diagnosis", "Diagnosis"), ("20-studies", "Studies")):
        browser.press(words)
        seen(name)
    for name, place in (("21-evidence", "/evidence"), ("22-nowhere", "/nowhere"), ("23-not-let-in", "/enter?token=0")):
        browser.open(live.page.server.address + place)
        seen(name)


def _closed(browser: Browser) -> str:
    """The text of the own answer's section as long as nobody has clicked on it."""
    found = [one.text for one in browser.driver.find_elements("css selector", "details") if "Your own answer" in one.text]
    assert found == ["Your own answer"]
    return found[0]


@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (412, "light"), (1280, "light")])
def test_the_whole_way_with_scripts_off(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    with living(tmp_path / "home", text=STUDY, data=False, start=MONDAY) as live:
        browser.view(width, scheme)
        browser.scripts(False)
        browser.asked()
        try:
            walk(browser, live, tmp_path, None)
            assert not live.page.server.engine.fault
        finally:
            browser.scripts(True)
        assert {address.partition("/")[2].partition("/")[2].partition("/")[0] for address in browser.asked()} <= {
            live.page.server.address.partition("//")[2]
        }


def test_every_page_at_every_width_light_and_dark(browser: Browser, axe: str, tmp_path: Path) -> None:
    with living(tmp_path / "home", text=STUDY, data=False, start=MONDAY) as live:
        browser.view(412, "light")
        looker = Looker(browser, axe, live.page.server.address)
        browser.asked()
        walk(browser, live, tmp_path, looker)
        asked = [address for address in browser.asked() if not address.startswith(("data:", live.page.server.address))]
        assert looker.faults == [] and asked == []


def test_live_parts_follow_by_themselves_and_leave_a_form_alone(browser: Browser, tmp_path: Path) -> None:
    with living(tmp_path / "home", text=STUDY, start=MONDAY) as live:
        page = live.page
        browser.view(412, "light")
        browser.open(page.server.link)
        browser.type("#link", "half a li")
        live.do(page.peer.join(page.village.invite, page.village.manifest.epsilon))
        wait = WebDriverWait(browser.driver, 10, poll_frequency=0.1)
        wait.until(lambda driver: "Sleep and coffee" in driver.find_element("id", "studies").text)
        assert "reserved 2" in browser.find("#meter").text
        assert browser.find("#link").get_attribute("value") == "half a li"
