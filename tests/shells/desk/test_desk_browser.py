"""The desk in real Chromium: the staff's whole way from a study's proposal to its published report, with scripts
off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from aggregator.desk.link import kept_link
from anon.wire.invite import parse_invite
from tests.support.browsing import Browser, Looker, Looped, in_a_thread, missing
from tests.support.clock import Clock
from tests.support.desk_browser import Desk, opened
from tests.support.world import World, begin, make_app, study_text

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]


@define
class Staffed(Looped):
    """An aggregator and its desk in a thread of their own."""

    desk: Desk
    clock: Clock

    @property
    def link(self) -> str:
        return kept_link(self.desk.app.home.path) or ""


@asynccontextmanager
async def _desk(home: Path) -> AsyncIterator[tuple[Desk, Clock]]:
    clock = Clock()
    async with make_app(home, clock) as app, opened(app) as desk:
        yield desk, clock


@contextmanager
def staffed(folder: Path) -> Iterator[Staffed]:
    with in_a_thread(_desk(folder / "home")) as (loop, (desk, clock)):
        yield Staffed(loop, desk, clock)


@pytest.fixture(autouse=True)
def _scripts(browser: Browser) -> None:
    browser.scripts(on=True)


async def _collect(running: World) -> None:
    await running.collected(6)
    await running.go_to(running.closes)


def _looked_again(browser: Browser, study: str) -> None:
    """Load the page until audit and forecast are done, as somebody without scripts does."""
    def done(_: Any) -> bool:
        browser.open(study)
        return "under way" not in browser.text and "being made" not in browser.text

    WebDriverWait(browser.driver, 60, poll_frequency=0.2).until(done)


def _typed(browser: Browser, text: str) -> None:
    """Paste a study file."""
    box = browser.find("textarea")
    browser.driver.execute_script("arguments[0].value = arguments[1]", box, text)


def _wordy(text: str) -> str:
    """As people write: sentences and queries that do not fit into one line of a phone."""
    said, query = 'description = "Your age"', 'query = "SELECT age FROM person"'
    assert said in text and query in text
    text = text.replace(
        said, 'description = "How many years ago you were born, as the office counts them, in full years"'
    )
    return text.replace(
        query, 'query = "SELECT CASE WHEN age IN (17, 18) THEN 18 WHEN age > 89 THEN 89 ELSE age END FROM person"'
    )


def _go(browser: Browser, step: int) -> None:
    """To a step of the form, by the list of them."""
    browser.find(f'.steps a[href="#step-{step}"]').click()


def _seen_step(browser: Browser) -> list[str]:
    """The heads of the steps that are shown."""
    return [one.text for one in browser.driver.find_elements("css selector", ".step > h2") if one.is_displayed()]


def test_from_proposal_to_report_without_scripts(browser: Browser, axe: str, tmp_path: Path) -> None:
    look = Looker(browser, axe, "desk-", scripts=False)
    with staffed(tmp_path) as staff:
        browser.scripts(on=False)
        browser.asked()
        browser.open(staff.link)
        assert browser.path == "" and "No study yet" in browser.text
        look.look("1-studies-empty")
        browser.press("New study")
        look.look("2a-form-empty")
        sample = tmp_path / "sample.csv"
        sample.write_text(
            "hours,forum,left_course\n" + "".join(f"{n},{('never', 'often')[n % 2]},{n % 2}\n" for n in range(40))
        )
        browser.type("#title", "Leaving a course")
        browser.find("#step-1 a.next").click()
        assert _seen_step(browser) == ["2. What each person's data look like"]
        browser.find("#sample").send_keys(str(sample))
        browser.press("Read the columns")
        Select(browser.find("#label")).select_by_value("left_course")
        browser.type("#positive", "1")
        _go(browser, 4)
        browser.press("See what to expect")
        assert "The study is not complete yet" in browser.text and "in words: fill it in" in browser.text
        assert _seen_step(browser) == ["4. Privacy, and what it leaves to be found"]
        look.look("2b-form-faults")
        for field, words in (
            ("#purpose", "To help in time."),
            ("#contact", "staff@example.org"),
            ("#label_says", "Whether you left"),
        ):
            browser.find(f'#answer a[href="{field}"]').click()
            assert len(_seen_step(browser)) == 1
            browser.type(field, words)
            _go(browser, 4)
        browser.press("See what to expect")
        assert "100 people are enough for this study at epsilon 2" in browser.text, "forum tells all in that file"
        look.look("2c-form")
        browser.press("Write the study file")
        assert "It can be published" in browser.text and "Leaving a course" in browser.find("#text").get_attribute(
            "value"
        )
        look.look("2-editor")
        _typed(browser, study_text().replace("epsilon = 2.0", "epsilon = 99"))
        browser.press("Check")
        assert "It cannot be published yet" in browser.text and "design.epsilon" in browser.text
        look.look("3-editor-faults")
        _typed(browser, _wordy(study_text()))
        browser.press("Publish …")
        assert "Publish “Income”?" in browser.text
        look.look("4-confirm")
        browser.press("Publish it now")
        assert "Now: enrolling" in browser.text
        look.look("5-study-enrolling")
        browser.find("#count").clear()
        browser.find("#count").send_keys("6")
        browser.type("#address", "127.0.0.1:8750")
        browser.press("Draw invites")
        codes = [one.text for one in browser.driver.find_elements("css selector", ".invites code")]
        links = [text.split("'")[1] for text in codes if text.startswith("anonml peer open ")]
        assert len({parse_invite(link).code for link in links}) == 6 and "Shown once" in browser.text
        look.look("6-invites")
        (live,) = staff.desk.app.studies()
        staff.do(_collect(World(staff.desk.app, live, staff.clock, [parse_invite(link) for link in links])))
        browser.press("Back to the study")
        assert "Now: published" in browser.text and "final" in browser.text
        look.look("7-study-published")
        study = f"{staff.desk.origin}/studies/{live.study.hex()}"
        for name in ("roster", "fingerprints"):
            browser.open(f"{study}/{name}")
            look.look(f"8-{name}")
        browser.open(study)
        people = tmp_path / "people.csv"
        people.write_text(
            "age,sex,income\n"
            + "".join(f"{20 + n},{'Male' if n % 2 else 'Female'},{'>50K' if n % 3 else '<=50K'}\n" for n in range(60))
        )
        browser.find("#people").send_keys(str(people))
        browser.press("Make that report")
        for fold in browser.driver.find_elements("css selector", "details:not([open]) > summary"):
            if "test set" in fold.text:  # a model that was not shown to beat a guess has its figures folded
                fold.click()
        assert "Errors by subgroup" in browser.text
        saved = tmp_path / "report.html"
        saved.write_text(browser.driver.page_source, "utf-8")
        browser.open(study)
        browser.press("Audit now")
        browser.open(study)
        browser.press("Make a forecast")
        _looked_again(browser, study)
        assert "everything published fits together" in browser.text and "with a test set" in browser.text
        look.look("7b-audit-and-forecast")
        browser.open(staff.desk.origin + "/")
        look.look("7c-studies")
        browser.open(staff.link + "0")
        assert "Not done" in browser.text
        look.look("9b-link-refused")
        browser.open(staff.desk.origin + "/")
        browser.follow(browser.find("header button"))
        assert "igned out" in browser.text
        look.look("10-signed-out")
        assert not [url for url in browser.asked() if not url.startswith((staff.desk.origin, "data:", "about:"))]
    browser.open(saved.as_uri())  # as a file: served, it is sandboxed, and the checker is a script
    browser.view(320, "light")
    assert (
        min(one.size["width"] for one in browser.driver.find_elements("css selector", "[aria-label=features] code"))
        > 150
    )
    look.look("9-report")
    assert not look.faults, "\n".join(look.faults)


def test_the_editor_checks_while_somebody_types(browser: Browser, tmp_path: Path) -> None:
    with staffed(tmp_path) as desk:
        browser.view(1280, "light")
        browser.open(desk.link)
        browser.press("New study")
        browser.press("Write the file yourself")
        browser.find("textarea").send_keys("nonsense")
        wait = WebDriverWait(browser.driver, 15, poll_frequency=0.1)
        wait.until(lambda _: "It cannot be published yet" in browser.find("#linted").text)
        assert browser.driver.execute_script("return document.activeElement.tagName") == "TEXTAREA"
        logs = [one["message"] for one in browser.driver.get_log("browser")]
        assert not [one for one in logs if "Content Security Policy" in one or "Uncaught" in one], logs


def test_the_slider_tells_what_to_expect_by_keyboard_and_the_draft_stays(browser: Browser, tmp_path: Path) -> None:
    with staffed(tmp_path) as desk:
        browser.view(1280, "light")
        browser.open(desk.link)
        browser.press("New study")
        for field, words in (("#title", "Leaving"), ("#purpose", "To help."), ("#contact", "staff@example.org")):
            browser.type(field, words)
        _go(browser, 2)
        sample = tmp_path / "sample.csv"
        sample.write_text("hours,left\n" + "".join(f"{n},{n % 2}\n" for n in range(40)))
        browser.find("#sample").send_keys(str(sample))
        browser.until_seen("#label")
        assert "nobody is asked about it" not in browser.text, "nothing is predicted yet"
        Select(browser.find("#label")).select_by_value("left")
        assert browser.text.count("nobody is asked about it") == 1
        browser.type("#positive", "1")
        browser.type("#label_says", "Whether you left")
        _go(browser, 4)
        wait = WebDriverWait(browser.driver, 90, poll_frequency=0.2)
        wait.until(lambda _: "at epsilon 2." in browser.find("#outlook").text)
        browser.find("#epsilon").send_keys(Keys.ARROW_RIGHT * 4)
        wait.until(lambda _: "at epsilon 3." in browser.find("#outlook").text)
        assert browser.find("#epsilon-now").text == "3"
        assert browser.driver.execute_script("return document.activeElement.id") == "epsilon"
        browser.open(desk.desk.origin + "/")
        assert "Go on in the editorGo" not in browser.text
        browser.press("Go on in the form")
        assert (
            browser.find("#epsilon").get_attribute("value") == "3"
            and browser.find("#positive").get_attribute("value") == "1"
        )
        _go(browser, 4)
        browser.press("Publish …")
        wait.until(lambda _: "at epsilon 3" in browser.find("#forecast").text)


def test_a_trial_fills_in_its_lengths_and_an_audits_result_appears_by_itself(browser: Browser, tmp_path: Path) -> None:
    with staffed(tmp_path) as desk:
        browser.view(1280, "light")
        browser.open(desk.link)
        browser.press("New study")
        _go(browser, 3)
        browser.type("#enrol", "4m")
        figures = ("#minimum", "#enrol", "#collect")
        for pace, shown in (("trial", ["2", "4m", "2m"]), ("", ["100", "4m", "3"])):
            Select(browser.find("#pace")).select_by_value(pace)
            assert [browser.find(field).get_attribute("value") for field in figures] == shown, "what was typed stays"
        study = desk.do(_enrolling(desk))
        browser.open(f"{desk.desk.origin}/studies/{study}")
        assert "fewer than 50 are not shown" in browser.text
        browser.press("Audit now")
        before = browser.driver.execute_script("return performance.timeOrigin")
        wait = WebDriverWait(browser.driver, 60, poll_frequency=0.2)
        wait.until(lambda _: "its result appears here by itself" not in browser.text)
        assert browser.find("[data-live=audit] li").text
        assert browser.driver.execute_script("return performance.timeOrigin") == before, "no other page was loaded"


CENSUS = "age,education_num,hours_per_week,capital_gain,sex,marital_status,workclass,income\n" + "".join(
    f"{20 + n},{n % 14 + 3},{n % 50 + 10},{n * n},{('Male', 'Female')[n % 2]},"
    f"{('Married', 'Never-married', 'Divorced')[n % 3]},{('Private', 'Self-employed', 'Government')[n % 3]},"
    f"{('<=50K', '>50K')[n % 4 == 0]}\n"
    for n in range(60)
)
HIGHEST = 2100


def test_each_step_is_short_and_the_students_page_follows_what_is_typed(
    browser: Browser, axe: str, tmp_path: Path
) -> None:
    """With a sample of eight columns, of which each has a row of the table."""
    (tmp_path / "census.csv").write_text(CENSUS)
    wait = WebDriverWait(browser.driver, 30, poll_frequency=0.1)

    def student() -> str:
        return browser.find("[data-part=student]").text

    look = Looker(browser, axe, "desk-step-", widths=(320, 1280))
    with staffed(tmp_path) as desk:
        browser.view(1280, "light")
        browser.open(desk.link)
        browser.press("New study")
        assert "The title is missing" in student() and "What leaves your machine" not in student()
        browser.type("#title", "Who earns more")
        wait.until(lambda _: "Who earns more" in student() and "2 to do" in browser.find("[data-part=count-1]").text)
        browser.find("#title").send_keys(Keys.ENTER)
        assert _seen_step(browser) == ["2. What each person's data look like"]
        assert browser.find(".steps [aria-current=step]").text == "What each person's data look like"
        browser.find("#sample").send_keys(str(tmp_path / "census.csv"))
        browser.until_seen("#label")
        assert "One noisy answer leaves, once." in student() and "Your hours per week" in student()
        Select(browser.find("#label")).select_by_value("income")
        browser.type("#positive", ">50K")
        assert browser.find("#c0_says-hint").text == "To be corrected" and browser.find("#c1_says-hint").is_displayed()
        browser.type("#c0_says", "Your age in years")
        assert not browser.find("#c0_says-hint").is_displayed() and browser.find("#c1_says-hint").is_displayed()
        wait.until(lambda _: "Your age in years" in student() and "its words are missing" in student())
        browser.type("#c5_categories", "Married\nNot married")
        assert browser.find("[data-short=c5_categories]").text == "Married, Not married"
        Select(browser.find("#c5_kind")).select_by_value("numeric")
        assert browser.find("#c5_low").is_displayed() and not browser.find("#c5_categories").is_displayed()
        Select(browser.find("#c5_kind")).select_by_value("categorical")
        browser.type("#c0_cuts", "30,50 70")
        wait.until(lambda _: "age, Own cut points" in browser.find("[data-part=lacking-2]").text)
        _go(browser, 4)
        browser.press("See what to expect")
        browser.find('#answer a[href="#c0_cuts"]').click()
        assert browser.find("#c0_cuts").is_displayed(), "a fault opens the fold that its field is in"
        browser.type("#c0_cuts", "30 50")
        _go(browser, 3)
        Select(browser.find("#adds")).select_by_value("tellers")
        wait.until(lambda _: "The promise rests on one of these tellers" in student())
        heights = []
        for step in range(1, 5):
            browser.view(1280, "light")
            _go(browser, step)
            assert len(_seen_step(browser)) == 1
            heights.append(browser.driver.execute_script("return document.documentElement.scrollHeight"))
        for step in range(1, 5):
            _go(browser, step)
            look.look(f"{step}")
        browser.view(320, "light")
        browser.open(f"{desk.desk.origin}/")
        browser.press("Go on in the form")
        assert not browser.find("[data-part=student]").is_displayed(), "on a phone it is a fold below"
        browser.find(".student > summary").click()
        assert browser.find("[data-part=student]").is_displayed()
    print("heights of the steps at 1280 px:", heights)
    assert max(heights) <= HIGHEST and not look.faults, "\n".join([str(heights), *look.faults])


async def _enrolling(staff: Staffed) -> str:
    world = await begin(staff.desk.app, staff.clock, study_text())
    return world.live.study.hex()
