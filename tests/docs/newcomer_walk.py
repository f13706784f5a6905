"""A student with a fresh machine, an invite link and a file: from `pipx install` to a sent packet."""

from __future__ import annotations

import json
import re
from pathlib import Path
from subprocess import Popen

from attrs import define, field

from tests.docs.pictures import OUT, WIDTH, cut, terminal
from tests.docs.walking import Steps, until
from tests.support.browsing import Browser
from tests.support.installing import Installed, pipx_install

COLUMNS = "hours,forum,left_course"
TALL = 900


@define
class Newcomer:
    """`peer open` stays in the terminal; the page is in the browser."""

    home: Path
    members: int
    steps: Steps = field(factory=Steps)
    page: Popen[bytes] | None = None
    said: list[tuple[str, str]] = field(factory=list)

    def install(self, wheel: Path) -> Installed:
        """Step 1."""
        self.steps.done.append("pipx install")
        installed = pipx_install(self.home, wheel)
        self.said.append((f"pipx install ./{wheel.name}", installed.run("anonml", "--version").strip()))
        return installed

    def take_part(self, installed: Installed, link: str, browser: Browser) -> None:
        """Steps 2 to 5."""
        browser.view(WIDTH, "light", TALL)
        browser.open(self._opened(installed, link))
        text = browser.text
        assert browser.path == "start/data", text[:300]
        order = ("Who asks", "Where your file comes from", "The study reads these columns", "A file of yours")
        assert sorted(order, key=text.index) == list(order), text
        file = self.home / "my-course.csv"
        file.write_text(f"{COLUMNS}\n31,often,0\n")
        browser.find("#file").send_keys(str(file))
        self._picture(browser, "step-3-choose-a-file", (0, 800))
        self.steps.press(browser, "Look at it")
        browser.type("#minimum_cohort", str(self.members))
        assert "31" in browser.text and "often" in browser.text
        self._picture(browser, "step-4-look-at-it", (0, 1500))
        self.steps.press(browser, "Import, and read what is asked")
        self._consent(browser)
        self.steps.press(browser, "Yes, take part")
        assert "You take part" in browser.text, browser.text[:500]

    def sent(self, installed: Installed, browser: Browser) -> dict[str, object]:
        """Waits until the packet has left and its receipt is there."""
        until(lambda: self._receipts(installed), "a packet is acknowledged")
        browser.open(browser.driver.current_url)
        self._picture(browser, "step-6-sent", (0, 620))
        (receipt,) = self._receipts(installed)
        return receipt

    def _receipts(self, installed: Installed) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(installed.run("anonml", "peer", "receipts", "--json"))
        assert all(one["status"] not in ("refused", "given-up", "missed", "stopped") for one in found), found
        return [one for one in found if one["status"] in ("delivered", "included")]

    def _opened(self, installed: Installed, link: str) -> str:
        """The address that the program opens in the browser."""
        browser, opened, log = self.home / "browser", self.home / "opened", self.home / "page.log"
        browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new && mv {opened}.new {opened}\n')
        browser.chmod(0o700)
        words = ("anonml", "peer", "open", link)
        self.page = self.steps.start(installed, *words, log=log, browser=str(browser))
        until(opened.exists, "the page opens in the browser")
        answered = re.sub(r"token=\S+", "token=...", log.read_text("utf-8")).strip()
        self.said.append((f"anonml peer open '{link[:24]}...'", answered))
        return opened.read_text("utf-8")

    def _consent(self, browser: Browser) -> None:
        decide, address = browser.find("section.decide").rect, browser.find("dd .mono.quiet").rect
        assert "Of people with your answer, " in browser.text
        bottom = int(decide["y"] + decide["height"]) + 24
        # The address is of this test's own server: no reader has one like it.
        above, below = int(address["y"]), int(address["y"] + address["height"])
        self._picture(browser, "step-5-read-and-decide", (0, above), (below, bottom))

    def _picture(self, browser: Browser, name: str, *parts: tuple[int, int]) -> None:
        cut(browser.shot("last", OUT), name, *parts)

    def picture_of_terminal(self, browser: Browser) -> None:
        """Steps 1 and 2, as they stood in the terminal."""
        file = OUT / "terminal.html"
        OUT.mkdir(exist_ok=True)
        file.write_text(terminal(self.said), "utf-8")
        browser.view(WIDTH, "light", 160)
        browser.open(file.as_uri())
        self._picture(browser, "step-1-and-2-install-and-open", (0, 160))
