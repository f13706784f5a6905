"""The desk in real Chromium: the staff's whole way from a study's proposal to its published report, with scripts off."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from attrs import define

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")
sys.path.append(str(Path(__file__).parents[1] / "web"))
sys.path.append(str(Path(__file__).parents[1] / "peer"))

from browsing import SCHEMES, WIDTHS, Browser, axe_source, chromium, missing
from desk_browser import opened
from network import Clock, FakePeer, Running, make_app, sealed, study_text
from selenium.webdriver.support.ui import WebDriverWait

from aggregator.app import AggregatorApp
from aggregator.desk.link import kept_link
from anon.invite import parse_invite

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]
T = TypeVar("T")


@define
class Staffed:
    """An aggregator and its desk in a thread of their own."""

    app: AggregatorApp
    clock: Clock
    origin: str
    _loop: asyncio.AbstractEventLoop

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    @property
    def link(self) -> str:
        return kept_link(self.app.home.path) or ""


@contextmanager
def staffed(folder: Path) -> Iterator[Staffed]:
    ready, ended = threading.Event(), threading.Event()
    found: list[Staffed] = []

    async def live() -> None:
        clock = Clock()
        async with make_app(folder / "home", clock) as app, opened(app) as desk:
            found.append(Staffed(app, clock, desk.origin, asyncio.get_running_loop()))
            ready.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(live(),), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield found[0]
    finally:
        ended.set()
        thread.join(20)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(autouse=True)
def _scripts(browser: Browser) -> None:
    browser.scripts(on=True)


@pytest.fixture(scope="module")
def axe() -> str:
    source = axe_source()
    if source is None:
        pytest.skip("axe-core is missing: npm install --prefix .venv/axe axe-core@4")
    return source


class Look:
    """Keeps a picture of each page and what is wrong with it."""

    def __init__(self, browser: Browser, axe: str) -> None:
        self.browser, self.axe, self.faults = browser, axe, list[str]()

    def at(self, name: str) -> None:
        self._at_every_width(name)
        self.browser.scripts(on=True)  # for unfolding and for the checker; the page was loaded without
        if self.browser.unfold():
            self._at_every_width(f"{name}-unfolded")
        for scheme in SCHEMES:
            for width in WIDTHS:
                self.browser.view(width, scheme)
                self.faults += [f"{name} at {width} {scheme}: {one}" for one in self.browser.serious(self.axe)]
        self.browser.scripts(on=False)
        self.browser.view(WIDTHS[1], SCHEMES[0])

    def _at_every_width(self, name: str) -> None:
        for scheme in SCHEMES:
            for width in WIDTHS:
                self.browser.view(width, scheme)
                self.browser.shot(f"desk-{name}-{width}-{scheme}")
                if (wider := self.browser.overflow()) > 0:
                    self.faults.append(f"{name} at {width}: {wider} px too wide")
                self.faults += [f"{name} at {width}: a part cannot be seen of {one}" for one in self.browser.clipped()]


async def _collect(running: Running) -> None:
    peers: list[FakePeer] = await running.enrol(6)
    await running.close_enrolment(peers)
    await running.go_to(running.opens)
    for peer in peers:
        assert await running.live.submit(sealed(running.live, peer.packet())) == "accepted"
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
    text = text.replace(said, 'description = "How many years ago you were born, as the office counts them, in full years"')
    return text.replace(query, 'query = "SELECT CASE WHEN age IN (17, 18) THEN 18 WHEN age > 89 THEN 89 ELSE age END FROM person"')


def test_from_proposal_to_report_without_scripts(browser: Browser, axe: str, tmp_path: Path) -> None:
    look = Look(browser, axe)
    with staffed(tmp_path) as desk:
        browser.scripts(on=False)
        browser.asked()
        browser.open(desk.link)
        assert browser.path == "" and "No study yet" in browser.text
        look.at("1-studies-empty")
        browser.press("New study")
        look.at("2-editor")
        _typed(browser, study_text().replace("epsilon = 2.0", "epsilon = 99"))
        browser.press("Check")
        assert "It cannot be published yet" in browser.text and "design.epsilon" in browser.text
        look.at("3-editor-faults")
        _typed(browser, _wordy(study_text()))
        browser.press("Publish …")
        assert "Publish “Income”?" in browser.text
        look.at("4-confirm")
        browser.press("Publish it now")
        assert "Now: enrolling" in browser.text
        look.at("5-study-enrolling")
        browser.find("#count").clear()
        browser.find("#count").send_keys("6")
        browser.type("#address", "127.0.0.1:8750")
        browser.press("Draw invites")
        links = [one.text for one in browser.driver.find_elements("css selector", ".invites code")]
        assert len({parse_invite(link).code for link in links}) == 6 and "Shown once" in browser.text
        look.at("6-invites")
        (live,) = desk.app.studies()
        desk.do(_collect(Running(desk.app, live, desk.clock, [parse_invite(link) for link in links])))
        browser.press("Back to the study")
        assert "Now: published" in browser.text and "final" in browser.text
        look.at("7-study-published")
        study = f"{desk.origin}/studies/{live.study.hex()}"
        for name in ("roster", "fingerprints"):
            browser.open(f"{study}/{name}")
            look.at(f"8-{name}")
        browser.open(study)
        people = tmp_path / "people.csv"
        people.write_text("age,sex,income\n" + "".join(f"{20 + n},{'Male' if n % 2 else 'Female'},{'>50K' if n % 3 else '<=50K'}\n" for n in range(60)))
        browser.find("#people").send_keys(str(people))
        browser.press("Make that report")
        assert "Errors by subgroup" in browser.text
        saved = tmp_path / "report.html"
        saved.write_text(browser.driver.page_source, "utf-8")
        browser.open(study)
        browser.press("Audit now")
        browser.open(study)
        browser.press("Make a forecast")
        _looked_again(browser, study)
        assert "everything published fits together" in browser.text and "with a test set" in browser.text
        look.at("7b-audit-and-forecast")
        browser.open(desk.origin + "/")
        look.at("7c-studies")
        browser.open(desk.link + "0")
        assert "Not done" in browser.text
        look.at("9b-link-refused")
        browser.open(desk.origin + "/")
        browser.find("header button").click()
        assert "igned out" in browser.text
        look.at("10-signed-out")
        assert not [url for url in browser.asked() if not url.startswith((desk.origin, "data:", "about:"))]
    browser.open(saved.as_uri())  # as a file: served, it is sandboxed, and the checker is a script
    browser.view(320, "light")
    assert min(one.size["width"] for one in browser.driver.find_elements("css selector", "[aria-label=features] code")) > 150
    look.at("9-report")
    assert not look.faults, "\n".join(look.faults)


def test_the_editor_checks_while_somebody_types(browser: Browser, tmp_path: Path) -> None:
    with staffed(tmp_path) as desk:
        browser.view(1280, "light")
        browser.open(desk.link)
        browser.press("New study")
        browser.find("textarea").send_keys("nonsense")
        wait = WebDriverWait(browser.driver, 15, poll_frequency=0.1)
        wait.until(lambda _: "It cannot be published yet" in browser.find("#linted").text)
        assert browser.driver.execute_script("return document.activeElement.tagName") == "TEXTAREA"
        logs = [one["message"] for one in browser.driver.get_log("browser")]
        assert not [one for one in logs if "Content Security Policy" in one or "Uncaught" in one], logs
