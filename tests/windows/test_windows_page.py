"""The owner's page served by Windows' Python, and walked in Chromium on this system: a study in four languages, and a
yes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from peer.web.languages import COOKIE, NAMES
from tests.docs.walking import until
from tests.support.browsing import Browser, chromium, missing
from tests.support.peer_command import serving
from tests.windows.wine import CODE_PAGE, ENVIRONMENT, LONGEST, PYTHON, ROOT, WINE, needs_windows, of_windows

pytestmark = [
    pytest.mark.process, pytest.mark.browser, pytest.mark.timeout(1800), needs_windows,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
PROGRAM = "import anonml, tests.support.wakeful; anonml.main()"


@contextmanager
def page_of(home: Path) -> Iterator[str]:
    """The link that a peer on Windows prints for its page, until the block ends."""
    words = [WINE, PYTHON, "-c", PROGRAM, "peer", "open", "--no-browser", "--home", of_windows(home)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=ROOT, env=ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as peer:
        assert peer.stdout is not None
        try:
            for line in peer.stdout:
                if found := re.search(r"http://127\.0\.0\.1:\d+/\S+", line.decode(CODE_PAGE)):
                    yield found[0]
                    return
            pytest.fail("no link was printed")
        finally:
            peer.kill()


def consents(browser: Browser) -> dict[str, str]:
    """The words of the page that asks for consent, by language."""
    told, here = {}, browser.driver.current_url
    for code in NAMES:
        browser.driver.add_cookie({"name": COOKIE, "value": code})
        browser.open(here)
        assert browser.find("html").get_attribute("lang") == code
        told[code] = browser.text
    browser.driver.add_cookie({"name": COOKIE, "value": "en"})
    browser.open(here)
    return told


def test_a_page_that_windows_serves_is_walked_to_a_yes_and_asks_in_four_languages(tmp_path: Path) -> None:
    file = tmp_path / "person.csv"
    file.write_bytes("age,cups,tired\r\n31,many,1\r\n".encode(CODE_PAGE))
    with serving() as served, page_of(tmp_path / "Änne 学生") as link, chromium(tmp_path / "profile") as browser:
        browser.open(link)
        browser.press("Begin")
        browser.type("#link", served.link)
        browser.press("Continue")
        browser.find("#file").send_keys(str(file))
        browser.press("Look at it")
        browser.type("#minimum_cohort", "2")
        browser.press("Import, and read what is asked")
        told = consents(browser)
        assert len(NAMES) == 4 == len(set(told.values()))
        assert all("UTC" in text and "Standard Time" not in text for text in told.values())
        browser.press("Yes, take part")
        assert "You take part" in browser.text
        until(lambda: served.aggregator.sent("enrol"), "the peer enrols", LONGEST)
