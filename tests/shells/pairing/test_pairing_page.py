"""The computer's page on pairing: what it shows, and that its buttons reach the process that has pairing on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from anon.errors import Refused
from peer.pairing.phones import PhoneRecord
from peer.pairing.state import PairingState, folder_of
from tests.support.visiting import Visited, visited


def _state(page: Visited, revoked: bool = False) -> PairingState:
    began = page.aggregator.clock()
    return PairingState(began, began + 900, (PhoneRecord(1, "phone", began, began, revoked), PhoneRecord(2, "tablet")))


async def test_without_pairing_the_page_says_how_it_is_switched_on(tmp_path: Path) -> None:
    async with visited(tmp_path) as page:
        assert 'href="/phones"' in (await page.get("/data")).text
        got = await page.get("/phones")
        assert "Pairing is off" in got.words and "anonml peer pair" in got.words and "/phones/off" not in got.text
        for action in ("off", "revoke"):
            form = (await page.get("/data")).form("/data/upload") | {"number": "1"}
            assert "there is nothing to end or revoke" in (await page.post(f"/phones/{action}", form)).words


async def test_a_phone_is_shut_out_and_pairing_switched_off_by_a_button(tmp_path: Path) -> None:
    async with visited(tmp_path) as page:
        folder = folder_of(page.home)

        async def elsewhere(ready: asyncio.Event) -> None:
            """The process that has pairing on: it does what is wished."""
            with folder.held():
                folder.write(_state(page))
                ready.set()
                while not folder.wishes().off:
                    if folder.wishes().revoke:
                        folder.write(_state(page, revoked=True))
                    await asyncio.sleep(0.02)

        ready = asyncio.Event()
        running = asyncio.create_task(elsewhere(ready))
        await ready.wait()
        shown = await page.get("/phones")
        assert "Pairing is on until" in shown.words and "Not come yet" in shown.words
        assert shown.form("/phones/revoke")["number"] == "1"
        got = await page.submit("/phones", "/phones/revoke")
        assert (
            "This phone is shut out." in got.words and "Revoked" in got.words and folder.state() == _state(page, True)
        )
        got = await page.submit("/phones", "/phones/off")
        assert "Pairing is off." in got.words and "Last time: phone (revoked), tablet (did not come)" in got.words
        await running


async def test_a_number_that_is_none_is_refused(tmp_path: Path) -> None:
    async with visited(tmp_path) as page:
        folder = folder_of(page.home)
        with folder.held():
            folder.write(_state(page))
            form = (await page.get("/phones")).form("/phones/revoke")
            assert "expected a whole number" in (await page.post("/phones/revoke", form | {"number": "../x"})).words
            assert [one.name for one in folder.path.iterdir() if one.name.startswith("wish")] == []
        with pytest.raises(Refused):
            folder.wish_off()
