"""Every QR code of the pages, read again at the sizes that styles give it, and from what Chromium prints."""

from __future__ import annotations

import base64
import html
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("zxingcpp", reason="zxing-cpp is missing: install the extra `qr`")

from aggregator.desk.link import kept_link
from anon.kit.page.rendering import qr_drawing
from anon.text.qr import qr_svg
from anon.transparency.fingerprint import study_code
from anon.wire.onion_address import onion_host
from peer.web.rendering import code
from tests.support.browsing import Browser, in_a_thread, living, missing
from tests.support.desk_browser import Desk, opened
from tests.support.drawn_codes import codes_in, leaves, scaled
from tests.support.world import in_memory, study_text

ROOT = Path(__file__).resolve().parents[3]
ONION = f"{onion_host(bytes(range(32)))}:80"
HERE = "127.0.0.1:8750"
LINK = f"anonml://{ONION}/{'b1' * 32}?key={'c2' * 32}&code={'d3' * 16}"
CARD = round(4.2 / 2.54 * 150)
"""A card's code on paper, in dots of a plain printer; on a screen it is wider."""
printed = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.skipif(
        shutil.which("pdftoppm") is None,
        reason="pdftoppm is missing: install it (Debian: apt-get install poppler-utils)",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("draw", [qr_svg, qr_drawing, code])
@pytest.mark.parametrize("width", [CARD, 176, 412, 1280])
def test_a_code_is_whole_at_any_width(draw: object, width: int) -> None:
    assert callable(draw)
    text = LINK if width >= CARD else study_code(b"\1" * 32)
    drawing = re.search(r"<svg.*?</svg>", str(draw(text)), re.DOTALL)
    assert drawing is not None and codes_in(scaled(drawing[0], width)) == [text]


def test_one_module_alone_makes_codes() -> None:
    """A code from elsewhere could be one that cannot be scaled."""
    makers = [
        file.relative_to(ROOT).as_posix()
        for side in ("anon", "peer", "aggregator", "examples", "bundle")
        for file in sorted((ROOT / side).rglob("*.py"))
        if re.search(r"^\s*(import|from) segno\b", file.read_text("utf-8"), re.MULTILINE)
    ]
    assert makers == ["anon/text/qr.py"]


@asynccontextmanager
async def _desk(home: Path, admission: str) -> AsyncIterator[Desk]:
    async with in_memory(home, study_text(admission=admission)) as running, opened(running.app, running) as desk:
        with running.app.home.place(HERE):
            yield desk


def _print(browser: Browser, folder: Path) -> list[str]:
    """The texts of all codes on the paper, A4, that the page comes out on."""
    size = {"paperWidth": 8.27, "paperHeight": 11.69}
    pdf = base64.b64decode(browser.driver.execute_cdp_cmd("Page.printToPDF", size)["data"])
    return sorted(text for leaf in leaves(pdf, folder) for text in codes_in(leaf))


def _links(browser: Browser) -> list[str]:
    source = html.unescape(re.sub(r"<[^>]*>", "", browser.driver.page_source))
    return sorted(set(re.findall(r"anonml peer open '(anonml://[^']+)'", source)))


@pytest.mark.parametrize("admission", ["invite", "open"])
class TestTheDesksPaper:
    pytestmark = printed

    def test_has_a_readable_code_for_each_link(self, tmp_path: Path, browser: Browser, admission: str) -> None:
        """Cards for each person, or one sheet for the class; and the sheet of the fingerprints."""
        with in_a_thread(_desk(tmp_path / "home", admission)) as (_, desk):
            browser.open(kept_link(desk.app.home.path) or "")
            study = f"{desk.origin}/studies/{desk.app.studies()[0].study.hex()}"
            browser.open(f"{study}/class")
            if admission == "invite":
                browser.type("#count", "7")
                browser.type("#address", HERE)
                browser.press("Draw a card for each")
            links = _links(browser)
            assert len(links) == (7 if admission == "invite" else 1), browser.text
            assert _print(browser, tmp_path) == links
            browser.open(f"{study}/fingerprints")
            (tmp_path / "prints").mkdir()
            assert _print(browser, tmp_path / "prints") == [browser.find("figcaption code").text]


class TestTheOwnersPaper:
    pytestmark = printed

    def test_has_the_studys_code(self, tmp_path: Path, browser: Browser) -> None:
        with living(tmp_path / "home") as live:
            browser.open(live.page.server.link)
            browser.open(live.page.server.address + "/start/connect")
            browser.type("#link", live.page.aggregator.invite.link())
            browser.press("Continue")
            browser.open(f"{live.page.server.address}/invite/{live.page.aggregator.study.hex()}")
            browser.unfold()
            assert _print(browser, tmp_path) == [study_code(live.page.aggregator.study)]
