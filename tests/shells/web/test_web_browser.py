"""The page in real Chromium: the whole way from the link to a prediction, with scripts off; and how every page
looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_aggregator import DECLARED, advance, until_state

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from peer.rules.lifecycle import State
from tests.support.browsing import Browser, Living, Looker, living, missing
from tests.support.browsing_model import model_of
from tests.support.real_exports import moodle_csv

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]


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
    file.write_text("Age in years,cups,tired\n41,many,1\n")
    return file


def _collecting(live: Living) -> None:
    """Enrolment closes and the checks pass."""
    page = live.page
    live.do(advance(page.peer, page.aggregator, float(page.aggregator.manifest.timetable.enrol_closes)))

    async def close() -> None:
        page.aggregator.crowd(5)
        page.aggregator.close()
        await until_state(page.peer, page.aggregator, State.CHECKED)

    live.do(close())


def _sent(live: Living) -> None:
    """The packet leaves, the transcript and a model are published, the study ends."""
    page = live.page
    live.do(advance(page.peer, page.aggregator, float(page.aggregator.manifest.windows[-1].closes)))

    async def publish() -> None:
        page.aggregator.transcribe()
        page.aggregator.publish("model", model_of(page.aggregator.study.hex()))

    live.do(publish())
    live.do(advance(page.peer, page.aggregator))


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
    browser.type("#link", live.page.aggregator.invite.link())
    browser.press("Continue")
    seen("03-choose-data")
    browser.find("#file").send_keys(str(_files(folder)))
    browser.press("Look at it")
    assert "41" in browser.text and "many" in browser.text and "Which column is age?" in browser.text
    browser.type("#minimum_cohort", "3")
    seen("04-preview-and-budget")
    browser.press("Import, and read what is asked")
    assert "Imported: 1 row into “person”" in browser.text
    for page, name in (
        ("/start/data", "05-data-chosen"),
        ("/start/budget", "06-budget"),
        ("/start/finish", "07-finish"),
    ):
        browser.open(live.page.server.address + page)
        seen(name)
    browser.press("Read what is asked")
    assert "Of people with your answer" in browser.text and "above 30, up to 60" in browser.text
    assert "Your true answer is sent in" not in browser.text, "details are folded"
    seen("08-consent")
    browser.press("Yes, take part")
    assert "You take part" in browser.text
    seen("09-enrolling")
    _collecting(live)
    browser.open(live.page.server.address + live.page.study)
    assert "waits for its time" in browser.text and "Prediction for me" not in browser.text
    seen("10-sending")
    browser.press("Pause")
    assert "Paused until" in browser.text and live.call(lambda: live.page.peer.paused_until(live.page.aggregator.study))
    seen("11-paused")
    browser.press("Go on")
    assert "Not paused any more" in browser.text
    browser.press("Leave this study, or send nothing more")
    seen("12-leave")
    browser.press("Stay")
    browser.press("Data")
    browser.press("Delete")
    assert "Keep it" in browser.text and "Leave. Packets" in browser.text
    seen("12-delete")
    browser.press("Keep it")
    browser.press("erase all your data")
    assert "Tell nobody" not in browser.text, "enrolment is over: nobody is told"
    seen("12-erase")
    browser.press("Keep everything")
    _sent(live)
    assert len(live.page.aggregator.sent("packets")) == 1
    browser.open(live.page.server.address + live.page.study)
    assert "found in the published transcript" in browser.text
    seen("13-finished")
    browser.press("Prediction for me")
    seen("14-prediction-asked")
    browser.press("Fetch the model and show me")
    assert "77.8 %" in browser.text and "cups" in browser.text and "towards yes" in browser.text
    seen("15-prediction")
    for name, words in (
        ("16-history", "History"),
        ("17-budget", "Budget"),
        ("18-data", "Data"),
        ("19-diagnosis", "Diagnosis"),
        ("20-studies", "Studies"),
    ):
        browser.press(words)
        seen(name)
    for name, place in (("21-evidence", "/evidence"), ("22-nowhere", "/nowhere"), ("23-not-let-in", "/enter?token=0")):
        browser.open(live.page.server.address + place)
        seen(name)
    browser.open(live.page.server.address + "/data/erase")
    browser.press("Erase everything")
    assert "Your data are erased" in browser.text and live.call(live.page.server.site.tables) == {}


@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (1280, "light")])
def test_the_whole_way_with_scripts_off(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    with living(tmp_path / "home", text=STUDY, data=False, start=MONDAY) as live:
        browser.view(width, scheme)
        browser.scripts(False)
        browser.asked()
        try:
            walk(browser, live, tmp_path, None)
            assert not live.page.server.supervisor.fault
        finally:
            browser.scripts(True)
        assert {address.partition("/")[2].partition("/")[2].partition("/")[0] for address in browser.asked()} <= {
            live.page.server.address.partition("//")[2]
        }


def test_every_page_at_every_width_light_and_dark(browser: Browser, axe: str, tmp_path: Path) -> None:
    with living(tmp_path / "home", text=STUDY, data=False, start=MONDAY) as live:
        browser.view(412, "light")
        looker = Looker(browser, axe)
        browser.asked()
        walk(browser, live, tmp_path, looker)
        asked = [address for address in browser.asked() if not address.startswith(("data:", live.page.server.address))]
        assert looker.faults == [] and asked == []


def _by_keyboard(browser: Browser, wanted: str) -> None:
    """Press Tab until the focus is on this element."""
    for _ in range(60):
        if browser.driver.switch_to.active_element == browser.find(wanted):
            return
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
    raise AssertionError(f"the keyboard does not reach {wanted}")


def test_a_log_of_many_and_consent_by_keyboard_alone(browser: Browser, axe: str, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("User full name;Jahre;cups;tired\nAnn Bee;41,5;many;1\nBob Cee;n/a;Many;0\n")
    with living(tmp_path / "home", text=STUDY, data=False, start=MONDAY) as live:
        browser.view(320, "light")
        browser.open(live.page.server.link)
        browser.open(live.page.server.address + "/start/connect")
        browser.type("#link", live.page.aggregator.invite.link())
        browser.press("Continue")
        browser.find("#file").send_keys(str(log))
        browser.press("Look at it")
        looker = Looker(browser, axe)
        looker.look("24-preview-of-many")
        for field, typed in (
            ("#column-age", "j"),
            ("input[name='numerals.jahre']", Keys.SPACE),
            ("#person", "Bob Cee"),
            ("details.limits summary", Keys.SPACE),
        ):
            _by_keyboard(browser, field)
            browser.driver.switch_to.active_element.send_keys(typed)
        _by_keyboard(browser, "button[value=import]")
        browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
        WebDriverWait(browser.driver, 10).until(lambda _driver: browser.path.startswith("invite/"))
        assert "These count as missing: “age”, “cups”" in browser.text
        looker.look("25-consent-with-gaps")
        _by_keyboard(browser, "button[value=yes]")
        browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
        WebDriverWait(browser.driver, 10).until(lambda _driver: "You take part" in browser.text)
        assert looker.faults == []


def test_a_log_of_many_columns_can_be_read_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(moodle_csv("de"))
    with living(tmp_path / "home", text=STUDY, data=False, start=MONDAY) as live:
        browser.view(390, "light")
        browser.open(live.page.server.link)
        browser.open(live.page.server.address + "/data")
        browser.find("#file").send_keys(str(log))
        browser.find("form[action='/data/upload'] button").click()
        browser.settle()
        assert "moodle_log" in browser.text and browser.clipped() == [] and browser.overflow() <= 0
        links = browser.driver.find_elements("css selector", "nav a")
        assert len({link.location["y"] for link in links}) == 1, "the five pages' links share one line"


def test_live_parts_follow_by_themselves_and_leave_a_form_alone(browser: Browser, tmp_path: Path) -> None:
    with living(tmp_path / "home", text=STUDY, start=MONDAY) as live:
        page = live.page
        browser.view(412, "light")
        browser.open(page.server.link)
        browser.type("#link", "half a li")
        live.do(page.peer.join(page.aggregator.invite, page.aggregator.manifest.epsilon))
        wait = WebDriverWait(browser.driver, 10, poll_frequency=0.1)
        wait.until(lambda driver: "Sleep and coffee" in driver.find_element("id", "studies").text)
        assert "reserved 2" in browser.find("#meter").text
        assert browser.find("#link").get_attribute("value") == "half a li"
