"""A phone's way in real Chromium, scripts off, under the onion's name: link, studies, consent, file, pause, and no
further."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.shells.pairing.phone_proxy import phone_proxy
from tests.support.phoning import HOST, ORIGIN, Phoned, phoned

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from tests.support.browsing import Browser, Living, Looker, axe_source, chromium, in_a_thread, missing

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing())]
PHONE_WIDTHS = (320, 412)


@asynccontextmanager
async def _phone(folder: Path, joined: bool) -> AsyncIterator[tuple[Phoned, int]]:
    async with phoned(folder, enter=False) as phone, phone_proxy(phone.socket) as port:
        if joined:
            await phone.peer.join(phone.aggregator.invite, phone.aggregator.manifest.epsilon)
        else:
            phone.site.invites[phone.aggregator.study] = phone.aggregator.invite
        yield phone, port


@contextmanager
def phone_living(folder: Path, joined: bool = True) -> Iterator[tuple[Living, int]]:
    """A listener that lives in a thread of its own until the block ends, with one study that was joined, or whose link
    waits for an answer; and the port of its phone's proxy."""
    with in_a_thread(_phone(folder, joined)) as (loop, (phone, port)):
        yield Living(loop, phone), port


def _looker(browser: Browser) -> Looker:
    return Looker(browser, axe_source(), "phone-", PHONE_WIDTHS, scripts=False)


def _walk(browser: Browser, live: Living, folder: Path, looker: Looker) -> None:
    phone = live.page
    assert isinstance(phone, Phoned)
    file = folder / "takeout.csv"
    file.write_text("age,cups,tired\n41,many,1\n")
    link = phone.gate.link(ORIGIN)
    browser.open(link)
    assert browser.path == "" and "Sleep and coffee" in browser.text and "Diagnosis" not in browser.text
    looker.look("1-studies")
    browser.press("Data")
    looker.look("2-data")
    browser.find("#file").send_keys(str(file))
    browser.press("Look at it")
    looker.look("3-preview")
    browser.type("#table", "person")
    browser.press("Import")
    assert "Imported: 1 row into “person”" in browser.text
    browser.press("Studies")
    browser.press("Sleep and coffee")
    looker.look("4-study")
    browser.press("Pause")
    assert "Paused until" in browser.text and live.call(lambda: phone.peer.paused_until(phone.aggregator.study))
    browser.press("Go on")
    browser.open(f"{ORIGIN}/budget")
    assert "Do this on the computer itself" in browser.text
    looker.look("5-refused")
    browser.open(link)
    assert "used already" in browser.text
    live.call(lambda: phone.gate.revoke(1))
    browser.open(f"{ORIGIN}/data")
    assert "Not opened" in browser.text and "person" not in browser.text


def test_a_phones_way_with_scripts_off(tmp_path: Path) -> None:
    with phone_living(tmp_path / "home") as (live, port), chromium(
        tmp_path / "profile", f"--proxy-server=socks5://127.0.0.1:{port}"
    ) as browser:
        browser.view(412, "light")
        browser.scripts(False)
        browser.asked()
        looker = _looker(browser)
        _walk(browser, live, tmp_path, looker)
        asked = {address.partition("//")[2].partition("/")[0] for address in browser.asked()}
        assert looker.faults == [] and asked <= {HOST, ""}


def test_a_waiting_link_is_read_on_a_phone(tmp_path: Path) -> None:
    with phone_living(tmp_path / "home", joined=False) as (live, port), chromium(
        tmp_path / "profile", f"--proxy-server=socks5://127.0.0.1:{port}"
    ) as browser:
        browser.scripts(False)
        browser.open(live.page.gate.link(ORIGIN))
        browser.press("Read what is asked")
        assert "Of people with your answer" in browser.text and "Your own answer" not in browser.text
        assert "nothing can be agreed to from a phone" in browser.text
        looker = _looker(browser)
        looker.look("6-consent")
        assert looker.faults == []
