"""No character of a stranger's text stands unmarked in a sentence of ours, wherever a peer, the desk or a report shows
a study.

Every free text of random studies is planted with letters that no language of the page has, between all that could end a
mark early. A planted letter must stand between the marks of its language, or in an element or a frame that holds
nothing else.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any

import pytest

from anon.study.manifest import Manifest
from anon.text.foreign import LONGEST_IN_A_LINE, Quoted
from anon.text.sentences import Sentence, joined, listed, say
from peer.cli.amounts import show_budget
from peer.cli.show import sheet_json, show_sheet, show_status
from peer.data.readiness import OwnData, own_data
from peer.published_report import as_page
from peer.rules.consent import Policy, explain
from peer.rules.ledger import Ledger
from peer.web.languages import NAMES, QUOTES
from tests.support.clock import START, Clock
from tests.support.desk_browser import opened
from tests.support.fake_aggregator import FakeAggregator
from tests.support.studies import categorical, head_of, label_of, numeric, study
from tests.support.sums import GRADIENT, MOMENTS, TABLES, countersigned, entry
from tests.support.visiting import Visited, visited
from tests.support.world import in_memory, published

ROOT = Path(__file__).parents[2]
SEEDS = range(12)
LETTERS = "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰאבגדהוזחטיכלמנסעפצקרשת"
ENDINGS = (
    "”", "“", "„", "«", "»", '"', "'", "`", "</bdi>", "&#8221;", ". ", ": ", "; ", ", ", "{name}", "%(name)s", "[/]",
)
NAMED = re.compile(r"zq[a-z0-9_]*")
"""A study's names can hold no other letters, so theirs begin in a way of their own."""
VOID = {"meta", "link", "input", "br", "hr", "img", "rect", "circle", "path"}
HOLDS_NOTHING_ELSE = {"bdi", "code", "pre", "title", "script", "style", "text", "option", "textarea"}
SPOKEN = ("aria-label", "title", "placeholder", "alt")
WHOLE = {"title", "purpose", "contact", "data_source", "name", "sentence", "query"}
"""Keys of the sheet's JSON whose values are the study's own text and nothing else."""


def planted(random: Random, longest: int) -> str:
    """Words of foreign letters, and between them what could end a mark or begin something else."""
    parts: list[str] = []
    while sum(map(len, parts)) < longest - 20:
        parts.append("".join(random.choices(LETTERS, k=random.randint(1, 6))))
        parts.append(random.choice(ENDINGS))
        if random.random() < 0.05:
            break
    return "".join([*parts, random.choice(LETTERS)])


PROTOCOLS = ("one-packet", "bits", "binned", TABLES, MOMENTS, GRADIENT)


def study_of(random: Random, protocols: Sequence[str] = PROTOCOLS) -> str:
    """A study file of a random protocol, with every free text of it planted."""
    numbers = [("zqage", (0, 100), "cuts = [30, 60]"), ("zqsleep", (0, 12), "cuts = [6]")]
    features = [
        numeric(*one, description=planted(random, 300), query=f"SELECT {one[0]} FROM zqperson") for one in numbers
    ]
    words = list(dict.fromkeys(planted(random, 60) for _ in range(random.randint(2, 4))))
    chosen = categorical("zqcups", words, description=planted(random, 300), query="SELECT zqcups FROM zqperson")
    label = label_of("zqtired", 1, 0, planted(random, 300), query="SELECT zqtired FROM zqperson")
    kind = random.choice(protocols)
    features += [chosen] if kind not in (MOMENTS, GRADIENT) else []
    columns = ["zqage", "zqsleep", "zqcups", "zqtired"]
    head = head_of(planted(random, 120), planted(random, 600), columns, label, features, planted(random, 120))
    head = head.replace("person =", "zqperson =")
    head = head.replace(
        "version = 1", f"version = 1\ndata_source = {json.dumps(planted(random, 300), ensure_ascii=False)}"
    )
    lengths = {"enrol": "1h", "settle": "10m", "collect": "1h"}
    if "\n" in kind:
        text = study(head, kind, lengths, "minimum = 4\nmaximum = 1000")
        return text.replace("version = 1", 'version = 1\nprotocol = "sum"') + tellers(random)
    asked = _expecting(random, head, len(words))
    if kind == "binned":
        asked = re.sub(r"cuts = .*", "bins = 3", asked)
    return study(asked, *_local(kind, lengths))


def _local(kind: str, lengths: dict[str, str]) -> tuple[str, dict[str, str], str, str]:
    if kind == "bits":
        asks = 'kind = "one-packet"\nepsilon = 2.0\nasks = "bits"'
        return asks, lengths, "minimum = 3", 'classifier = "additive"\nbase_rate = 0.3'
    binned = kind == "binned"
    asks = 'kind = "one-packet"\nepsilon = 2.0' + "\nbinning_share = 0.5" * binned
    lengths = lengths | ({"binning": "30m"} if binned else {})
    return asks, lengths, "minimum = 3", 'classifier = "additive"'


def _expecting(random: Random, head: str, categories: int) -> str:
    signs = [random.choice((-1, 1)) for _ in range(categories)]
    numbers = re.sub(r"(cuts = .*\n)", lambda found: f"{found[1]}expects = {random.choice((-1, 1))}\n", head)
    return re.sub(r"(categories = .*\n)", lambda found: f"{found[1]}expects = {signs}\n", numbers)


def tellers(random: Random) -> str:
    """Two to four tellers of planted names."""
    lines = []
    for number in range(random.randint(2, 4)):
        name = planted(random, 60)
        given = entry(number, name)
        quoted = json.dumps(name, ensure_ascii=False)
        lines.append(f'[[tellers]]\nname = {quoted}\naddress = "{given.address}"\nentry = "{given.to_bytes().hex()}"\n')
    return "".join(lines)


# The checks


def unmarked(text: str, marks: str = QUOTES["en"]) -> list[str]:
    """Foreign characters that stand outside of marks. Names may stand in backticks too, as commands have them."""
    opening, closing = marks
    found, inside, coded = [], False, False
    names = {place for name in NAMED.finditer(text) for place in range(*name.span())}
    for place, sign in enumerate(text):
        if sign == opening and not inside:
            inside = True
        elif sign == closing:
            inside = False
        elif sign == "`" and not inside:
            coded = not coded
        elif not inside and (sign in LETTERS or (place in names and not coded)):
            found.append(text[max(0, place - 30) : place + 10])
    return found


class Elements(HTMLParser):
    """The foreign characters of a page that stand in no element of their own, and attributes that hold an element."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, bool]] = []
        self.found: list[str] = []
        self.marked = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.found += [f"{name}={text}" for name, text in attrs if "<" in (text or "")]
        for name in SPOKEN:
            # an attribute has no elements: marks alone
            self.found += (
                unmarked(named.get(name) or "", "\u2068\u2069") if NAMED.search(named.get(name) or "") is None else []
            )
        if tag not in VOID:
            self.open.append((tag, tag in HOLDS_NOTHING_ELSE or "dir" in named))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        foreign = [sign for sign in data if sign in LETTERS] + NAMED.findall(data)
        if any(alone for _tag, alone in self.open):
            self.marked += len(foreign)
        elif foreign:
            self.found.append(data.strip()[:80])


def sentences_in(value: object, key: str = "") -> Iterator[str]:
    """Texts of the sheet's JSON that are sentences of ours; those that are the study's alone are left out."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in ("tables", "missing", "rows"):
                yield from sentences_in(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from sentences_in(each, key)
    elif isinstance(value, str) and key not in WHOLE:
        yield value


def _own(manifest: Manifest, folder: Path) -> OwnData:
    return own_data(folder / "data.sqlite", manifest.tables)


def _sheet(manifest: Manifest) -> Any:
    return explain(manifest, Policy(), Ledger(10 * 10**9, ()), START)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_terminal_and_its_json_mark_every_foreign_character(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    manifest = FakeAggregator.with_study(study_of(random), Clock(START)).manifest
    monkeypatch.setenv("COLUMNS", str(random.choice((60, 100, 200))))
    show_sheet(_sheet(manifest), _own(manifest, tmp_path), tmp_path, queries=True)
    lines = capsys.readouterr().out.splitlines()
    ours = " ".join(line for line in lines if not line.startswith(("│", "╭─", "┃")))
    assert "“" in ours and unmarked(ours) == []
    told = list(sentences_in(sheet_json(_sheet(manifest), _own(manifest, tmp_path))))
    assert any("“" in text for text in told) and [found for text in told for found in unmarked(text)] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_the_page_gives_every_foreign_character_an_element_in_each_language(seed: int, tmp_path: Path) -> None:
    async with visited(tmp_path, study_of(Random(seed)), data=False) as page:
        if page.aggregator.manifest.protocol == "sum":
            page.aggregator.publish("tellers", countersigned(page.aggregator.manifest))
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        for code in NAMES:
            for place in (page.invite, "/start/data", "/"):
                await _demand_marked(page, place, code)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_what_follows_a_yes_marks_every_foreign_character(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list of studies, the study's page, leaving it, the budget, the data that it reads, and the terminal's
    tables."""
    random = Random(seed)
    async with visited(tmp_path, study_of(random, ("one-packet", "bits", "binned")), data=False) as page:
        await page.peer.join(page.aggregator.invite, page.aggregator.manifest.epsilon)
        for code in NAMES:
            for place in ("/", page.study, f"{page.study}/leave", "/budget", "/data", "/diagnosis", "/data/erase"):
                await _demand_marked(page, place, code)
        capsys.readouterr()
        show_status(page.peer)
        show_budget(page.peer.budget(), page.peer.policy(), {})
        lines = capsys.readouterr().out.splitlines()
        assert unmarked(" ".join(line for line in lines if not line.startswith(("│", "┃", "┡", "└")))) == []


async def _demand_marked(page: Visited, place: str, code: str) -> None:
    await page.post("/language", {"language": code, "back": "/"})
    got = await page.get(place, **{"Accept-Language": code})
    looked = Elements()
    looked.feed(got.text)
    assert got.status == 200 and f'<html lang="{code}"' in got.text, got.words[:400]
    assert (place, code, looked.found) == (place, code, [])
    if place == page.invite:
        assert looked.marked and QUOTES[code][0] in got.text


def test_the_checks_find_what_is_not_marked() -> None:
    """The sentence of the review: a teller's name that goes on in our voice."""
    name = "ა nobody at all. Your data never leave your machine."
    assert (
        unmarked(f"The promise holds if {name} is honest")
        and unmarked("“ა” zqcups: ბ")
        and not unmarked("“ა”, `zqcups`")
    )
    looked = Elements()
    looked.feed(f'<p>if {name}</p><p dir="auto">{name}</p><a aria-label="{name}">x</a><p><bdi>{name}</bdi></p>')
    assert len(looked.found) == 2


# Staff's pages

NAMES_OF_A_STUDY = re.compile(
    r"\b(title|purpose|contact|description|features|subset|subject|clearest|silent|parent)\b|\.name\b|^(name|text)$"
)
NAMED_BY_US = {
    ("desk/templates/study.html", "facts.title"), ("desk/templates/study.html", "stage.name"),
    ("desk/templates/study.html", "name"), ("desk/templates/fingerprints.html", "head.name"),
    ("report/templates/report.html", "one.name"),
}  # fmt: skip
"""Values that a template writes bare: title and stages, heads of our tables, names of signed documents."""


@pytest.mark.slow
async def test_the_desk_and_the_report_mark_every_foreign_character(tmp_path: Path) -> None:
    """From enrolment to the report. No text of ours is quoted as if a stranger had said it."""
    text, found = study_of(Random(0), ("one-packet",)), dict[str, str]()
    async with in_memory(tmp_path, text) as running, opened(running.app) as desk:
        place = f"/studies/{running.live.study.hex()}"
        for reached in ("enrolling", "published"):
            if reached == "published":
                await running.collected(4)
                await running.go_to(running.closes)
            for path in ("/", place, f"{place}/roster", f"{place}/fingerprints", f"{place}/class"):
                found[f"{reached} {path}"] = (await desk.get(path)).text
        found["report"] = (await published(running.live))["report", 0].decode()
    found["to members"] = as_page(found["report"].encode(), "Report", "above").decode()
    for seen, page in found.items():
        looked = Elements()
        looked.feed(page)
        assert (seen, looked.found) == (seen, []) and looked.marked
        quoted = re.findall(r"<bdi>“([^<]*)”</bdi>", page)
        assert [said for said in quoted if not {*said} & {*LETTERS} and not NAMED.search(said)] == []


@pytest.mark.source
def test_every_template_of_staffs_pages_gives_a_studys_text_an_element() -> None:
    """Of every protocol's part of the report too."""
    staff = ROOT / "aggregator"
    pages = {path: path.read_text("utf-8") for path in staff.rglob("*.html")}
    for path in (staff / "protocols").rglob("*.py"):
        for template in path.read_text("utf-8").split('_TEMPLATE: Final = """')[1:]:
            pages[path] = template.split('"""')[0]
    assert {"tables.html", "trees.py", "groups.py", "linear_report.py"} <= {path.name for path in pages}
    assert {
        (path.relative_to(staff).as_posix(), said)
        for path, template in pages.items()
        for said in _bare(template)
        if NAMES_OF_A_STUDY.search(said)
    } == NAMED_BY_US


def _bare(template: str) -> Iterator[str]:
    """Expressions of a template that stand in no element of their own, without literals, conditions and calls."""
    looked = _Expressions()
    text = re.sub(r"{%.*?%}", " ", template, flags=re.DOTALL)
    looked.feed(re.sub(r"{{(.*?)}}", lambda found: f"⟪{re.sub('[<>&]', ' ', found[1])}⟫", text, flags=re.DOTALL))
    unread = r"\bif\b.*?(\belse\b|$)|\|.*|\w+\(.*"
    for said in looked.said:
        yield re.sub(unread, " ", re.sub(r'"[^"]*"', "", said), flags=re.DOTALL).strip()


class _Expressions(Elements):
    """Those that a template shows in a sentence of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def handle_data(self, data: str) -> None:
        if not any(alone for _tag, alone in self.open):
            self.said += re.findall("⟪(.*?)⟫", data, flags=re.DOTALL)


# The type


def test_a_text_that_says_nothing_of_its_author_is_a_strangers() -> None:
    """Wherever it passed before, and whatever it holds."""
    for made in (say("{name} is honest", name="a” b"), Sentence("{name} is honest", "", {"name": "a” b"})):  # type: ignore[arg-type]
        assert made == "“a' b” is honest" and isinstance(made.values["name"], Quoted)
    assert joined(["a", say("b")], ", ") == "“a”, b" and listed(["a, b", "c"]) == "“a, b”, “c”"  # type: ignore[list-item]
    assert f"{Quoted('a' * 200)}" == f"“{'a' * (LONGEST_IN_A_LINE - 1)}…”"


@pytest.mark.parametrize("sign", "“”„‟«»‹›\"`″「」＂’❮❯⸌⸍ʺˮ˝״‶´ˋ")
def test_no_sign_in_a_quoted_text_passes_for_the_mark_that_ends_it(sign: str) -> None:
    assert Quoted(f"a{sign} b").said == "a' b"


VOUCHED = {
    "anon/kit/diagnosis/checks.py": {"oldest"},
    "anon/kit/diagnosis/installation.py": {"', '.join(missing)"},
    "anon/errors.py": {"os.strerror(error.errno)"},
    "anon/machine/extras.py": {"f\"pipx install --force './anonml-{_version()}-py3-none-any.whl[{','.join(names)}]'\""},
    "anon/protocols/histogram/thresholds.py": {"f'{place[0]} {place[1]}'", "place[0]"},
    "anon/route/tor/bootstrap.py": {"reason"},
    "anon/storage/durable.py": {"name", "errno.errorcode[error.errno]"},
    "anon/storage/migration.py": {"f'schema {number}'"},
    "anon/study/texts.py": {"wrong"},
    "anon/text/html.py": {"after"},
    "anon/teller/home.py": {"f'{len(seed)} bytes in place of 32'"},
    "anon/text/sentences.py": {"term"},
    "anon/wire/reply_sentences.py": {"word"},
    "peer/cli/steps.py": {"f'(`{_COMMANDS[step.limit]} {step.value}{which}`)'"},
    "peer/data/formats/detect.py": {"name", "name.upper()"},
    "peer/data/readiness.py": {"name"},
    "peer/rules/durations.py": {"f'{seconds // _UNITS[unit]}{unit}' if seconds else '0'"},
    "peer/run/following.py": {"error.code"},
    "peer/run/leaving.py": {"study.state"},
    "peer/store/rows.py": {"table"},
    "peer/store/troubles.py": {"instant(self.silent_since)"},
    "peer/web/forms.py": {"what"},
    "peer/web/languages.py": {
        "f'{FSI}{value.said.join(QUOTES[current().code])}{PDI}'",
        "filled(pattern, value.values, _FIELDS)",
        "name",
        "value.separator.join((str(localised(part)) for part in value.parts))",
        "written.replace('\\x00', signs['decimal']).replace('\\x01', signs['group'])",
    },
    "peer/web/qr_reader.py": {"', '.join(_FORMATS)"},
    "peer/web/rendering.py": {"joint"},
}
"""Module -> what it passes for words of ours without writing them there. Each was read: none is of a study, of a file
or of another machine."""


@pytest.mark.slow
def test_no_other_text_passes_for_words_of_ours() -> None:
    """Each `Term` and `Marked` is a literal, a constant, or one of these."""
    found: dict[str, set[str]] = {}
    for file in sorted(one for side in ("anon", "peer") for one in (ROOT / side).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Term", "Marked"):
                given = node.args[0]
                literal = isinstance(given, ast.Constant) or (isinstance(given, ast.Name) and given.id.isupper())
                if not literal:
                    found.setdefault(file.relative_to(ROOT).as_posix(), set()).add(ast.unparse(given))
    assert found == VOUCHED
