"""A link out of a picture: photos and screenshots of the code are read, everything else is refused with what to do."""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Callable

import aiohttp
import pytest
import segno

pytest.importorskip("zxingcpp", reason="zxing-cpp is missing: install the extra `qr`")

from PIL import Image, ImageFile, ImageFilter

from anon.errors import Malformed, Refused
from peer.web import qr_reader as codes
from peer.web.qr_reader import text_in_picture
from tests.support.visiting import Got, Visited


@pytest.fixture(autouse=True)
def pictures_are_read_as_in_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """WeasyPrint, which a peer never loads, tells Pillow in this process to take pictures that are cut off for
    whole."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", False)


LINK = f"anonml://{'a' * 56}.onion:80/{'b1' * 32}?key={'c2' * 32}&code={'d3' * 16}"


def code(text: str = LINK, scale: int = 5) -> Image.Image:
    written = io.BytesIO()
    segno.make(text, error="m").save(written, kind="png", scale=scale, border=4)
    return Image.open(io.BytesIO(written.getvalue())).convert("RGB")


def file(picture: Image.Image, form: str = "PNG") -> bytes:
    written = io.BytesIO()
    picture.save(written, form)
    return written.getvalue()


def _slide() -> Image.Image:
    """A dark slide with the code in a corner, seen from the side, blurred a little, with a camera's noise."""
    slide = Image.new("RGB", (1600, 1000), (30, 40, 60))
    slide.paste(code(scale=6), (900, 350))
    seen = slide.transform(
        slide.size, Image.Transform.QUAD, (60, 40, 0, 1000, 1560, 930, 1600, 20), Image.Resampling.BICUBIC
    )
    seen = seen.rotate(7, expand=True, fillcolor=(90, 90, 90)).filter(ImageFilter.GaussianBlur(1.2))
    noise = random.Random(7)
    grain = Image.frombytes("L", seen.size, noise.randbytes(seen.width * seen.height)).convert("RGB")
    return Image.blend(seen, grain, 0.12)


READABLE: dict[str, Callable[[], bytes]] = {
    "a screenshot": lambda: file(code()),
    "small": lambda: file(code(scale=2)),
    "a photo of a slide": lambda: file(_slide(), "JPEG"),
    "webp": lambda: file(code(), "WEBP"),
    "upside down": lambda: file(code().rotate(180)),
    "light on dark": lambda: file(Image.eval(code(), lambda value: 255 - value)),
    "a very large photo": lambda: file(code().resize((5000, 5000)), "JPEG"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READABLE)
def test_a_picture_of_the_code_is_read(name: str) -> None:
    assert text_in_picture(READABLE[name]()) == LINK


def _two() -> Image.Image:
    both = Image.new("RGB", (900, 450), "white")
    both.paste(code(scale=4), (0, 0))
    both.paste(code(LINK + "0", scale=4), (450, 0))
    return both


UNREADABLE: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "no picture was chosen"),
    "no picture": (lambda: b"anonml://", "not a picture"),
    "no code": (lambda: file(Image.new("RGB", (300, 300), "white")), "no QR code was found"),
    "two codes": (lambda: file(_two()), "several different codes"),
    "cut off": (lambda: file(code())[:700], "not a picture"),
    "another kind of picture": (lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),
    "a bomb": (lambda: file(Image.new("1", (20_000, 20_000))), "not a picture"),
    "too many pixels": (lambda: file(Image.new("1", (9_000, 9_000))), "million pixels"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNREADABLE)
def test_anything_else_says_what_to_do(name: str) -> None:
    make, says = UNREADABLE[name]
    with pytest.raises((Malformed, Refused), match=says) as caught:
        text_in_picture(make())
    assert "\n" not in str(caught.value)


async def _send(page: Visited, picture: bytes, **changed: str) -> Got:
    form = (await page.get("/start/connect")).form("/start/picture") | changed
    data = aiohttp.FormData(quote_fields=False)
    for key, value in form.items():
        data.add_field(key, value)
    data.add_field("picture", picture, filename="slide.png", content_type="image/png")
    return await page.post("/start/picture", {}, data)


async def test_the_wizard_goes_on_from_a_picture_and_keeps_none(page: Visited) -> None:
    link = page.aggregator.invite.link()
    went_on = await _send(page, file(code(link)))
    assert went_on.status == 200 and page.aggregator.study in page.server.site.invites
    assert page.server.site.invites[page.aggregator.study].link() == link
    assert not [one for one in page.home.path.rglob("*") if one.is_file() and b"PNG" in one.read_bytes()[:8]]


@pytest.mark.slow
async def test_another_code_or_a_form_of_another_page_is_refused(page: Visited) -> None:
    refused = await _send(page, file(code("https://example.org/")))
    assert (
        refused.status == 400
        and "not an AnonML link" in refused.words
        and "/start/connect" in refused.attribute("href")
    )
    assert (await _send(page, file(code(page.aggregator.invite.link())), form_token="0" * 64)).status == 400
    assert (await _send(page, b"x" * 20_000 + b"\0" * codes.LARGEST)).status == 400
    assert (await page.post("/start/picture", (await page.get("/start/connect")).form("/start/picture"))).status == 400
    assert page.server.site.invites == {}


def test_without_the_extra_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "find_spec", lambda name: None)
    with pytest.raises(Refused, match=r"paste the link, or `pipx install --force .*qr"):
        text_in_picture(b"x")
    assert "PIL" not in codes.__dict__ and sys.modules.get("peer.web.qr_reader") is codes
