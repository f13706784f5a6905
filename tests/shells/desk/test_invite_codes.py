"""An invite as a QR code, in the terminal and on the desk's page: a peer's page reads the link out of a picture of
it."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("zxingcpp", reason="zxing-cpp is missing: install the extra `qr`")

from PIL import Image
from typer.testing import CliRunner

from aggregator.cli.main import app as commands
from aggregator.cli.study import app as studies
from anon.kit.terminal import qr
from anon.wire.invite import parse_invite
from peer.web.qr_reader import text_in_picture
from tests.support.clock import Clock
from tests.support.desk_browser import opened
from tests.support.drawn_codes import codes_in, scaled
from tests.support.world import begin, make_app, study_text

PARTS = {" ": (0, 0), "\N{UPPER HALF BLOCK}": (1, 0), "\N{LOWER HALF BLOCK}": (0, 1), "\N{FULL BLOCK}": (1, 1)}
ONION = f"anonml://{'a' * 56}.onion:80/{'b1' * 32}?key={'c2' * 32}&code={'d3' * 16}"


def seen(lines: list[str]) -> str:
    """The text in the QR code that these lines of a terminal draw, read from a picture of them."""
    rows = [[PARTS[one][half] for one in line] for line in lines for half in (0, 1)]
    picture = Image.frombytes("L", (len(rows[0]), len(rows)), bytes(0 if dark else 255 for row in rows for dark in row))
    framed = Image.new("L", (picture.width + 20, picture.height + 20), 200)
    framed.paste(picture, (10, 10))
    written = io.BytesIO()
    framed.resize((framed.width * 6, framed.height * 6), Image.Resampling.NEAREST).save(written, "PNG")
    return text_in_picture(written.getvalue())


@pytest.mark.slow
def test_the_terminal_draws_each_link_and_says_it(tmp_path: Path) -> None:
    home, run = str(tmp_path / "home"), CliRunner()
    for words in (
        ["init", str(tmp_path / "study.toml")],
        ["publish", str(tmp_path / "study.toml"), "--loopback", "--home", home],
    ):
        assert run.invoke(studies, words, catch_exceptions=False).exit_code == 0
    said = run.invoke(
        commands, ["invite", "--count", "2", "--qr", "--home", home], env={"COLUMNS": "80"}, catch_exceptions=False
    ).stdout
    links = re.findall(r"anonml://\S+", said)
    assert len({parse_invite(link).code for link in links}) == 2
    drawn = re.split(r"anonml://\S+\n", said)
    assert [seen(block.splitlines()) for block in drawn if block.strip()] == links
    figures = json.loads(
        run.invoke(commands, ["invite", "--qr", "--json", "--home", home], catch_exceptions=False).stdout
    )
    assert seen(figures[0]["drawing"]) == figures[0]["text"]
    plain = run.invoke(commands, ["invite", "--home", home], catch_exceptions=False).stdout
    assert parse_invite(plain) and plain.count("\n") == 1


def test_a_link_to_an_onion_fits_a_terminal_of_eighty_columns() -> None:
    assert max(map(len, qr.drawing(ONION))) <= 80 and seen(list(qr.drawing(ONION))) == ONION


@pytest.mark.slow
async def test_the_desk_shows_a_code_beside_each_link(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(tmp_path / "home", clock) as app:
        await begin(app, clock, study_text())
        async with opened(app) as desk:
            (live,) = app.studies()
            await desk.get(f"/studies/{live.study.hex()}")
            page = await desk.post(f"/studies/{live.study.hex()}/invites", count="2", address="127.0.0.1:8750")
    links = [
        one.replace("&amp;", "&") for one in re.findall(r"<code>anonml peer open '(anonml://[^<]+)'</code>", page.text)
    ]
    drawings = re.findall(r"<svg.*?</svg>", page.text, re.DOTALL)
    assert [codes_in(scaled(one, 300)) for one in drawings] == [[link] for link in links] and len(links) == 2
