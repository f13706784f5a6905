"""A phone may use the listed routes only, tried with every route that the page has.

Its pages show and lead to nothing else.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from aiohttp import web

from anon.errors import Refused
from anon.kit.page.gate import FORM_FIELD
from anon.wire.invite import Invite
from peer.app import PeerApp
from peer.pairing import page as phones_page
from peer.pairing.allowed import ALLOWED, REFUSED, permitted
from peer.pairing.reach import PeerInReach, no_peer
from peer.web.site import PeerReach
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer
from tests.support.phoning import HOST, Phoned, phoned
from tests.support.visiting import visited

DONE_AT_HOME = [
    ("POST", "/budget"), ("GET", "/budget"), ("POST", "/start/budget"), ("POST", "/start/connect"), ("POST", "/link"),
    ("POST", "/invite/{study}"), ("GET", "/study/{study}/leave"), ("POST", "/study/{study}/leave"),
    ("GET", "/study/{study}/prediction"), ("POST", "/study/{study}/prediction"), ("GET", "/evidence"),
    ("GET", "/evidence/{number}"), ("GET", "/history"), ("GET", "/diagnosis"),
]
"""Agreeing, limits, leaving, predictions and whatever else is no phone's. Every other route of the page is either on
the list of what is allowed or refused as these are."""


def routes_of(phone: Phoned) -> list[tuple[str, str]]:
    """Every method and route of the page, with what stands for anything in braces."""
    app = phone.listener.application()
    return sorted({(one.method, one.resource.canonical) for one in app.router.routes() if one.resource is not None})


def spelt(route: str, phone: Phoned) -> str:
    study = phone.aggregator.study.hex()
    return route.format(study=study, key="0" * 24, number="0", name="style.css", table="person")


async def token_of(phone: Phoned) -> str:
    return (await phone.get("/data")).form("/data/upload")[FORM_FIELD]


async def test_every_route_that_is_not_on_the_list_is_refused(phone: Phoned) -> None:
    routes = routes_of(phone)
    assert set(DONE_AT_HOME) <= set(routes) and not any(route.startswith("/phones") for _, route in routes), (
        "a route of the page has gone: look whether the list still means what it did"
    )
    assert set(ALLOWED) <= {route for _, route in routes}
    body = f"{FORM_FIELD}={await token_of(phone)}&answer=yes&epsilon=1&lifetime=1&per_study=1&minimum_cohort=1"
    for method, route in routes:
        got = await phone.raw(method, spelt(route, phone), phone.good, body if method == "POST" else "")
        refused = got.status == 403 and (method == "HEAD" or REFUSED.partition(".")[0] in got.body)
        assert refused == (not permitted(method, route)), (method, route, got.status, got.body[:300])
    assert phone.peer.status() == [] and phone.peer.policy().lifetime == 10 * 10**9


async def test_the_list_and_the_computers_page_have_the_same_routes(phone: Phoned, tmp_path: Path) -> None:
    """So that nothing is served to a phone that is not looked at above. The page of phones is the computer's alone."""
    async with visited(tmp_path / "other") as page:
        app = page.server._application()
        at_home = sorted(
            {(one.method, one.resource.canonical) for one in app.router.routes() if one.resource is not None}
        )
    phones = {(one.method, one.path) for one in phones_page.routes if isinstance(one, web.RouteDef)}
    heads = {("HEAD", path) for method, path in phones if method == "GET"}
    assert set(at_home) - phones - heads == set(routes_of(phone)) and phones <= set(at_home)


@pytest.mark.parametrize(("method", "route"), DONE_AT_HOME)
def test_what_binds_shows_or_takes_away_is_not_on_the_list(method: str, route: str) -> None:
    assert not permitted(method, route)


def test_a_route_that_is_new_is_closed() -> None:
    assert not permitted("GET", "/something/{new}") and not permitted("POST", "/") and not permitted("DELETE", "/data")


def test_a_phones_pages_reach_nothing_else_of_the_peer_whatever_their_route(tmp_path: Path) -> None:
    """Closed by default: everything public of a peer that is not named here is out of reach."""
    app = peer(tmp_path, FakeAggregator.with_study(DECLARED))
    near = PeerInReach(app)
    names = {name for name in (*dir(PeerApp), *vars(app)) if not name.startswith("__")}
    given = {"budget", "known_tellers", "manifest", "pause", "paused_until", "policy", "resume", "status", "store"}
    assert {name for name in vars(PeerReach) if not name.startswith("_")} == given, "what every page may ask for"
    for name in given:
        assert getattr(near, name), "and a phone's page has it"
    for name in names - given:
        with pytest.raises(Refused, match="on the computer itself"):
            getattr(near, name)
    for name in {name for name in dir(app.store) if not name.startswith("__")} - {"study"}:
        with pytest.raises(Refused, match="on the computer itself"):
            getattr(near.store, name)
    with pytest.raises(Refused, match="on the computer itself"):
        no_peer()
    assert (
        near.status() == [] and {"join", "leave", "set_policy", "run", "client", "evidence", "set_passphrase"} <= names
    )
    app.close()


async def test_the_way_from_a_first_link_with_its_limits_is_no_phones(phone: Phoned) -> None:
    """On the computer the form of that preview sets the lifetime budget too."""
    await _waiting(phone)
    preview = await phone.upload("sleep.csv", b"age,cups,tired\n41,many,1\n", back="start")
    assert "lifetime" not in preview.text
    action = preview.url.removeprefix(f"http://{HOST}").partition("?")[0]
    form = preview.form(f"{action}?back=") | {
        "answer": "import",
        "lifetime": "900",
        "per_study": "900",
        "minimum_cohort": "1",
    }
    before = phone.peer.policy()
    got = await phone.post(f"{action}?back=start", form)
    assert "Imported" in got.words and phone.peer.policy() == before


async def _waiting(phone: Phoned) -> str:
    """A study whose link waits for an answer."""
    invite: Invite = phone.aggregator.invite
    phone.site.invites[invite.study] = invite
    return f"/invite/{invite.study.hex()}"


async def test_a_phone_reads_what_is_asked_but_not_the_owners_answers_and_cannot_agree(phone: Phoned) -> None:
    place = await _waiting(phone)
    home = await phone.get("/")
    assert f'href="{place}"' in home.text
    screen = await phone.get(place)
    assert screen.status == 200 and "What could be sent, and how often it is the truth" in screen.words
    assert "do this on the computer itself" in screen.words
    assert "Your own answer" not in screen.words and 'data-name="your value"' not in screen.text
    assert f'action="{place}"' not in screen.text and 'value="yes"' not in screen.text
    form = {FORM_FIELD: await token_of(phone), "answer": "yes", "epsilon": str(2 * 10**9)}
    for answer in ("yes", "no"):
        assert (await phone.post(place, form | {"answer": answer})).status == 403
    assert phone.peer.status() == [] and phone.site.invites, "neither a yes nor a no"


async def test_a_study_that_was_joined_is_read_and_paused(phone: Phoned) -> None:
    await phone.peer.join(phone.aggregator.invite, phone.aggregator.manifest.epsilon)
    assert phone.aggregator.manifest.title in (await phone.get("/")).words
    page = await phone.get(phone.study)
    assert page.status == 200 and "/leave" not in page.text and "/prediction" not in page.text
    await phone.submit(phone.study, f"{phone.study}/pause", seconds="3600")
    assert phone.peer.paused_until(phone.aggregator.study) is not None
    await phone.submit(phone.study, f"{phone.study}/resume")
    assert phone.peer.paused_until(phone.aggregator.study) is None


async def test_every_link_and_form_of_a_phones_pages_leads_where_it_may_go(phone: Phoned) -> None:
    await phone.peer.join(phone.aggregator.invite, phone.aggregator.manifest.epsilon)
    preview = await phone.upload("more.csv", b"age,cups,tired\n41,many,1\n")
    app = phone.listener.application()
    pages, seen = [preview], {"/"}
    pages.append(await phone.get("/"))
    pages.append(await phone.get("/nowhere"))
    while pages:
        page = pages.pop()
        assert "live.js" not in page.text and "to this machine only" not in page.words
        for kind, found in re.findall(r'(?:<a[^>]*\b(href)|<form[^>]*\b(?:action))="([^"]*)"', page.text):
            path = found.partition("?")[0].partition("#")[0]
            if not path:
                continue
            method = "GET" if kind else "POST"
            matched = [one for one in app.router.resources() if one.get_info().get("path") == path or _fits(one, path)]
            assert matched and permitted(method, matched[0].canonical), (method, path, page.url)
            if kind and path not in seen:
                seen.add(path)
                pages.append(await phone.get(path))
    assert {"/data", phone.study} <= seen


def _fits(resource: object, path: str) -> bool:
    pattern = resource.get_info().get("pattern")  # type: ignore[attr-defined]
    return pattern is not None and pattern.fullmatch(path) is not None


async def test_a_new_home_does_not_begin_on_a_phone(tmp_path: Path) -> None:
    async with phoned(tmp_path, data=False) as phone:
        home = await phone.get("/")
        assert home.status == 200 and "/start" not in home.text


# Files


async def _imported(phone: Phoned, content: bytes, **fields: str) -> str:
    preview = await phone.upload("sleep.csv", content)
    action = preview.url.removeprefix(f"http://{HOST}")
    got = await phone.post(action, preview.form(action) | {"answer": "import", "table": "person"} | fields)
    return got.words


async def test_a_phones_file_becomes_rows(phone: Phoned) -> None:
    assert "Imported: 2 rows into “diary”" in await _imported(phone, b"age,tired\n41,1\n42,0\n", table="diary")
    assert phone.site.tables()["diary"] == ("age", "tired")
    assert "Imported: 1 row into “person”" in await _imported(phone, b"age,cups,tired\n41,many,1\n")
    assert not list(phone.home.path.rglob("*.csv")), "the copy is gone"


async def _rows(phone: Phoned) -> int:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(phone.home.data_path)) as connection:
        return int(connection.execute("SELECT count(*) FROM person").fetchone()[0])


async def test_a_phone_adds_and_does_not_replace(phone: Phoned) -> None:
    await _imported(phone, b"age,cups,tired\n41,many,1\n")
    assert await _rows(phone) == 2
    for mode in ("replace", "", "x"):
        assert "do this on the computer itself" in await _imported(phone, b"age,cups,tired\n41,many,1\n", mode=mode)
    assert await _rows(phone) == 2


async def test_a_file_that_is_not_wanted_is_dropped(phone: Phoned) -> None:
    preview = await phone.upload("sleep.csv", b"age\n1\n")
    action = preview.url.removeprefix(f"http://{HOST}")
    await phone.post(action, preview.form(action) | {"answer": "drop"})
    assert await _rows(phone) == 1 and not list(phone.home.path.rglob("*.csv"))


async def test_files_of_a_phone_are_bounded_in_size_and_number(tmp_path: Path) -> None:
    async with phoned(tmp_path, largest=2048, waiting=2) as phone:
        assert "Larger than" in (await phone.upload("a.csv", b"x" * 3000)).words
        assert not list(tmp_path.rglob("a.csv"))
        for _ in range(2):
            assert (await phone.upload("b.csv", b"age\n1\n")).status == 200
        assert "2 files wait already" in (await phone.upload("c.csv", b"age\n1\n")).words
        assert len(list(tmp_path.rglob("*.csv"))) == 2
    assert not list(tmp_path.rglob("*.csv")), "what waited went with pairing"
