"""Every page over HTTP, without scripts: what it says, and what its forms do."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import aiohttp
import attrs
import pytest

from anon.ldp import NANO
from anon.transparency.fingerprint import words
from peer.cli.show import show_sheet
from peer.data.importing import import_rows
from peer.data.readiness import own_data
from peer.pairing import page as phones
from peer.rules.consent import Policy, explain
from peer.rules.ledger import Entry, Ledger
from peer.rules.lifecycle import State
from peer.store import rows
from peer.web.server import PageServer
from tests.support.clock import START
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, advance, until_closed, until_state
from tests.support.tries import every
from tests.support.visiting import Visited, visited


async def looked(page: Visited) -> str:
    """Paste the link; the consent screen's text."""
    got = await page.submit("/", "/link", link=page.aggregator.invite.link())
    assert got.url.endswith(page.invite)
    return (await page.get(page.invite)).text


async def joined(page: Visited) -> None:
    await looked(page)
    got = await page.submit(page.invite, page.invite, answer="yes")
    assert got.url.endswith(page.study), got.words


# The wizard


@pytest.mark.slow
async def test_a_newcomer_is_led_from_a_link_to_the_consent_screen(tmp_path: Path) -> None:
    async with visited(tmp_path, data=False) as page:
        assert "Begin" in (await page.get("/")).text
        step = await page.submit("/start/connect", "/start/connect", link=f"  {page.aggregator.invite.link()}\n")
        assert step.url.endswith("/start/data")
        step = await page.get("/start/data")
        assert "table person with “age”, “cups”, “tired”" in step.words
        assert "lacks" not in step.words, "nobody is warned before anything was chosen"
        preview = await page.upload("sleep.csv", b"age,cups,tired\n41,many,0\n", "start")
        place = preview.url.removeprefix(page.server.address)
        form = preview.form(place)
        assert form["table"] == "person" and "41" in preview.text  # the only table that is read and not there
        limits = {"lifetime": "4", "per_study": "3", "minimum_cohort": "3"}
        assert set(limits) <= set(form)
        refused = await page.post(place, form | limits | {"answer": "import", "lifetime": "much"})
        assert refused.status == 400 and page.server.site.tables() == {}  # nothing of it was done
        done = await page.post(place, form | limits | {"answer": "import"})
        assert done.url.endswith(page.invite) and "Imported: 1 row into “person”" in done.words
        assert page.peer.policy().lifetime == 4 * 10**9
        step = await page.submit("/start/budget", "/start/budget", lifetime="5")
        assert step.url.endswith(page.invite) and page.peer.policy().lifetime == 5 * 10**9
        assert page.invite in (await page.get("/start/finish")).text
        assert page.aggregator.posts == []  # nothing about the owner has left
        assert "lacks something" not in (await page.get(page.invite)).words


async def test_who_asks_and_why_come_before_the_choice_of_a_file(tmp_path: Path) -> None:
    text = f'data_source = "Profile, then Download my data."\n{DECLARED}'
    async with visited(tmp_path, text, data=False, enter=False) as page:
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        page.server.site.landing = "/start"
        await page.get(page.server.link)
        got, manifest = await page.get("/start/data"), page.aggregator.manifest
        order = [
            manifest.title,
            manifest.purpose,
            manifest.contact,
            "Profile, then Download my data.",
            "A file of yours",
        ]
        places = [got.words.index(words) for words in order]
        assert places == sorted(places)
        assert "Profile, then Download" in (await page.get("/data")).words
        assert "Profile, then Download" in (await page.get(page.invite)).words


async def test_a_study_that_does_not_say_where_its_file_comes_from_says_nothing(page: Visited) -> None:
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    assert "Where your file comes from" not in (await page.get("/start/data")).words + (await page.get("/data")).words


async def test_data_that_lack_something_lead_back_to_choosing_data(tmp_path: Path) -> None:
    async with visited(tmp_path, data=False) as page:
        await page.submit("/start/connect", "/start/connect", link=page.aggregator.invite.link())
        preview = await page.upload("sleep.csv", b"age,cups\n41,many\n", "start")
        place = preview.url.removeprefix(page.server.address)
        done = await page.post(place, preview.form(place) | {"answer": "import", "column.tired": "-"})
        assert done.url.endswith("/start/data") and "no column person.tired" in done.words


async def test_a_program_that_was_started_with_a_link_leads_to_it_once(tmp_path: Path) -> None:
    async with visited(tmp_path, data=False, enter=False) as page:
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        page.server.site.landing = "/start"
        assert (await page.get(page.server.link)).url.endswith("/start/data")
        assert "Waiting for your answer" in (await page.get("/")).words


@pytest.mark.parametrize("link", ["", "http://evil.example", "anonml://", "anonml://127.0.0.1:1/00?key=00", "x" * 5000])
async def test_what_is_no_link_is_refused_with_what_to_do(page: Visited, link: str) -> None:
    got = await page.submit("/start/connect", "/start/connect", link=link)
    assert got.status == 400 and ("ask for it again" in got.words or "ask for the link again" in got.words)


async def test_a_link_that_nobody_answers_can_be_tried_again(page: Visited) -> None:
    page.aggregator.deaf.add("heads")
    await page.submit("/", "/link", link=page.aggregator.invite.link())
    got = await page.get(page.invite)
    assert got.status == 502 and "Try again" in got.text
    page.aggregator.deaf.clear()
    assert (await page.get(page.invite)).status == 200


async def test_a_wrong_file_on_the_way_to_consent_leads_back_to_choosing_one(page: Visited) -> None:
    await page.submit("/", "/link", link=page.aggregator.invite.link())
    refused = await page.upload("picture.csv", b"\x7fELF\x00\x01", "start")
    assert "That did not work" in refused.text and 'href="/start/data">Try again' in refused.text
    preview = await page.upload("sleep.csv", b"age,cups,tired\n41,many,0\n", "start")
    place = preview.url.removeprefix(page.server.address)
    wrong = await page.post(place, preview.form(place) | {"answer": "import", "lifetime": "-1"})
    assert "go back and correct it" in wrong.words and f'href="{place}">Try again' in wrong.text


async def test_a_wrong_file_among_my_data_leads_back_to_my_data(page: Visited) -> None:
    refused = await page.upload("picture.csv", b"\x7fELF\x00\x01")
    assert 'href="/data">Try again' in refused.text


@pytest.mark.parametrize(("name", "value"), [
    ("lifetime", "-1"), ("lifetime", "much"), ("per_study", ""), ("minimum_cohort", "1"), ("minimum_cohort", "two"),
    ("lifetime", "0.00000000001"), ("lifetime", "nan"),
])
async def test_limits_that_cannot_be_change_nothing(page: Visited, name: str, value: str) -> None:
    before = page.peer.policy()
    got = await page.submit("/budget", "/budget", **{name: value})
    assert got.status == 400 and page.peer.policy() == before


# Consent


async def test_the_consent_screen_says_all_that_it_must(page: Visited) -> None:
    text = await looked(page)
    got = await page.get(page.invite)
    manifest = page.aggregator.manifest
    for said in (
        manifest.title, manifest.purpose, manifest.contact, "Your age.", "How much coffee you drink.", "You are tired.",
        words(page.aggregator.study), "Epsilon 2 of your lifetime budget", "10 left of your budget this study needs 2",
        "cannot be called back", "None that you joined", "That you take part is visible",
        "This is no part of what you say yes to", "Of people with your answer, about ", "SELECT cups FROM person",
    ):
        assert said in got.words, said
    assert "<svg" in text.partition('class="code"')[2]
    own = text.partition("Your own answer</h2>")[2].partition("</table>")[0]
    assert ">30<" in own and "some" in own and "up to 30" in own
    assert page.aggregator.posts == [] and page.peer.status() == []


async def test_the_first_layer_is_short_and_holds_the_decision(page: Visited) -> None:
    """Some 200 words of ours, beside the study's own and the owner's values. Everything else is folded below."""
    text = await looked(page)
    first, _, below = text.partition('<section id="first">')[2].partition("<h2>All details</h2>")
    assert 'value="no"' in first and 'value="yes"' in first and "<details" not in first
    assert re.sub(r"<details.*?</details>", "", below, flags=re.DOTALL).split("</main>")[0].strip() == ""
    own = re.sub(r'<(table|dl|h1)\b.*?</\1>|<p class="lead.*?</p>|<svg.*?</svg>|<[^>]*>', " ", first, flags=re.DOTALL)
    assert 100 < len(own.split()) < 215, len(own.split())


@pytest.mark.parametrize(("missing", "counted"), [("negative", "a no"), ("positive", "a yes")])
async def test_consent_says_unfolded_what_leaves_where_an_answer_is_missing(
    missing: str, counted: str, tmp_path: Path
) -> None:
    """Also to those who have one: a computer that is late sends the missing answer."""
    async with visited(tmp_path, DECLARED.replace('missing = "negative"', f'missing = "{missing}"')) as page:
        first = (await looked(page)).partition("<h2>All details</h2>")[0]
        told = attrs.evolve(await page.get(page.invite), text=first).words
        assert "If your computer is not ready in time, missing values leave in place of yours." in told
        assert f"Where “tired” is missing, it counts as {counted}." in told
        listed = explain(page.aggregator.manifest, Policy(), Ledger(10 * NANO), START).statements
        assert f"Where “tired” is missing, it counts as {counted}." in listed, "in the terminal too"


@pytest.mark.parametrize(("epsilon", "warned"), [("2.302", False), ("2.303", True), ("5", True)])
async def test_consent_warns_of_an_epsilon_that_moves_odds_more_than_tenfold(
    epsilon: str, warned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the page beside the decision, and where the terminal shows the study."""
    async with visited(tmp_path, DECLARED.replace("epsilon = 2.0", f"epsilon = {epsilon}")) as page:
        first = (await looked(page)).partition("<h2>All details</h2>")[0]
        said = f"Epsilon {epsilon} protects little: a guess about you that is right 5 times in 10 can become right"
        assert (f'<p class="said warn">{said} more than 9 times in 10.</p>' in first) is warned
        sheet = explain(page.aggregator.manifest, Policy(), Ledger(10 * NANO), START)
        own = own_data(page.home.data_path, page.aggregator.manifest.tables)
        show_sheet(sheet, own, page.home.path, queries=False, code=False)
        assert (said in " ".join(capsys.readouterr().out.split())) is warned


async def test_a_value_that_counts_as_missing_is_named_before_the_yes(page: Visited) -> None:
    import_rows(page.home.data_path, "person", ("age", "cups", "tired"), [("old", "Many", 1)])
    await looked(page)
    words = (await page.get(page.invite)).words
    assert "These count as missing: “age”, “cups”. You can take part all the same" in words
    assert 'value="yes"' in (await page.get(page.invite)).text, "no content is refused"


async def test_each_thing_that_lacks_is_ticked_by_itself(page: Visited) -> None:
    import_rows(page.home.data_path, "person", ("age",), [(30,)])
    text = await looked(page)
    assert 'name="unready" value="person.cups"' in text and 'name="unready" value="person.tired"' in text
    left = await page.submit(page.invite, page.invite, answer="yes", unready="person.cups")
    assert left.status == 400 and "did not tick all of it" in left.words and page.peer.status() == []
    form = (await page.get(page.invite)).form(page.invite) | {"answer": "yes"}
    ticks = [("unready", name) for name in ("person.cups", "person.tired")]
    got = await page.post(page.invite, {}, aiohttp.FormData([*form.items(), *ticks]))
    assert got.url.endswith(page.study)


async def test_no_is_the_first_button_and_the_one_that_enter_presses(page: Visited) -> None:
    text = await looked(page)
    form = text.partition(f'<form method="post" action="{page.invite}">')[2].partition("</form>")[0]
    assert form.index('value="no"') < form.index('value="yes"')
    assert form.count("<button name=") == 2, "both weigh the same"
    got = await page.submit(page.invite, page.invite)  # no button at all: a no
    assert "You declined" in got.words and page.peer.status() == [] and page.aggregator.posts == []
    assert (await page.get(page.invite)).status == 400  # the link is forgotten


async def test_a_yes_reserves_and_asks_nothing_more(page: Visited) -> None:
    await joined(page)
    [one] = page.peer.status()
    assert (one.state, one.reserved) == (State.CONSENTED, page.aggregator.manifest.epsilon)
    again = await page.submit("/", "/link", link=page.aggregator.invite.link())
    assert again.url.endswith(page.study) and "answered this study already" in again.words
    assert (await page.get(page.invite)).url.endswith(page.study), "a bookmark of the question leads to the study"


async def test_what_was_agreed_to_can_be_read_again(page: Visited) -> None:
    await joined(page)
    assert f'href="{page.study}/agreed"' in (await page.get(page.study)).text
    page.server.site.invites.clear()
    got = await page.get(page.study + "/agreed")
    manifest = page.aggregator.manifest
    for said in (
        "You said yes to this study", manifest.title, manifest.contact, "Your age.", "SELECT cups FROM person",
        "Epsilon 2 of your lifetime budget", "Of people with your answer, about ",
        f"With fewer than {page.peer.store.study(page.aggregator.study).minimum_cohort} members",
    ):  # fmt: skip
        assert said in got.words, said
    assert "Decide by the odds" not in got.words and 'name="answer"' not in got.text


async def test_a_yes_says_to_keep_the_program_running(page: Visited) -> None:
    await looked(page)
    got = await page.submit(page.invite, page.invite, answer="yes")
    assert got.words.count("Keep this program running until your packet is sent") == 1
    assert "You take part. Your enrolment leaves by itself." in got.words
    assert "all that you send leaves within it" in got.words, "there is one window, and nothing is drawn"


async def test_ones_own_minimum_is_told_before_the_decision(page: Visited) -> None:
    page.peer.set_policy(attrs.evolve(page.peer.policy(), minimum_cohort=20))
    first = (await looked(page)).partition("All details")[0]
    assert "(20 people, set by the program at the start) stops this study for you if fewer enrol" in first
    assert f'href="/budget?question={page.aggregator.study.hex()}#minimum_cohort"' in first
    assert "as few as" not in first
    words = (await page.get(page.invite)).words
    among = words.partition("Who you are among With fewer than 20 members nothing of yours is sent")[2]
    fewest = page.aggregator.manifest.cohort.minimum
    assert f"That is your own limit. The study itself needs {fewest} members" in among
    assert f"{fewest} members, the fewest" not in among and "At least 20" not in words


@pytest.mark.slow
async def test_a_lowered_limit_warns_of_all_studies_and_leads_back_to_the_question(page: Visited) -> None:
    await looked(page)
    page.peer.set_policy(attrs.evolve(page.peer.policy(), minimum_cohort=20))
    place = f"/budget?question={page.aggregator.study.hex()}"
    assert f'href="{page.invite}"' in (await page.get(place)).text
    asked = await page.submit(place, "/budget", minimum_cohort="3")
    assert "You lower your limit from 20 people to 3. That holds for every study" in asked.words
    assert page.peer.policy().minimum_cohort == 20
    done = await page.post("/budget", asked.form("/budget") | {"sure": "yes"})
    first = done.words.partition("All details")[0]
    assert done.url.endswith(page.invite) and "They hold for all studies." in first
    assert "stops this study for you" not in first and "among as few as 3 people" in first
    elsewhere = await page.submit("/budget?question=https://example.org", "/budget", minimum_cohort="4")
    assert elsewhere.url.endswith("/budget")


async def test_all_that_depends_on_the_state_renews_itself(page: Visited) -> None:
    """Each form and heading of a study's page that comes or goes lies in a part that `live.js` renews."""
    await joined(page)
    early = (await page.get(page.study)).text
    live = "".join(re.findall(r'<div id="\w+" data-live>(.*?)\n?</div>\n(?=<div id|<h2>One story)', early, re.DOTALL))
    for part in ("/pause", "/leave", "Sending windows", "The model and you", "Keep this program running"):
        assert part in early and part in live, part


async def test_a_yes_is_for_the_epsilon_that_was_shown(page: Visited) -> None:
    await looked(page)
    got = await page.submit(page.invite, page.invite, answer="yes", epsilon="1000000000")
    assert got.status == 400 and "you approved epsilon 1" in got.words and page.peer.status() == []


async def test_no_yes_is_offered_beyond_the_budget(page: Visited) -> None:
    await page.submit("/budget", "/budget", lifetime="1")
    text = await looked(page)
    assert 'value="yes"' not in text and "Not possible: " in text
    got = await page.submit(page.invite, page.invite, answer="yes")
    assert got.status == 400 and page.peer.status() == []


async def test_without_the_data_a_yes_needs_a_tick(tmp_path: Path) -> None:
    async with visited(tmp_path, data=False) as page:
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        assert "no table “person”" in (await page.get(page.invite)).words
        got = await page.submit(page.invite, page.invite, answer="yes")
        assert got.status == 400 and page.peer.status() == []
        await page.submit(page.invite, page.invite, answer="yes", unready="person")
        assert len(page.peer.status()) == 1


async def test_earlier_studies_of_the_same_aggregator_are_listed_with_their_cost(page: Visited) -> None:
    other = Entry(bytes(32), "Last term", page.aggregator.invite.key, "default", reserved=0, spent=1_500_000_000)
    with page.peer.store._writing("test") as connection:
        rows.insert(connection, "ledger", attrs.asdict(other))
    await looked(page)
    got = await page.get(page.invite)
    assert "“Last term”: epsilon 1.5 spent" in got.words and "8.5 left of your budget" in got.words


@pytest.mark.parametrize("text", [BINNED, PAPER])
async def test_other_designs_are_explained_too(tmp_path: Path, text: str) -> None:
    async with visited(tmp_path, text) as page:
        got = await looked(page)
        assert got.count('class="card odds"') == len(
            {(one.kind, one.mechanism, one.m, one.p, one.q) for one in page.aggregator.manifest.surveys}
        )


async def test_a_title_that_is_code_is_text(tmp_path: Path) -> None:
    async with visited(tmp_path, DECLARED.replace("Sleep and coffee", "<script>alert(1)</script>")) as page:
        text = await looked(page)
        assert "<script>alert" not in text and "&lt;script&gt;alert" in text


# Studies


async def test_the_front_page_shows_studies_budget_and_windows(page: Visited) -> None:
    await joined(page)
    got = await page.get("/")
    assert "Sleep and coffee" in got.words and "Enrolling" in got.words and "Next sending windows" in got.words
    assert got.attribute("data-reserved") == [str(page.aggregator.manifest.epsilon)]


@pytest.mark.slow
async def test_windows_are_shown_and_never_the_instant_or_the_content(page: Visited) -> None:
    await joined(page)
    await until_closed(page.peer, page.aggregator)
    await until_state(page.peer, page.aggregator, State.CHECKED)
    [packet] = page.peer.store.outbox(page.aggregator.study)
    got = await page.get(page.study)
    window = page.aggregator.manifest.windows[0]
    from peer.web.rendering import instant

    assert str(instant(window.opens)) in got.text and str(instant(window.closes)) in got.text
    assert str(instant(packet.send_at)) not in got.text and "packet 1 waits for its time" in got.words
    assert packet.sealed is not None and packet.sealed.ciphertext.hex() not in got.text


async def test_pausing_a_study_stops_it_and_going_on_ends_it(page: Visited) -> None:
    await joined(page)
    got = await page.submit(page.study, page.study + "/pause", seconds="3600")
    assert "Paused until" in got.words
    assert await page.peer.step(page.aggregator.study) == START + 3600 and page.aggregator.posts == []
    assert "Paused" in (await page.get("/")).words
    await page.submit(page.study, page.study + "/resume")
    await page.peer.step(page.aggregator.study)
    assert len(page.aggregator.sent("enrol")) == 1


async def test_pausing_everything_is_on_the_front_page(page: Visited) -> None:
    await joined(page)
    await page.submit("/", "/pause", seconds="3600")
    assert page.peer.paused_until() == START + 3600 and "Paused until" in (await page.get("/")).words
    await page.submit("/", "/resume")
    assert page.peer.paused_until() is None


@pytest.mark.parametrize("seconds", every(2, ["", "-5", "0", "9" * 14, "x", "1e3"]))
async def test_a_pause_without_a_length_changes_nothing(page: Visited, seconds: str) -> None:
    await joined(page)
    assert (await page.submit("/", "/pause", seconds=seconds)).status == 400
    assert page.peer.paused_until() is None


@pytest.mark.slow
async def test_leaving_asks_first(page: Visited) -> None:
    await joined(page)
    asked = await page.get(page.study + "/leave")
    assert "strikes you off" in asked.words and "Stay" in asked.words
    assert (await page.submit(page.study + "/leave", page.study + "/leave")).status == 400
    assert page.peer.store.state(page.aggregator.study) is State.CONSENTED
    got = await page.submit(page.study + "/leave", page.study + "/leave", answer="leave")
    assert "You left this study" in got.words and page.peer.budget().held == 0


async def test_a_whole_study_leaves_receipts_and_history(page: Visited) -> None:
    await joined(page)
    await until_closed(page.peer, page.aggregator)
    await advance(page.peer, page.aggregator, float(page.aggregator.manifest.windows[-1].closes))
    page.aggregator.transcribe()
    await advance(page.peer, page.aggregator)
    got = await page.get("/history")
    assert "found in the published transcript" in got.words and "Finished" in got.words
    assert "Local epsilon of each packet" in (await page.get(page.study)).words


@pytest.mark.parametrize(
    "path",
    [
        "/study/00",
        "/study/" + "0" * 64,
        "/invite/" + "ab" * 32,
        "/data/preview/x",
        "/evidence/0",
        "/data/preview/" + "0" * 24,
        "/data/preview/..%2f..",
        "/data/imported/x",
        "/study/zz/leave",
    ],
)
async def test_what_is_not_there_is_said_and_nothing_falls_over(page: Visited, path: str) -> None:
    assert (await page.get(path)).status in (400, 404)


# Data


async def test_a_file_is_looked_at_before_it_becomes_a_table(page: Visited) -> None:
    preview = await page.upload("Log (1).csv", b"person,steps\na,5\nb,7\n")
    assert (
        "2 rows, 2 columns" in preview.words
        and "Log (1).csv" in preview.words
        and set(page.server.site.tables()) == {"person"}
    )
    place = preview.url.removeprefix(page.server.address)
    form = preview.form(place)
    assert form["table"] == "log_1"
    await page.post(place, form | {"answer": "import", "whose": "all"})
    assert page.server.site.tables()["log_1"] == ("person", "steps")
    assert not [one for one in page.home.path.rglob("*") if "Log" in one.name]


async def test_a_file_can_be_dropped_and_is_gone(page: Visited) -> None:
    preview = await page.upload("secret.csv", b"steps\n5\n")
    place = preview.url.removeprefix(page.server.address)
    got = await page.post(place, preview.form(place) | {"answer": "drop"})
    assert "Nothing was imported" in got.words and "secret" not in page.server.site.tables()
    assert not [one for one in page.home.path.rglob("*") if "secret" in one.name]
    assert (await page.get(place)).status == 400


async def test_copies_are_told_apart_and_another_file_takes_the_place_of_a_wrong_one(page: Visited) -> None:
    await page.upload("first.csv", b"steps\n5\n")
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    await page.get(page.invite)
    wrong = await page.upload("wrong.csv", b"shoes,size\nred,41\n")
    shown = (await page.get("/data")).words
    assert "Look at “first.csv”" in shown and "Remove the copy of “wrong.csv”" in shown
    data = aiohttp.FormData(quote_fields=False)
    for key, value in wrong.form("/data/upload").items():
        data.add_field(key, value)
    data.add_field("file", b"age,cups,tired\n31,none,0\n", filename="right.csv", content_type="text/csv")
    await page.post("/data/upload", {}, data)
    assert set(page.server.site.copies().values()) == {"first.csv", "right.csv"}


async def test_rows_can_be_added_to_a_table(page: Visited) -> None:
    preview = await page.upload("person.csv", b"age,cups,tired\n31,none,0\n")
    place = preview.url.removeprefix(page.server.address)
    await page.post(place, preview.form(place) | {"answer": "import", "mode": "append"})
    from peer.data.readiness import own_data

    assert own_data(page.home.data_path, page.aggregator.manifest.tables).rows == {"person": 2}


@pytest.mark.parametrize(("name", "content"), [
    ("empty.csv", b""), ("noise.csv", bytes(range(256)) * 50), ("x.json", b"{"), ("../../evil.csv", b"\xff\xfe\x00"),
])
async def test_a_file_that_cannot_be_read_is_said_and_nothing_changes(page: Visited, name: str, content: bytes) -> None:
    got = await page.upload(name, content)
    assert got.status in (200, 400)
    assert set(page.server.site.tables()) == {"person"} and not (page.home.path.parent / "evil.csv").exists()


async def test_names_of_files_and_cells_are_text(page: Visited) -> None:
    preview = await page.upload("<b>x<b>.csv", b"age\n<script>alert(1)</script>\n")
    assert "<script>alert" not in preview.text and "<b>x" not in preview.text


async def test_several_files_at_once_stay_apart(page: Visited) -> None:
    first, second = await asyncio.gather(page.upload("a.csv", b"one\n1\n"), page.upload("b.csv", b"two\n2\n"))
    assert first.url != second.url and "one" in first.words and "two" in second.words


async def test_work_that_another_window_begins_anew_is_told(page: Visited) -> None:
    """Before, the page's connection was cut."""
    site = page.server.site
    looking = asyncio.create_task(page._got("GET", "/diagnosis"))
    while site.jobs.get("diagnosis") is None:
        await asyncio.sleep(0)
    site.forget("diagnosis")
    got = await looking
    assert got.status == 409 and "begun anew in another window" in got.words


# Diagnosis


async def test_each_fault_has_one_next_action(page: Visited) -> None:
    await joined(page)
    page.home.data_path.unlink()
    got = await page.get("/diagnosis")
    assert "Do this:" in got.words and "no table “person”" in got.words
    assert got.text.count("Do this:") == got.text.count('class="no"')
    assert "ok tokens (made and verified)" in got.words


async def test_a_link_that_waits_is_listed_by_its_title_once_it_was_read(page: Visited) -> None:
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    first = await page.get("/")
    assert "Waiting for your answer" in first.words and "Sleep and coffee" not in first.words
    assert page.aggregator.gets == [], "looking at the list asks nobody"
    await page.get(page.invite)
    assert "Sleep and coffee" in (await page.get("/")).words


async def test_a_link_that_was_put_off_waits_when_the_program_starts_again(tmp_path: Path) -> None:
    async with visited(tmp_path) as page:
        await page.submit("/start/connect", "/start/connect", link=page.aggregator.invite.link())
        aggregator = page.aggregator
        for _ in range(2):
            server = PageServer(
                page.peer, page.home, now=aggregator.clock, random_bytes=os.urandom, guests=[phones.routes]
            )
            await server.start(run=False)
            page.server, server = server, page.server
            await server.close()
            assert (await page.get(page.server.link)).url.endswith("/") and "Waiting for your answer" in (
                await page.get("/")
            ).words
        said = await page.submit(page.invite, page.invite, answer="no")
        assert "the link is forgotten" in said.words and "Waiting for your answer" not in said.words


def test_commands_in_a_faults_words_look_like_commands_and_stay_text() -> None:
    from anon.kit.page.rendering import coded, sentence

    assert coded("start `anonml <b>` again") == "start <code>anonml &lt;b&gt;</code> again"
    assert coded("<i> `x`") == "&lt;i&gt; <code>x</code>"
    assert (
        sentence("port <1>: see `anonml doctor`") == "Port &lt;1&gt;: see <code>anonml doctor</code>."
        and sentence("Why?") == "Why?"
    )


async def test_an_expected_direction_is_told_on_the_consent_screen(tmp_path: Path) -> None:
    told = DECLARED.replace("[schedule]", '[learning]\nclassifier = "additive"\n[schedule]').replace(
        "cuts = [30, 60]", "cuts = [30, 60]\nexpects = -1"
    )
    async with visited(tmp_path, text=told) as page:
        text = await looked(page)
    assert "Staff expect that the higher <bdi>“age”</bdi> is, the less often <bdi>“tired”</bdi> is a yes." in text
    assert "costs you nothing" in text
