"""A study that anybody may enter promises no anonymity and no central epsilon, in any text that is printed about it.

Every text of an open study and of the same study by invitation is searched for words of such a claim. By invitation the
search must find some: else it would be blind.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from aggregator.notebook import Study
from tests.support.clock import Clock
from tests.support.desk_browser import opened
from tests.support.fake_aggregator import DECLARED, advance, until_closed
from tests.support.peer_command import Command, serving
from tests.support.visiting import visited
from tests.support.world import begin, make_app, published, study_text

pytestmark = pytest.mark.slow

CLAIMS = re.compile(
    r"anonym|\bcentral|honest|\bhid(?:e|es|den|ing)\b|cannot tell|(?:nobody|nothing|no one)(?: here)? (?:can|that) tell"
    r"|which (?:one|packet) (?:was|is)|whose|crowd|unlink|untrace|mixing",
    re.IGNORECASE,
)

DENIALS = (
    "Admission was open to anyone. No claim of anonymity is made for this study.",
    "Admission was open to anyone: no central epsilon is claimed.",
    "With open admission the crowd may be invented; the local epsilon is the only promise.",
    "Do not count on hiding among the others; the epsilon above is all that protects you.",
    "Anyone can enrol here any number of times. Do not count on hiding among the others.",
)

NO_CLAIMS = (
    # How much a liar counts, what holds even if everything is linked, how the window is chosen, what a peer knows
    # itself.
    "even knowing whose they are",
    "1/(p − q) honest ones",
    "So short a window hides your being online less well.",
    "Your own machine knows which one was yours until it has looked for it in the published transcript",
    '"central": []',
)


def claims(text: str) -> list[str]:
    """The privacy claims in the text of a page or terminal, each with a few words around it."""
    plain = re.sub(r"<(style|script)\b.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)
    words = re.sub(r"\s+", " ", unescape(plain))
    for sentence in (*DENIALS, *NO_CLAIMS):
        words = words.replace(sentence, " ")
    return [words[max(one.start() - 60, 0) : one.end() + 60] for one in CLAIMS.finditer(words)]


def judged(admission: str, texts: dict[str, str], telling: set[str]) -> None:
    """No text of an open study claims anything; of one by invitation those that tell of it do."""
    found = {name: claims(text) for name, text in texts.items()}
    assert all(texts.values())
    if admission == "open":
        assert {name: some for name, some in found.items() if some} == {}
    else:
        assert {name for name, some in found.items() if some} >= telling


def asked(admission: str) -> str:
    """The peers' study with this admission."""
    return DECLARED.replace("[cohort]\n", f'[cohort]\nadmission = "{admission}"\n')


ADMISSIONS = pytest.mark.parametrize("admission", ["open", "invite"])


@ADMISSIONS
async def test_the_owner_s_page(tmp_path: Path, admission: str) -> None:
    async with visited(tmp_path, asked(admission)) as page:
        assert page.aggregator.manifest.cohort.admission == admission
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        texts = {"consent": (await page.get(page.invite)).text}
        await page.submit(page.invite, page.invite, answer="yes")
        texts["joined"] = (await page.get(page.study)).text
        aggregator, times = page.aggregator, page.aggregator.manifest.timetable
        await until_closed(page.peer, aggregator, 4)
        await advance(page.peer, aggregator, times.ends - 1)
        texts["sent"] = (await page.get(page.study)).text
        aggregator.transcribe()
        await advance(page.peer, aggregator)
        for place in ("/", "/budget", "/settings", page.study):
            got = await page.get(place)
            texts[place] = got.text if got.status == 200 else got.words
        assert page.peer.receipts() and "Local epsilon of each packet" in texts[page.study]
    judged(admission, texts, {"consent", page.study})


@ADMISSIONS
def test_the_peer_s_commands(command: Command, admission: str) -> None:
    with serving(asked(admission)) as served:
        file = command.home.parent / "person.csv"
        file.write_text("age,cups,tired\n30,some,1\n")
        texts = {"import": command("import", file).out}
        command("budget", "--minimum-cohort", "3")
        texts["look"] = command("look", served.link, "--queries").out
        texts["look as JSON"] = command("look", served.link, "--json").out
        asked_for = command("join", served.link, typed="no\n")
        texts["join"] = asked_for.out + asked_for.err
        texts["joined"] = command("join", served.link, "--yes").out
        texts["status"] = command("status").out
        texts["receipts"] = command("receipts").out
        texts["receipts as JSON"] = command("receipts", "--json").out
    judged(admission, texts, {"look"})


@ADMISSIONS
async def test_the_desk_the_report_and_the_documents(tmp_path: Path, admission: str) -> None:
    watch = Clock()
    async with make_app(tmp_path / "home", watch) as app:
        running = await begin(app, watch, study_text(admission=admission))
        async with opened(app, running) as desk:
            at = f"/studies/{running.live.study.hex()}"
            texts = {"enrolling": (await desk.get(at)).text}
            await running.collected(6)
            texts["collecting"] = (await desk.get(at)).text
            await running.go_to(running.closes)
            for place in ("", "/report", "/estimates"):
                got = await desk.get(at + place)
                if got.status == 200:
                    texts["desk" + place] = got.text
            texts["studies"] = (await desk.get("/")).text
        documents = await published(running.live)
    texts["report"] = documents["report", 0].decode()
    judged(admission, texts, {"report"})


@ADMISSIONS
def test_the_notebook_and_the_study_s_commands(command: Command, tmp_path: Path, admission: str) -> None:
    file = tmp_path / "study.toml"
    template = Path(__file__).resolve().parents[2] / "aggregator/study/study.toml"
    file.write_text(
        re.sub(r'#? ?admission = "[a-z-]+"', f'admission = "{admission}"', template.read_text("utf-8")), "utf-8"
    )
    study = Study(file)
    assert study.proposal.cohort.admission == admission
    people = study.made_up(400)
    result = study.run(people, seed=3)
    expected = study.simulate(people, trials=2)
    texts = {
        "study": study._repr_html_(),
        "people": people._repr_html_(),
        "result": result._repr_html_(),
        "report": result.report.html,
        "expectation": expected._repr_html_(),
        "lint": command.anonml("study", "lint", file).out,
        "published": command.anonml("study", "publish", file, "--home", tmp_path / "home", "--loopback").out,
    }
    judged(admission, texts, {"report"})


def test_the_search_sees_what_it_looks_for() -> None:
    assert claims("<p>Nobody can tell which packet is <b>yours</b>.</p>")
    assert claims("central epsilon at a delta of one in a million: 0.2")
    assert not claims(" ".join(DENIALS))
