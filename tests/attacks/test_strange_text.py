"""Text that somebody else wrote never passes for ours: on the terminal, the owner's page, the desk and in the
report."""

from __future__ import annotations

import ast
import re
import sys
import unicodedata
from html import unescape
from inspect import signature
from pathlib import Path
from typing import Any

import attrs
import pytest
from markupsafe import Markup
from rich.console import Console
from rich.table import Table

from anon.errors import Malformed
from anon.kit.page.rendering import templates_of
from anon.kit.terminal.foreign import Foreign, framed, wrapped
from anon.study.manifest import Manifest
from anon.study.texts import faults_of, texts_of
from anon.text.default_ignorable import BLANK, DEFAULT_IGNORABLE
from anon.text.foreign import MOST_MARKS, Quoted, escaped, fault, isolated, paragraphs, shown
from anon.text.html import seen
from anon.text.sentences import say
from anon.wire.cbor import encode
from peer.cli.show import show_sheet
from peer.data.readiness import own_data
from peer.rules.consent import Policy, explain
from peer.rules.ledger import Ledger
from peer.web import languages
from tests.support.clock import START, Clock
from tests.support.desk_browser import opened
from tests.support.fake_aggregator import DECLARED, FakeAggregator
from tests.support.peer_command import Command
from tests.support.protocols import parse_manifest, parse_proposal
from tests.support.visiting import visited
from tests.support.world import begin, in_memory, make_app, published, study_text

ROOT = Path(__file__).parents[2]
REFUSED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
PASSED_BEFORE = (
    "\u00a0\u2003\u200b\u200d\u200e\u200f\u061c\u00ad\u034f\u115f\u3164\uffa0\u2800\ufe0f\ufeff\U000e0041\ue000"
)
"""Each of these could stand in a title, a contact or a category of a published study."""
ARABIC, HEBREW = "دراسة النوم والقهوة", "מחקר שינה"
FAKE = "Fingerprint, to compare with a public place: zebra zebra"
_FSI, _PDI = "\u2068", "\u2069"


def _bad(text: str) -> set[str]:
    """Characters of an output that are not shown as written, but for the pairs that isolate a text."""
    return {sign for sign in text if sign not in "\n\t" and sign not in (_FSI, _PDI) and fault(f"a{sign}")}


# The rule


PLANES = [(0, 1, 14, 16), pytest.param(tuple(range(17)), marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize("planes", PLANES, ids=["some", "all"])
def test_every_character_of_unicode_is_allowed_by_its_category_or_seen_as_its_number(planes: tuple[int, ...]) -> None:
    """Of these planes; of all 1,114,112 in the slow one. Only letters, marks, numbers, punctuation, symbols and the
    plain space stay."""
    hidden = {point for first, last in (*DEFAULT_IGNORABLE, *BLANK) for point in range(first, last + 1)}

    def expected(point: int) -> str:
        sign = chr(point)
        refused = (unicodedata.category(sign) in REFUSED and sign != " ") or point in hidden
        return f"a<U+{point:04X}>" if refused else f"a{sign}"

    assert len(range(0, sys.maxunicode + 1, 65536)) == 17
    for block in (first for plane in planes for first in range(65536 * plane, 65536 * (plane + 1), 4096)):
        points = range(block, block + 4096)
        assert escaped("".join(f"a{chr(point)}" for point in points)) == "".join(map(expected, points)), hex(block)


def test_the_table_has_as_many_code_points_as_the_standard_says() -> None:
    """DerivedCoreProperties.txt of Unicode 17.0: 'Total code points: 4174'."""
    assert sum(last - first + 1 for first, last in DEFAULT_IGNORABLE) == 4174


def test_marks_stand_on_a_letter_and_in_no_tower() -> None:
    tower = "e" + "\u0301" * (MOST_MARKS + 1)
    assert fault(tower) == "U+0301 (COMBINING ACUTE ACCENT) at character 6" and not fault(tower[:-1])
    for alone in ("\u0301e", " \u0301", "a\n\u0301"):
        assert fault(alone, lines=True)


@pytest.mark.parametrize(
    "text",
    [
        "Schlaf & Kaffee – Übung №1", "Việt Nam ở đây", "हिन्दी में नींद", "コーヒーと睡眠", "ก็อยู่ที่นี่", ARABIC,
        HEBREW, "I ♥ 🙂", "e\u0301",
    ],
)
def test_legitimate_text_of_many_languages_stays(text: str) -> None:
    assert not fault(text) and escaped(text) == text


def test_text_from_right_to_left_is_isolated_and_other_text_is_not_touched() -> None:
    assert isolated(ARABIC) == f"{_FSI}{ARABIC}{_PDI}" and isolated("Schlaf") == "Schlaf"
    assert shown(f"{HEBREW}\u202e") == f"{_FSI}{HEBREW}<U+202E>{_PDI}"
    assert shown(f"{HEBREW}\n{HEBREW}", lines=True).count(_PDI) == 2


# Publishing and joining


def _text(**changed: str) -> str:
    text = DECLARED
    for name, value in changed.items():
        text = re.sub(rf'(?m)^{name} = ".*"$', lambda _found, line=f'{name} = "{value}"': line, text, count=1)
    return text


def _published_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proposals are taken as they were before."""
    monkeypatch.setattr("anon.study.proposal.demand_seen", lambda _study: None)


@pytest.mark.parametrize("sign", PASSED_BEFORE)
def test_a_proposal_is_refused_with_the_characters_name_and_place(sign: str) -> None:
    said = rf"“title”: U\+{ord(sign):04X} \(.+\) at character 6 is not shown as it is written"
    with pytest.raises(Malformed, match=said):
        parse_proposal(_text(title=f"Sleep{sign}and coffee"))
    with pytest.raises(Malformed, match=r"“features\.cups\.categories\.2”: U\+"):
        parse_proposal(DECLARED.replace('"some"', f'"so{sign}me"'))
    with pytest.raises(Malformed, match=r"“label\.query”: U\+"):
        parse_proposal(DECLARED.replace("SELECT tired FROM", f"SELECT{sign}tired FROM"))


def test_every_text_of_a_study_is_walked() -> None:
    """A field of text that is added later is found too: nothing is listed by name."""
    manifest = FakeAggregator.with_study(DECLARED, Clock(START)).manifest
    places = {place for place, _text in texts_of(manifest)}
    assert {"title", "purpose", "contact", "design", "label.query", "features.age.description"} <= places
    assert faults_of(manifest) == () and faults_of(attrs.evolve(manifest, contact="a\u3164b"))


def test_a_study_published_earlier_is_readable_and_is_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    _published_earlier(monkeypatch)
    manifest = FakeAggregator.with_study(_text(contact="staff\u3164@example.org"), Clock(START)).manifest
    assert parse_manifest(manifest.to_bytes()) == manifest
    [said] = explain(manifest, Policy(minimum_cohort=2), Ledger(10 * 10**9, ()), START).objections
    assert said.startswith("“contact”: U+3164 (HANGUL FILLER) at character 6")


def test_a_key_that_no_manifest_has_begins_no_line_of_a_message() -> None:
    manifest = FakeAggregator.with_study(DECLARED, Clock(START)).manifest
    plain: Any = {"x\nrefused: all is well\u202e": 1, "title": manifest.title}
    with pytest.raises(Malformed) as caught:
        parse_manifest(encode(plain))
    assert "<U+000A>refused: all is well<U+202E>" in str(caught.value)


# The terminal


def _hostile(monkeypatch: pytest.MonkeyPatch) -> Manifest:
    _published_earlier(monkeypatch)
    text = _text(title=f"Sleep{PASSED_BEFORE}", purpose=f"To test{PASSED_BEFORE}", contact=f"staff{PASSED_BEFORE}")
    for plain in ('"some"', '"Your age."', '"You are tired."'):
        text = text.replace(plain, f'{plain[:-1]}{PASSED_BEFORE}"')
    return FakeAggregator.with_study(text, Clock(START)).manifest


def _sheet(manifest: Manifest, home: Path, capsys: pytest.CaptureFixture[str]) -> str:
    show_sheet(
        explain(manifest, Policy(), Ledger(10 * 10**9, ()), START),
        own_data(home / "data.sqlite", manifest.tables), home, queries=True,
    )  # fmt: skip
    return capsys.readouterr().out


def test_the_terminals_consent_screen_shows_hidden_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = _sheet(_hostile(monkeypatch), tmp_path, capsys)
    assert _bad(out) == set() and "<U+3164>" in out and "<U+E0041>" in out


@pytest.mark.slow
@pytest.mark.parametrize("field", ["title", "purpose", "contact"])
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_text_fills_its_line_and_begins_one_of_ours(
    field: str, columns: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a contact could: blanks up to the edge, then what looks like the program's own line."""
    monkeypatch.setenv("COLUMNS", str(columns))
    manifest = FakeAggregator.with_study(DECLARED, Clock(START)).manifest
    for before in (columns - 12, columns - 3, columns):
        out = _sheet(attrs.evolve(manifest, **{field: "x" + " " * before + FAKE}), tmp_path, capsys)
        assert sum(line.startswith("Fingerprint, to") for line in out.splitlines()) == 1
        assert all(line.startswith("│ ") for line in out.splitlines() if "zebra" in line)


def test_lines_fit_every_terminal_also_one_that_draws_doubtful_characters_wide() -> None:
    assert all(len(line) <= 10 for line in wrapped("①" * 35 + " " + "─" * 20, 20))
    assert wrapped("one two  three", 7) == ["one two", "three"]
    assert wrapped("e\u0301" * 3, 3) == ["e\u0301", "e\u0301", "e\u0301"]
    assert wrapped("    SELECT 1\n\n  x", 40) == ["    SELECT 1", "", "  x"]


def test_a_cell_isolates_each_of_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("title", "state", width=24)
    table.add_row(Foreign(f"{ARABIC} {ARABIC}"), "joined")
    Console(width=24).print(table)
    Console(width=24).print(framed(ARABIC * 3, "title"))
    for line in capsys.readouterr().out.splitlines():
        if any(unicodedata.bidirectional(sign) == "AL" for sign in line):
            begin, end = line.index(_FSI), line.index(_PDI)
            around = line[:begin] + line[end + 1 :]
            assert not any(unicodedata.bidirectional(sign) == "AL" for sign in around)


def test_a_files_name_begins_no_line_of_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a\n\u202ejoined: all is well.csv"
    file.write_bytes(b"\0\0")
    done = Command(tmp_path / "home", capsys, monkeypatch)("import", file)
    assert done.code == 3 and _bad(done.err) == set()
    assert not any(line.startswith(("joined", "\u202ejoined")) for line in done.err.splitlines())


def test_nothing_escapes_for_the_terminal_and_every_template_has_the_same_way() -> None:
    users = []
    for file in (one for side in ("anon", "peer", "aggregator") for one in (ROOT / side).rglob("*.py")):
        text = file.read_text("utf-8")
        tree = ast.parse(text if "escape" in text or "Environment" in text else "")
        names = {
            f"{node.module}.{one.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for one in node.names
        }
        if "rich.markup.escape" in names:
            users.append(file.relative_to(ROOT).as_posix())
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Name) and call.func.id == "Environment":
                given = {one.arg: one.value for one in call.keywords}
                assert isinstance(given["finalize"], ast.Name) and given["finalize"].id in ("seen", "shown"), file
    assert signature(templates_of).parameters["shown"].default is seen
    # The owner's page translates first, and shows in the same way.
    for text in ("plain", "\u202ehidden", "\u200b", "<b>"):
        assert languages.shown(text) == seen(text)
        assert languages.shown(say("{text}", text=Quoted(text))) == Markup("<bdi>“{}”</bdi>").format(seen(text))
    assert users == [], "a terminal without markup needs no escapes"


# Pages


def _seen_on(page: str) -> str:
    return unescape(re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL))


async def test_the_owners_page_shows_hidden_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _published_earlier(monkeypatch)
    text = _text(title=f"{ARABIC}{PASSED_BEFORE}", contact=f"staff{PASSED_BEFORE}", purpose=f"To{PASSED_BEFORE}")
    async with visited(tmp_path, text) as page:
        await page.submit("/", "/link", link=page.aggregator.invite.link())
        consent = (await page.get(page.invite)).text
        for got in (consent, (await page.get("/")).text):
            assert _bad(_seen_on(got)) == set() and "&lt;U+3164&gt;" in got
        assert f'<h1><bdi lang="">{_FSI}{ARABIC}' in consent and '<bdi lang="">staff' in consent
        assert "Yes, take part" not in consent and "title</bdi>: U+00A0 (NO-BREAK SPACE)" in consent.replace("”", "")
        cells = f"age,cups,tired\n1,so{PASSED_BEFORE}me,0\n".encode("utf-8", "surrogatepass")
        assert _bad(_seen_on((await page.upload("person.csv", cells)).text)) == set()


@pytest.mark.slow
async def test_the_desk_and_the_report_show_hidden_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _published_earlier(monkeypatch)
    clock, text = Clock(), study_text()
    for name in ("title", "purpose", "contact", "description"):
        text = re.sub(rf'(?m)^{name} = "(.*)"$', rf'{name} = "{HEBREW}\1{PASSED_BEFORE}"', text)
    text = text.replace('"Female"', f'"Female{PASSED_BEFORE}"')
    async with make_app(tmp_path / "home", clock) as app:
        running = await begin(app, clock, text)
        async with opened(app, running) as desk:
            place = f"/studies/{running.live.study.hex()}"
            await running.collected(4)
            await running.go_to(running.closes)
            report = (await published(running.live))["report", 0].decode()
            pages = [report] + [(await desk.get(path)).text for path in ("/", place, f"{place}/roster")]
    for page in pages:
        assert _bad(_seen_on(page)) == set() and "&lt;U+3164&gt;" in page
    assert f'<h1><bdi>{_FSI}{HEBREW}' in report and "<bdi>" in report


async def test_the_editor_gives_back_what_was_typed(tmp_path: Path) -> None:
    """A study with such a character is refused by name, and its text comes back to the letter, to be mended."""
    async with in_memory(tmp_path / "home", study_text()) as running, opened(running.app, running) as desk:
        text = study_text().replace('title = "Income"', f'title = "{HEBREW}\u3164"')
        await desk.get("/editor")
        page = await desk.post("/editor", text=text)
        assert "“title”: U+3164 (HANGUL FILLER) at character" in unescape(page.text)
        assert f'title = "{HEBREW}\u3164"' in unescape(page.text)


@pytest.mark.parametrize(("text", "shown"), [
    ("Ask your teacher\nfor the log.", "Ask your teacher for the log."),
    ("One  \n  two", "One two"),
    ("One\n\nTwo\nthree", "One\n\nTwo three"),
    ("Steps:\n1. open\n2. save\n- or not", "Steps:\n1. open\n2. save\n- or not"),
    ("1.5 cups\nof tea\n", "1.5 cups of tea\n"),
    ("", ""),
])  # fmt: skip
def test_a_paragraph_in_triple_quotes_is_one_line(text: str, shown: str) -> None:
    assert paragraphs(text) == shown
