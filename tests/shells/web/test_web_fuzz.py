"""Every way into the owner's page with what no browser of ours sends: an answer each time, and never a server's fault.

The page is for a person and has no OpenAPI document; its routes are read from the running application, so that a new
one is met here without a word more.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.support.visiting import Visited, visited

pytestmark = pytest.mark.slow

TEXTS = (
    "", "0", "-1", "1e999", "٣", "9" * 400, "nan", "\x00", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    "../../etc/passwd",
    "%00%ff", "{{7*7}}", "<script>", "yes", "import", "start", "' OR 1=1 --", "a" * 20_000,
    "anonml://[::1]:99999/?key=", "\r\nX: y",
)
FIELDS = (
    "link", "answer", "epsilon", "unready", "seconds", "lifetime", "per_study", "minimum_cohort", "table", "mode",
    "back", "file", "picture",
)
TYPES = {
    "no boundary": {"Content-Type": "multipart/form-data"},
    "another boundary": {"Content-Type": "multipart/form-data; boundary=b"},
    "another encoding": {"Content-Type": "application/x-www-form-urlencoded; charset=nothing"},
}
NAMES = ("study", "key", "number", "name")


KINDS = ("form", "multipart", "raw", *TYPES)


def paths_of(page: Visited, words: random.Random) -> list[tuple[str, str, Sequence[str]]]:
    """Each route of the running page with its parameters filled in: what exists, what could, what cannot. With each the
    kinds of body that it is asked with: all kinds for a route, in pairs that go round its parameters."""
    found = []
    app: web.Application = page.server._runner.app  # type: ignore[union-attr]
    for route in app.router.routes():
        pattern = route.resource.canonical if route.resource else ""
        if route.method == "HEAD" or pattern == "/enter":
            continue
        known = [page.aggregator.study.hex(), "0" * 64, "f" * 24, "0", "style.css"]
        for value in (*known, words.choice(TEXTS) or "x", "%2e%2e%2f", "\u00e4"):
            path = pattern
            for name in NAMES:
                path = path.replace(f"{{{name}}}", value)
            kinds = KINDS if path == pattern else KINDS[len(found) % 3 :: 3]
            found.append((route.method, path, kinds if route.method == "POST" else ("",)))
            if path == pattern:
                break
    return found


@pytest.mark.parametrize("seed", [1, 2])
async def test_no_route_ends_in_a_servers_fault(tmp_path: Path, seed: int) -> None:
    words = random.Random(seed)
    async with visited(tmp_path) as page:
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        if seed == 2:
            await page.peer.join(page.aggregator.invite, page.aggregator.manifest.epsilon)
        token = (await page.get("/budget")).form("/budget")["form_token"]
        own = {"Origin": page.server.address}
        statuses: dict[int, int] = {}
        asked = paths_of(page, words)
        assert len({path for _, path, _ in asked}) > 30
        for method, path, kinds in asked:
            for kind in kinds:
                data: Any = None
                fields = {name: words.choice(TEXTS) for name in words.sample(FIELDS, 6)}
                if kind == "form":
                    data = {"form_token": token} | fields
                elif kind == "multipart":
                    data = aiohttp.FormData(quote_fields=False)
                    data.add_field("form_token", token)
                    for name, value in fields.items():
                        if name in ("file", "picture"):
                            data.add_field(name, value.encode(), filename=f"{value[:50].strip().strip(chr(0))}.csv")
                        else:
                            data.add_field(name, value)
                else:
                    data = words.randbytes(500) + b"--b\r\nContent-Disposition: form-data; name=file\r\n\r\n"
                try:
                    headers = own | TYPES.get(kind, {})
                    async with page.session.request(
                        method, page.server.address + path, data=data, headers=headers, allow_redirects=False
                    ) as answer:
                        await answer.read()
                        statuses[answer.status] = statuses.get(answer.status, 0) + 1
                        assert answer.status < 500, (method, path[:80], kind, fields)
                except (aiohttp.InvalidURL, ValueError):
                    continue  # the client refuses to send it
        assert {200, 303, 400, 403, 404} <= set(statuses) and sum(statuses.values()) > 100, statuses
        assert not page.aggregator.sent("packets") and page.aggregator.enrolments == {}
