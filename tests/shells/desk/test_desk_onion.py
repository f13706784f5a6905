"""The desk beside an onion service, as staff start it: publishing and inviting over its page, and nothing of the page
over the onion."""

from __future__ import annotations

import asyncio
import html
import http.cookiejar
import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from anon.kit.testnet import PrivateNetwork
from anon.wire.invite import parse_invite
from anon.wire.onion_address import is_onion
from tests.support.onion_commands import listening, raw_through
from tests.support.world import study_text

pytestmark = [pytest.mark.tor, pytest.mark.soak]
ROOT = Path(__file__).resolve().parents[3]


@frozen
class Served:
    """A running desk that one browser was let into, and the address that peers have."""

    address: str
    origin: str
    link: str
    pid: int
    browser: urllib.request.OpenerDirector

    def get(self, path: str) -> str:
        with self.browser.open(self.origin + path, timeout=60) as answer:
            return str(answer.read().decode())

    def post(self, page: str, path: str, **fields: str) -> str:
        """Send a form as the page that it is on does."""
        [token] = set(re.findall(r'name="form_token" value="([0-9a-f]+)"', self.get(page)))
        body = urllib.parse.urlencode(fields | {"form_token": token}).encode()
        asked = urllib.request.Request(self.origin + path, body, {"Origin": self.origin})
        with self.browser.open(asked, timeout=60) as answer:
            return str(answer.read().decode())


@pytest.fixture
def served(tmp_path: Path, private_tor: PrivateNetwork) -> Iterator[Served]:
    words = [
        sys.executable,
        "-m",
        "anonml",
        "aggregator",
        "desk",
        "--onion",
        "--desk-port",
        "0",
        "--json",
        "--home",
        str(tmp_path / "home"),
    ]
    environment = os.environ | {"ANONML_TORRC": str(private_tor.torrc_file)}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    try:
        assert process.stdout is not None
        said: dict[str, str] = {}
        while not {"address", "desk"} <= set(said):
            line = process.stdout.readline()
            assert line, (tmp_path / "log").read_text()
            said |= json.loads(line)
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)
        browser.open(said["desk"], timeout=60).close()
        yield Served(said["address"], said["desk"].partition("/enter")[0], said["desk"], process.pid, browser)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_study_is_published_and_invited_to_over_the_onion_and_the_desk_stays_here(
    served: Served, private_tor: PrivateNetwork, tmp_path: Path
) -> None:
    assert is_onion(served.address.rpartition(":")[0]) and served.address in served.get("/")
    asked = served.post("/editor", "/editor/confirm", text=study_text().replace('"100s"', '"1h"'))
    assert 'value="onion" checked' in asked
    study = served.post("/editor", "/studies", text=study_text().replace('"100s"', '"1h"'), reach="onion")
    place = re.findall(r"/studies/[0-9a-f]{64}", study)[0]
    links = served.post(place, f"{place}/invites", count="2", address=served.address)
    found = [
        parse_invite(html.unescape(link))
        for link in re.findall(r"<code>anonml peer open '(anonml://[^<\s]+)'</code>", links)
    ]
    assert [one.address for one in found] == [served.address] * 2 and links.count("<svg") == 2
    look = [sys.executable, "-m", "anonml", "peer", "look", found[0].link(), "--json", "--home", str(tmp_path / "peer")]
    environment = os.environ | {"ANONML_TORRC": str(private_tor.torrc_file)}
    seen = subprocess.run(look, cwd=ROOT, capture_output=True, text=True, timeout=180, env=environment, check=False)
    assert seen.returncode == 0 and "Income" in seen.stdout, seen.stderr
    _nothing_of_the_desk(served, private_tor, place)


def _nothing_of_the_desk(served: Served, private_tor: PrivateNetwork, place: str) -> None:
    """The desk listens on loopback alone; over the onion its paths answer like any that is not there."""
    assert listening(served.pid) and all(one.startswith("0100007F:") for one in listening(served.pid))
    host, token = served.origin.partition("//")[2], served.link.partition("token=")[2]
    [cookie] = [one for handler in served.browser.handlers for one in getattr(handler, "cookiejar", [])]
    answers = {
        asyncio.run(raw_through(private_tor.socks, served.address, (
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie.name}={cookie.value}\r\nConnection: close\r\n\r\n"
        ).encode()))
        for path in ("/", place, "/metrics", "/openapi.json", f"/enter?token={token}", "/nowhere")
    }
    [answer] = answers
    assert answer.startswith(b"HTTP/1.1 404") and b"Set-Cookie" not in answer and b"desk" not in answer.lower()
