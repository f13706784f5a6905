"""Chromium on a page under test: driven through chromedriver, with its own profile, ended by its own process."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, field, frozen
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.visiting import Visited, visited

T = TypeVar("T")
OUT = Path(__file__).parent / "out"
ROOT = Path(__file__).resolve().parents[2]
AXE_LOCK, AXE_HOME = ROOT / "locks" / "axe", ROOT / ".venv" / "axe"
AXE = AXE_HOME / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS, SCHEMES, PRINT = (320, 412, 1280), ("light", "dark"), "print"
PAPER = 718
"""The pixels across of a sheet of A4 between margins of a centimetre, at 96 to the inch."""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
LEVELS = ("wcag2a", "wcag2aa", "wcag2aaa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
"""Of the checker's rules: all, those included that it leaves out by itself."""
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)


def missing() -> str:
    """A sentence about the browser's part that is not installed here, or an empty text."""
    if not any(map(shutil.which, CHROMIUM)):
        return "chromium is missing: install it (Debian: apt-get install chromium chromium-driver)"
    return (
        ""
        if shutil.which("chromedriver")
        else "chromedriver is missing: install it (Debian: apt-get install chromium-driver)"
    )


def axe_source() -> str | None:
    """The accessibility checker's script at the locked version, fetched by npm once; None where that cannot be."""
    if not _is_locked() and shutil.which("npm"):
        shutil.rmtree(AXE_HOME, ignore_errors=True)
        shutil.copytree(AXE_LOCK, AXE_HOME)
        words = ["npm", "ci", "--prefix", str(AXE_HOME), "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(words, capture_output=True, check=False, timeout=120)
    return AXE.read_text("utf-8") if _is_locked() else None


def _is_locked() -> bool:
    """True if the script is there and was fetched by today's lock; npm compared it with the lock's digest then."""
    lock = AXE_HOME / "package-lock.json"
    return AXE.exists() and lock.exists() and lock.read_bytes() == (AXE_LOCK / lock.name).read_bytes()


@define
class Looped:
    """The loop of a server in a thread of its own; the test's thread drives a browser."""

    _loop: asyncio.AbstractEventLoop

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Something of the server's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def call(self, work: Any) -> Any:
        """The same for a plain function."""

        async def called() -> Any:
            return work()

        return self.do(called())


@contextmanager
def in_a_thread(server: AbstractAsyncContextManager[T]) -> Iterator[tuple[asyncio.AbstractEventLoop, T]]:
    """A server in a thread of its own until the block ends: its loop, and what it is entered with."""
    ready, ended = threading.Event(), threading.Event()
    entered: list[tuple[asyncio.AbstractEventLoop, T]] = []

    async def live() -> None:
        async with server as opened:
            entered.append((asyncio.get_running_loop(), opened))
            ready.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(live(),), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield entered[0]
    finally:
        ended.set()
        thread.join(20)


@define
class Living(Looped):
    """A visited page that is served."""

    page: Visited


@contextmanager
def living(folder: Path, **options: Any) -> Iterator[Living]:
    """A page that is served until the block ends."""
    with in_a_thread(visited(folder, enter=False, **options)) as (loop, page):
        yield Living(loop, page)


@frozen
class Browser:
    """One window."""

    driver: webdriver.Chrome
    _seen: list[str] = field(factory=list)

    def view(self, width: int, scheme: str, height: int = 900) -> None:
        """A window so wide, whose owner prefers light or dark; or a sheet of paper, which browsers print as light."""
        phone = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        printed = scheme == PRINT
        wish = {"features": [{"name": "prefers-color-scheme", "value": "light" if printed else scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print" if printed else "screen", **wish})

    def scripts(self, on: bool) -> None:
        """Let pages run scripts, or forbid it."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not on})

    def open(self, address: str) -> None:
        """Go there, and past waiting pages."""
        self.driver.get(address)
        self.settle()

    def settle(self) -> None:
        """Until no waiting page is shown."""
        wait = WebDriverWait(self.driver, 60, poll_frequency=0.05)
        wait.until(lambda driver: not driver.find_elements(By.CSS_SELECTOR, "meta[http-equiv=refresh]"))

    @property
    def text(self) -> str:
        """The visible text of the page, read again when the next page just replaced this one."""
        wait = WebDriverWait(self.driver, 20, poll_frequency=0.05, ignored_exceptions=[StaleElementReferenceException])
        said: str = wait.until(lambda driver: [driver.find_element(By.TAG_NAME, "body").text])[0]
        return said

    @property
    def path(self) -> str:
        return self.driver.current_url.partition("//")[2].partition("/")[2].partition("?")[0]

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def until_seen(self, selector: str) -> None:
        """Until a page that follows by itself has this."""
        wait = WebDriverWait(self.driver, 60, poll_frequency=0.05)
        wait.until(lambda driver: driver.find_elements(By.CSS_SELECTOR, selector))
        self.settle()

    def press(self, words: str) -> None:
        """The button or link that says so."""
        found = [
            one
            for one in self.driver.find_elements(By.CSS_SELECTOR, "main button, main a, nav a")
            if one.text.strip() == words and one.is_displayed()
        ]
        assert found, f"no button {words!r} on {self.path}: {self.text[:300]}"
        self.follow(found[0])

    def follow(self, element: WebElement) -> None:
        """Click, and wait for the page that it leads to. A click beside the element, whose page just moved, is
        repeated."""
        before = self.find("html").id
        element.click()
        if self.driver.switch_to.active_element != element and self._at(before):
            element.click()
        wait = WebDriverWait(self.driver, 60, poll_frequency=0.05)
        try:
            wait.until(lambda driver: not self._at(before))
        except TimeoutException:
            refused = [one.get_attribute("name") for one in self.driver.find_elements(By.CSS_SELECTOR, "input:invalid")]
            focused = self.driver.switch_to.active_element.text
            said = (
                f"no page followed {self.path}; in focus: {focused[:80]!r}, refused: {refused}, asked for: "
                f"{self.asked()[-3:]}"
            )
            raise AssertionError(said) from None
        self.settle()

    def _at(self, page: str) -> bool:
        """True while the page with this root is shown."""
        return self.find("html").id == page

    def type(self, selector: str, words: str) -> None:
        """Into a field, in place of what is in it. A fold that it lies in is opened first."""
        box = self.find(selector)
        for folded in box.find_elements(By.XPATH, "ancestor::details[not(@open)]/summary"):
            folded.click()
        box.clear()
        box.send_keys(words)

    def overflow(self) -> int:
        """How many pixels the page is wider than the window."""
        return int(self.driver.execute_script(
            "return Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - window.innerWidth"
        ))

    def unfold(self) -> bool:
        """Open what is folded away, as somebody would who reads everything; whether there was anything."""
        return bool(self.driver.execute_script(
            "const folded = document.querySelectorAll('details:not([open])'); for (const one of folded) one.open = "
            "true;"
            "return folded.length"
        ))

    def clipped(self) -> list[str]:
        """Unreadable elements: wider than a box that does not scroll, or cells squeezed to a letter or two a line."""
        found: list[str] = self.driver.execute_script(
            "return [...document.querySelectorAll('main *, header *')].filter(e => e.clientWidth && "
            "(e.tagName === 'TD' && e.clientWidth < 64 && e.textContent.trim().length > 12 || e.scrollWidth > "
            "e.clientWidth + 1) && !e.closest('svg, [class*=unseen]') && (e.tagName === 'TD' || !e.closest('.wide')) "
            "&& "
            "!['INPUT', 'TEXTAREA', 'SELECT'].includes(e.tagName) && getComputedStyle(e).display !== 'inline')"
            ".map(e => e.tagName + '.' + e.className + ': ' + e.textContent.trim().slice(0, 60))"
        )
        return found

    def badly_printed(self) -> list[str]:
        """Of a sheet of paper: menus, which nothing follows there, and folds that nothing opens there."""
        found: list[str] = self.driver.execute_script(
            "const menus = [...document.querySelectorAll('nav')].filter(e => e.checkVisibility());"
            "const folded = [...document.querySelectorAll('details:not([open]):not(form details) > :not(summary)')];"
            "const unseen = folded.filter(e => e.parentElement.checkVisibility() && !e.checkVisibility());"
            "return [...menus, ...unseen].map(e => e.outerHTML.slice(0, 90))"
        )
        return found

    def shot(self, name: str, folder: Path = OUT) -> Path:
        """Keep a picture of the whole page."""
        folder.mkdir(exist_ok=True)
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1}
        command = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        file = folder / f"{name}.png"
        file.write_bytes(base64.b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", command)["data"]))
        return file

    def asked(self) -> list[str]:
        """Every address that the window asked for since the last look."""
        found = []
        for entry in self.driver.get_log("performance"):  # type: ignore[no-untyped-call]
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def violations(self, axe: str) -> list[str]:
        """The violations that axe finds, of every level, in words."""
        if not self.driver.execute_script("return Boolean(window.axe)"):
            self.driver.execute_script(axe)
        found = self.driver.execute_async_script(
            "const [levels, done] = arguments; const asked = {type: 'tag', values: levels};"
            "const added = Object.fromEntries(axe.getRules(levels).map(one => [one.ruleId, {enabled: true}]));"
            "axe.run(document, {resultTypes: ['violations'], runOnly: asked, rules: added})"
            ".then(r => done(r.violations))",
            LEVELS,
        )
        return [
            f"{one['id']} ({one['impact']}): {[node['html'][:120] for node in one['nodes'][:3]]}"
            for one in found
        ]


class Looker:
    """Keeps a picture of each page at every width, light and dark, and what is wrong with it.

    `axe`: the checker's script, if there is one; it checks the narrowest light and the widest dark view. `scripts`:
    whether pages are looked at with scripts on; they are on for unfolding and for the checker in any case.
    """

    def __init__(
        self,
        browser: Browser,
        axe: str | None,
        prefix: str = "",
        widths: Sequence[int] = WIDTHS,
        scripts: bool = True,
        schemes: Sequence[str] = SCHEMES,
    ) -> None:
        self.browser, self.axe, self.prefix, self.scripts = browser, axe, prefix, scripts
        self.views = [(width, scheme) for scheme, width in product(schemes, widths)]
        self.sheets = [*self.views, (PAPER, PRINT)]
        self.faults: list[str] = []

    def look(self, name: str) -> None:
        """At the page that is open; it was loaded before."""
        self._at_every_width(name)
        self.browser.scripts(True)
        if self.browser.unfold():
            self._at_every_width(f"{name}-unfolded")
        for width, scheme in dict.fromkeys((self.views[0], self.views[-1])) if self.axe is not None else ():
            self.browser.view(width, scheme)
            self.faults += [f"{name} at {width} {scheme}: {fault}" for fault in self.browser.violations(self.axe)]
        self.browser.scripts(self.scripts)
        self.browser.view(412, "light")

    def _at_every_width(self, name: str) -> None:
        for width, scheme in self.sheets:
            self.browser.view(width, scheme)
            self.browser.shot(f"{self.prefix}{name}-{width}-{scheme}")
            if (wider := self.browser.overflow()) > 0:
                self.faults.append(f"{name} at {width}: {wider} px too wide")
            self.faults += [f"{name} at {width}: a part cannot be seen of {part}" for part in self.browser.clipped()]
            if scheme == PRINT:
                self.faults += [f"{name} on paper: {part}" for part in self.browser.badly_printed()]


@contextmanager
def chromium(profile: Path, *flags: str) -> Iterator[Browser]:
    """A window with a fresh profile until the block ends, started with more flags."""
    options = Options()
    options.binary_location = next(filter(None, map(shutil.which, CHROMIUM)))
    for flag in (*FLAGS, f"--user-data-dir={profile}", *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})  # type: ignore[no-untyped-call]
    service = Service(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.set_page_load_timeout(30)
        yield Browser(driver)
    finally:
        driver.quit()
        service.stop()
