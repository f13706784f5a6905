"""The desk's pages over real HTTP: from the editor to the published report, and never a link from a person to a
packet."""

from __future__ import annotations

import asyncio
import io
import json
import re
import time
import zipfile
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

from aggregator.audit import audit
from aggregator.desk.link import kept_link, metrics_token
from aggregator.desk.openapi import public_document
from aggregator.desk.routes import ROUTES
from aggregator.desk.steps import Steps
from aggregator.intake.batcher import Batcher
from aggregator.rules.counters import Count
from aggregator.rules.faults import DatabaseAway, Fault
from aggregator.study.status import StudyStatus
from anon.credential import pseudonym
from anon.kit.page.gate import HEADERS
from anon.protocols.sortition import tag_context
from anon.study.features import USUAL_COHORT
from anon.transparency.fingerprint import words
from anon.wire.invite import parse_invite
from anon.wire.packets import parse_published
from peer.rules.consent import Policy
from tests.support.clock import Clock
from tests.support.desk_browser import Desk, opened, words_of
from tests.support.documents import plaintexts_of
from tests.support.world import FakePeer, World, begin, make_app, sealed, study_text

PEOPLE = "age,sex,income\n" + "".join(
    f"{20 + 2 * number},{'Male' if number % 2 else 'Female'},{'>50K' if number % 3 else '<=50K'}\n"
    for number in range(30)
)


async def _collected(desk: Desk, count: int = 8) -> list[FakePeer]:
    running = _of(desk)
    peers = await running.collected(count)
    return peers


def _of(desk: Desk) -> World:
    assert desk.running is not None
    return desk.running


def _at(desk: Desk) -> str:
    return f"/studies/{_of(desk).live.study.hex()}"


async def _finished(desk: Desk, count: int = 8) -> list[FakePeer]:
    peers = await _collected(desk, count)
    await _of(desk).go_to(_of(desk).closes)
    assert _of(desk).live.phase == "published"
    return peers


@pytest.mark.slow
async def test_from_the_editor_to_a_study_with_invites(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(tmp_path / "home", clock) as app, opened(app) as desk:
        assert "No study yet" in (await desk.get("/")).text
        editor = await desk.get("/editor")
        assert "It can be published" in editor.text and "course dropout" in editor.text.lower()
        faulty = await desk.post("/editor", text=study_text().replace("epsilon = 2.0", "epsilon = 200.0"))
        assert faulty.status == 200 and "design.epsilon" in faulty.text and "It cannot be published" in faulty.text
        (draft,) = re.findall(r"/editor\?draft=([0-9a-f]{16})", (await desk.get("/")).text)
        assert "epsilon = 200.0" in (await desk.get(f"/editor?draft={draft}")).text
        asked = await desk.post("/editor/confirm", text=study_text(), draft=draft)
        assert asked.status == 200 and "Publish “<bdi>Income</bdi>”?" in asked.text and app.studies() == ()
        done = await desk.post("/studies", text=study_text(), reach="loopback", draft=draft)
        assert "/editor?draft=" not in (await desk.get("/")).text
        assert re.fullmatch(r"/studies/[0-9a-f]{64}", done.path) and "enrolling" in done.text
        (live,) = app.studies()
        assert live.manifest.title == "Income" and live.manifest.address == ""
        links = await desk.post(f"{done.path}/invites", count="3", address="127.0.0.1:8750")
        found = re.findall(r"<code>anonml peer open '(anonml://[^<\s]+)'</code>", links.text)
        codes = {parse_invite(link.replace("&amp;", "&")).code for link in found}
        assert len(found) == len(codes) == 3 and links.text.count("<svg") == 3
        study_page = await desk.get(done.path)
        assert not any(code in study_page.text for code in codes)


async def test_a_refusal_is_a_page_that_says_what_to_do(desk: Desk) -> None:
    for fields, status in (
        ({"count": "0", "address": "127.0.0.1:1"}, 400),
        ({"count": "٣", "address": "127.0.0.1:1"}, 400),
        ({"count": "1" * 5000, "address": "127.0.0.1:1"}, 400),
        ({"count": "2"}, 400),
        ({"count": "1", "address": "example.org:80"}, 409),
    ):
        answer = await desk.post(f"{_at(desk)}/invites", **fields)
        assert answer.status == status and "Not done" in answer.text
    assert (await desk.post(f"{_at(desk)}/allow", keys="00")).status == 409
    for late in ("/report", "/model.json"):
        assert (await desk.get(_at(desk) + late)).status == 409
    assert (await desk.post(f"{_at(desk)}/report", people=PEOPLE)).status == 409
    assert (await desk.get(f"/studies/{'0' * 64}")).status == 404
    assert (await desk.post("/studies", text=study_text(), reach="anywhere")).status == 400


@pytest.mark.slow
async def test_counts_move_in_steps_until_collection_has_closed(desk: Desk) -> None:
    await _of(desk).enrol(8)
    page = words_of((await desk.get(_at(desk))).text)
    assert (
        "enrolled fewer than 50" in page
        and "minimum 2 (reached)" in page
        and "accepted" not in page.partition("Estimates")[0].partition("Packets")[2]
    )
    assert "enrolled fewer than 50" in words_of((await desk.get("/")).text)


@pytest.mark.slow
async def test_a_group_below_fifty_is_not_told_as_fewer_than_fifty_of_it(desk: Desk) -> None:
    await _of(desk).collecting(8)
    page = words_of((await desk.get(_at(desk))).text)
    assert "fewer than 50 of 8" not in page and "told when collection has closed (8 are expected)" in page


class _Fixed(HTMLParser):
    """The words of a study's page outside of the parts that renew themselves."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words, self._depth = "", 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._depth += tag == "div" and (self._depth > 0 or "data-live" in dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag == "div" and self._depth > 0

    def handle_data(self, data: str) -> None:
        self.words += "" if self._depth else f"{data.strip()} "


@pytest.mark.slow
async def test_every_part_that_changes_renews_itself(desk: Desk) -> None:
    first = (await desk.get(_at(desk))).text
    await _finished(desk)
    last = (await desk.get(_at(desk))).text
    assert "Draw invites" in first and "Draw invites" not in last and "Save the report as a file" in last
    assert _Fixed(first).words.split() == _Fixed(last).words.split()
    parts = [re.findall(r'data-live="(\w+)"', page) for page in (first, last)]
    assert parts[0] == parts[1] and len(set(parts[0])) == len(parts[0]) == 7


@pytest.mark.slow
async def test_the_page_keeps_technical_figures_behind_a_fold(desk: Desk) -> None:
    page = (await desk.get(_at(desk))).text
    plain = words_of(re.sub(r"<details.*?</details>", "", page, flags=re.DOTALL))
    assert "the odds about that member move by at most a factor of" in plain and "replace-one" in words_of(page)
    assert not any(word in plain for word in ("replace-one", "at delta", "marginals", "Record-level sum"))
    editor = (await desk.post("/editor", text=study_text())).text
    assert "krr" in editor and "krr" not in re.sub(
        r"<details.*?</details>|<textarea.*?</textarea>", "", editor, flags=re.DOTALL
    )
    said = words_of((await desk.get("/")).text)
    assert f"Its key in words {words(desk.app.home.public_key)}" in said and said.index(
        "Its key in words"
    ) < said.index(desk.app.home.public_key.hex())


@pytest.mark.slow
async def test_publishing_for_few_says_that_members_lower_their_limit(desk: Desk) -> None:
    assert Policy().minimum_cohort == USUAL_COHORT
    for minimum, told in ((2, True), (19, True), (20, False)):
        asked = await desk.post("/editor/confirm", text=study_text(minimum=minimum))
        assert (f"<code>anonml peer budget --minimum-cohort {minimum}</code>" in asked.text) is told


async def test_times_have_utc_beside_them(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        page = words_of((await desk.get(_at(desk))).text)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert re.search(r"until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d IST \([\d :-]+ UTC\)", page)
    assert "refresh it" in page


@pytest.mark.slow
async def test_a_finished_study_shows_estimates_and_accuracy(desk: Desk) -> None:
    await _finished(desk)
    page = await desk.get(_at(desk))
    said = words_of(page.text)
    assert "packets kept 8 of 8" in said and "Now: published" in said and "Record-level sum: 2" in said
    assert "No survey has 50 packets" in said and not re.search(r"-?\d\.\d{3} to -?\d\.\d{3}", said)
    # By chance alone eight people rarely show something.
    shown = json.loads((await desk.get(f"{_at(desk)}/model.json")).text)["shown"]
    assert ("take this model as no better than the base rate" in said) is (shown is False)
    assert "Read the report" in said and "kept for" in said
    assert "collection (done)" in said and "Nobody can end enrolment or sending earlier" in said
    await desk.post(f"{_at(desk)}/audit")
    await desk.post(f"{_at(desk)}/forecast")
    for _ in range(300):
        said = words_of((await desk.get(_at(desk))).text)
        if "under way" not in said and "being made" not in said:
            break
        await asyncio.sleep(0.1)
    assert "8 packets verified" in said and "everything published fits together" in said
    assert re.search(r"with known labels 0\.\d\d \(0\.\d\d to [01]\.\d\d\) with a test set", said), said


@pytest.mark.slow
async def test_the_report_and_its_test_set(desk: Desk) -> None:
    await _finished(desk)
    published = await desk.get(f"{_at(desk)}/report")
    assert "No test set was given" in published.text and "sandbox" in published.headers["Content-Security-Policy"]
    kept = await desk.get(f"{_at(desk)}/report?save=1")
    assert kept.text == published.text and "Content-Disposition" not in published.headers
    assert re.fullmatch(r'attachment; filename="report-[0-9a-f]{8}\.html"', kept.headers["Content-Disposition"])
    assert (
        "attachment"
        in (await desk.upload(f"{_at(desk)}/report", "people", PEOPLE, save="1")).headers["Content-Disposition"]
    )
    evaluated = await desk.upload(f"{_at(desk)}/report", "people", PEOPLE)
    said = words_of(evaluated.text)
    assert evaluated.status == 200 and "30 test people" in said and "Errors by subgroup" in said and "ROC curve" in said
    assert evaluated.text.count('<svg class="chart"') >= 2 and "<script" not in evaluated.text
    assert (await desk.upload(f"{_at(desk)}/report", "people", "age,sex\n1,Male\n")).status == 400
    assert (await desk.upload(f"{_at(desk)}/report", "people", "\x00")).status == 400
    assert (await desk.get(f"{_at(desk)}/report")).text == published.text


@pytest.mark.slow
async def test_the_archive_can_be_audited(desk: Desk, tmp_path: Path) -> None:
    await _finished(desk)
    packed = await desk.get(f"{_at(desk)}/export.zip")
    zipfile.ZipFile(io.BytesIO(packed.body)).extractall(tmp_path / "out")
    assert audit(tmp_path / "out").ok
    assert packed.body == (await desk.get(f"{_at(desk)}/export.zip")).body


async def _fails_quoting(secrets: list[str]) -> None:
    """A batch whose failure quotes what it held."""

    async def fail(items: Sequence[str]) -> Sequence[str]:
        raise RuntimeError(" ".join(items))

    batcher: Batcher[str, str] = Batcher(fail)
    try:
        with pytest.raises(RuntimeError):
            await batcher.submit(" ".join(secrets))
    finally:
        await batcher.close()


@pytest.mark.slow
async def test_nothing_links_a_person_to_a_packet(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """Every page, metric and log line of a finished study: no tag anywhere, and keys only in the roster."""
    caplog.set_level("DEBUG")
    peers = await _finished(desk)
    live = _of(desk).live
    tags = {pseudonym(peer.credential, tag_context(live.manifest, 0)).hex() for peer in peers if peer.credential}
    packets = [
        one
        for survey in live.manifest.surveys
        for one in await plaintexts_of(live.tools.packets, live.study, 0, survey.survey)
    ]
    secrets = (
        tags
        | {parse_published(one).token.hex()[:64] for one in packets}
        | {parse_published(one).token[:48].hex()[:12] for one in packets}
    )
    assert tags == {parse_published(one).token[:48].hex() for one in packets}
    keys = {bytes(peer.key.verify_key).hex() for peer in peers}
    assert len(tags) == len(packets) == len(keys) == 8
    pages = [route.path.replace("{study}", live.study.hex()) for route in ROUTES if route.method == "GET"]
    bearer = {"Authorization": f"Bearer {metrics_token(desk.app.home.path)}"}
    seen = {path: await desk.get(path, bearer if path == "/metrics" else None) for path in pages}
    seen["audit"] = await desk.post(f"{_at(desk)}/audit")
    seen["evaluated"] = await desk.upload(f"{_at(desk)}/report", "people", PEOPLE)
    assert all(one.status == 200 for one in seen.values()), {path: one.status for path, one in seen.items()}
    for path, one in seen.items():
        if path.endswith(".zip"):  # the published documents themselves: whole, and each for itself
            continue
        assert not any(secret in one.text for secret in secrets), path
        if not path.endswith("/roster"):
            assert not any(key in one.text or key[:12] in one.text for key in keys), path
    roster = seen[f"/studies/{live.study.hex()}/roster"].text
    assert re.findall(r"<code>([0-9a-f]{64})</code>", roster) == sorted(keys)
    await _fails_quoting(sorted(secrets | keys))
    # Lines of tests' own asyncio and aiosqlite (statements with parameters hidden are the store's) say no secret
    # either.
    ours = [one.getMessage() for one in caplog.records if one.name.startswith(("aggregator", "anon", "aiohttp"))]
    assert any("a fault in this program" in line for line in ours), "a failure that quotes secrets was logged"
    assert not any(word in line for line in ours for word in secrets | keys)


@pytest.mark.slow
async def test_live_estimates_move_by_fifty_and_never_tell_less(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(tmp_path / "home", clock) as app:
        text = study_text().replace('kind = "one-packet"', 'kind = "one-packet"\nsubsets = [["sex"]]')
        running = await begin(app, clock, text, invites=110)
        async with opened(app, running) as desk:
            peers = await running.collecting(56)
            await desk.get(_at(desk))
            shown = [""]
            for number, peer in enumerate(peers, start=1):
                assert await running.live.submit(sealed(running.live, peer.packet())) == "accepted"
                if number % 16 == 0 or number > 48:
                    page = words_of((await desk.get(_at(desk))).text)
                    found = re.search(r"sex × income: .*", page.partition("Accuracy: expected")[0])
                    assert (found is not None) == (number >= 50), number
                    assert f"packets kept {'50 or more' if number >= 50 else 'fewer than 50'} of 56" in page
                    counted = re.search(r"answers to packets number accepted (\d+)", page)
                    assert (counted[1] if counted else "0") == ("50" if number >= 50 else "0")
                    shown += [found[0]] if found and found[0] != shown[-1] else []
            assert len(shown) == 2 and "50 packets or more" in shown[1]
        async with opened(app, running) as again:  # a restarted desk cannot know what was shown
            assert "There is no estimate yet" in (await again.get(_at(again))).text
            await running.go_to(running.closes)
            said = words_of((await again.get(_at(again))).text)
            assert "sex × income: 56 packets, final" in said and re.search(r"-?\d\.\d{3} to -?\d\.\d{3}", said)


def test_an_open_survey_moves_by_fifty_each_for_itself() -> None:
    steps = Steps()
    moved = [count for count in range(200) if steps.may_move(b"study", 1, count)]
    assert moved == [50, 100, 150]
    late = [count for count in range(73, 200) if Steps().may_move(b"study", 1, count)]
    assert late == [] and not steps.may_move(b"study", 2, 199) and not steps.may_move(b"other", 1, 199)


@pytest.mark.slow
async def test_metrics_are_for_who_holds_the_token_and_count_in_steps(desk: Desk) -> None:
    await _finished(desk)
    assert (await desk.get("/metrics")).status == 401
    home = desk.app.home.path
    assert (home / "metrics.token").stat().st_mode & 0o777 == 0o600
    found = await desk.get("/metrics", {"Authorization": f"Bearer {metrics_token(home)}"})
    assert found.status == 200 and found.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    samples = [line for line in found.text.splitlines() if not line.startswith("#")]
    study = desk.app.studies()[0].study.hex()
    for sample in (
        'anonml_studies{phase="published"} 1', "anonml_led 1", f'anonml_study_fault{{study="{study}"}} 0',
        f'anonml_study_phase{{study="{study}",phase="published"}} 1',
    ):
        assert sample in samples
    counts = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in samples}
    assert all(
        re.fullmatch(r'[a-z_]+(\{(study="[0-9a-f]{64}"|phase="[a-z]+")(,(word|phase)="[a-z-]+")?\})?', name)
        for name in counts
    )
    (status,) = await desk.app.status()
    assert counts[f'anonml_enrolled{{study="{study}"}}'] == status.enrolled.number > 0, "the roster is published"
    stepped = ("anonml_packets_accepted", "anonml_packet_answers", "anonml_enrolment_answers")
    assert all(number % 50 == 0 for name, number in counts.items() if name.startswith(stepped))


async def test_metrics_tell_faults_studies_that_cannot_be_read_and_a_database_that_is_away(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bearer = {"Authorization": f"Bearer {metrics_token(desk.app.home.path)}"}
    (live,) = desk.app.studies()
    live.fault = Fault("a teller is away", teller="clinic")
    none = Count.shown(0, final=False)
    lost = StudyStatus(b"s" * 32, "", "round", none, 0, False, None, none, {}, {}, 0, "gone")
    monkeypatch.setattr(desk.app, "unread", lambda: [lost])
    samples = (await desk.get("/metrics", bearer)).text.splitlines()
    for study in (live.study.hex(), (b"s" * 32).hex()):
        assert f'anonml_study_fault{{study="{study}"}} 1' in samples

    async def away() -> bool:
        raise DatabaseAway("a server")

    monkeypatch.setattr(desk.app, "led", away)
    found = await desk.get("/metrics", bearer)
    assert found.status == 503 and "does not answer" in found.text


async def test_the_link_is_kept_for_the_owner_and_changes_with_each_use(desk: Desk) -> None:
    home = desk.app.home.path
    link = kept_link(home)
    assert link is not None and link.startswith(desk.origin) and (home / "desk.link").stat().st_mode & 0o777 == 0o600
    async with desk.session.get(link) as answer:
        assert answer.status == 200
    async with desk.session.get(link) as answer:
        assert answer.status == 403
    assert kept_link(home) not in (None, link)


async def test_signing_out_ends_the_session(desk: Desk) -> None:
    await desk.get("/")
    page = await desk.post("/sign-out")
    assert (
        "Signed out; <code>anonml aggregator desk</code> prints a new link." in page.text
        and "To all studies" not in page.text
    )
    assert (await desk.get("/")).status == 401


async def test_every_route_is_guarded_and_described(desk: Desk) -> None:
    """No route answers without the cookie but style and script; every one of the document is served, and no other."""
    document = json.loads((await desk.get("/openapi.json")).text)
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert described == {(route.method, route.path) for route in ROUTES}
    token, desk.token = desk.token, "0" * 64
    for route in ROUTES:
        path = route.path.replace("{study}", _of(desk).live.study.hex())
        if route.method == "POST":
            assert (await desk.post(path)).status == 403
        desk.session.cookie_jar.clear()
        answer = await (desk.get(path) if route.method == "GET" else desk.post(path))
        assert answer.status == (200 if path in ("/desk.css", "/desk.js") else 401), path
        assert {name: answer.headers.get(name) for name in HEADERS} == dict(HEADERS)
        async with desk.session.get(kept_link(desk.app.home.path) or "") as entered:
            assert entered.status == 200
    assert token


@pytest.mark.slow
async def test_pages_hold_nothing_inline_and_ask_nothing_of_others(desk: Desk) -> None:
    await _finished(desk)
    for route in ROUTES:
        if route.method == "GET" and route.sends == "text/html" and route.name != "report":
            page = (await desk.get(route.path.replace("{study}", _of(desk).live.study.hex()))).text
            assert not re.search(r"<style|<script(?! src=\"/desk.js\")|\sstyle=|\son[a-z]+=|javascript:", page), (
                route.path
            )
            assert not [
                one for one in re.findall(r'(?:src|href|action)="([^"]*)"', page) if not one.startswith(("/", "#"))
            ]
            assert "<html lang=" in page and page.count("<h1>") == 1 and "width=device-width" in page


async def test_what_a_study_says_is_text(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(tmp_path / "home", clock) as app:
        text = study_text().replace('title = "Income"', 'title = "<script>alert(1)</script>"')
        running = await begin(app, clock, text)
        async with opened(app, running) as desk:
            for path in ("/", _at(desk), f"{_at(desk)}/roster", f"{_at(desk)}/fingerprints"):
                page = (await desk.get(path)).text
                assert "<script>alert" not in page and "&lt;script&gt;" in page
            checked = await desk.post("/editor/lint", text='title = "</textarea><img src=x>"')
            assert "<img" not in checked.text


@pytest.mark.slow
def test_the_public_document_names_what_the_server_knows() -> None:
    from aggregator.network.http import _PATH

    for path in public_document()["paths"]:
        filled = path.replace("{study}", "0" * 64)
        filled = filled.replace("{group}", "opening")
        assert _PATH.match(re.sub(r"{(number|bucket)}", "7", filled)), path
