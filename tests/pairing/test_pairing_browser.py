"""A phone's way in real Chromium, scripts off, under the onion's name: link, studies, consent, file, pause, and no further."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from phone_proxy import phone_proxy
from phoning import HOST, ORIGIN, Phoned, phoned

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from browsing import SCHEMES, Browser, Living, axe_source, chromium, missing

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]
PHONE_WIDTHS = (320, 412)


@contextmanager
def phone_living(folder: Path, joined: bool = True) -> Iterator[tuple[Living, int]]:
    """A listener that lives in a thread of its own until the block ends, with one study that was joined, or whose link
    waits for an answer; and the port of its phone's proxy."""
    ready, ended = threading.Event(), threading.Event()
    found: list[tuple[Living, int]] = []

    async def live() -> None:
        async with phoned(folder, enter=False) as phone, phone_proxy(phone.socket) as port:
            if joined:
                await phone.peer.join(phone.village.invite, phone.village.manifest.epsilon)
            else:
                phone.site.invites[phone.village.study] = phone.village.invite
            found.append((Living(phone, asyncio.get_running_loop()), port))
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


def _look(browser: Browser, axe: str | None, name: str) -> list[str]:
    """The faults of a page at both widths, light and dark; a picture of each is kept."""
    faults = []
    for scheme in SCHEMES:
        for width in PHONE_WIDTHS:
            browser.view(width, scheme)
            browser.shot(f"phone-{name}-{width}-{scheme}")
            if (wider := browser.overflow()) > 0:
                faults.append(f"{name} at {width}: {wider} px too wide")
        if axe is not None:
            browser.scripts(True)  # the checker is a script; the pages have none
            faults += [f"{name} {scheme}: {one}" for one in browser.serious(axe)]
            browser.scripts(False)
    browser.view(412, "light")
    return faults


def _walk(browser: Browser, live: Living, folder: Path, axe: str | None) -> list[str]:
    phone = live.page
    assert isinstance(phone, Phoned)
    file = folder / "takeout.csv"
    file.write_text("age,cups,tired\n41,many,1\n")
    link = phone.gate.link(ORIGIN)
    browser.open(link)
    assert browser.path == "" and "Sleep and coffee" in browser.text and "Diagnosis" not in browser.text
    faults = _look(browser, axe, "1-studies")
    browser.press("Data")
    faults += _look(browser, axe, "2-data")
    browser.find("#file").send_keys(str(file))
    browser.press("Look at it")
    faults += _look(browser, axe, "3-preview")
    browser.type("#table", "person")
    browser.press("Import")
    assert "Imported: 1 row into person" in browser.text
    browser.press("Studies")
    browser.press("Sleep and coffee")
    faults += _look(browser, axe, "4-study")
    browser.press("Pause")
    assert "Paused until" in browser.text and live.call(lambda: phone.peer.paused_until(phone.village.study))
    browser.press("Go on")
    browser.open(f"{ORIGIN}/budget")
    assert "Do this on the computer itself" in browser.text
    faults += _look(browser, axe, "5-refused")
    browser.open(link)
    assert "used already" in browser.text
    live.call(lambda: phone.gate.revoke(1))
    browser.open(f"{ORIGIN}/data")
    assert "Not opened" in browser.text and "person" not in browser.text
    return faults


def test_a_phones_way_with_scripts_off(tmp_path: Path) -> None:
    axe = axe_source()
    with phone_living(tmp_path / "home") as (live, port), chromium(
        tmp_path / "profile", f"--proxy-server=socks5://127.0.0.1:{port}"
    ) as browser:
        browser.view(412, "light")
        browser.scripts(False)
        browser.asked()
        faults = _walk(browser, live, tmp_path, axe)
        asked = {address.partition("//")[2].partition("/")[0] for address in browser.asked()}
        assert faults == [] and asked <= {HOST, ""}


def test_a_waiting_link_is_read_on_a_phone(tmp_path: Path) -> None:
    axe = axe_source()
    with phone_living(tmp_path / "home", joined=False) as (live, port), chromium(
        tmp_path / "profile", f"--proxy-server=socks5://127.0.0.1:{port}"
    ) as browser:
        browser.scripts(False)
        browser.open(live.page.gate.link(ORIGIN))
        browser.press("Read what is asked")
        assert "Your true answer is sent in" in browser.text and "Your own answer" not in browser.text
        assert "nothing can be agreed to from a phone" in browser.text
        assert _look(browser, axe, "6-consent") == []
