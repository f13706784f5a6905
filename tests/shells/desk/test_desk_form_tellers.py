"""The form with tellers: who can be one, the mail to them, who answers, and a file of exact sums that publishes."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path

import pytest

from aggregator.app import AggregatorApp
from aggregator.desk import form
from aggregator.desk.drafts import Drafts
from aggregator.desk.editor import lint_text
from aggregator.desk.form_faults import form_faults
from aggregator.desk.form_file import RETENTION_DAYS, even_cuts, length_of, text_of
from aggregator.lab.dry_round import MEMBERS
from aggregator.lab.sample_file import sample_columns
from aggregator.protocols.installed import PROTOCOLS
from aggregator.study.handout import UNNAMED, TellerRequest
from anon.protocols.histogram.sections import OnePacket
from anon.protocols.tellers import presented_tellers, tellers_can
from anon.study.proposal import REHEARSAL
from anon.transparency.fingerprint import teller_words, words
from tests.shells.desk.test_desk_form import FILLED, SAMPLE
from tests.support.clock import Clock
from tests.support.desk_browser import opened, words_of
from tests.support.teller_links import MemoryTeller

TOLD = "Student council, 127.0.0.1:9000\nLibrary 127.0.0.1:9001"


def fields(**changed: str) -> dict[str, str]:
    sums = {"adds": "tellers", "tellers": TOLD}
    return form.with_columns(form.fields_of(FILLED | sums), sample_columns(SAMPLE)) | changed


def _believed(**changed: str) -> dict[str, str]:
    return fields(c1_expects="1", c2_expects="-1", c2_categories="never\nsometimes\noften", **changed)


@pytest.mark.slow
@pytest.mark.parametrize(("low", "high", "bins", "cuts"), [
    ("0", "14", "3", [4.7, 9.3]), ("-1", "1", "2", [0]), ("0", "9", "0", []), ("0", "9", "1", []), ("9", "0", "3", []),
    ("4", "4", "3", []), ("a", "9", "3", []), ("0", "9", "x", []), ("0", "5e-324", "3", []),
    ("-1e308", "1e308", "2", [0]),
])  # fmt: skip
def test_even_cuts_are_of_any_text_that_somebody_types(low: str, high: str, bins: str, cuts: list[float]) -> None:
    (hours, *_) = form.columns_of(_fields_of_hours(low=low, high=high, bins=bins))
    assert list(even_cuts(hours)) == cuts


def _fields_of_hours(**typed: str) -> dict[str, str]:
    return {**form.fields_of({}), "c0_name": "hours", **{f"c0_{name}": text for name, text in typed.items()}}


def test_the_file_is_of_exact_sums_with_even_cuts_and_no_window_for_finding_them() -> None:
    linted = lint_text(text_of(fields()))
    assert linted.ok and linted.proposal is not None and linted.manifest is not None, linted.faults
    assert linted.proposal.protocol == "sum" and linted.proposal.design.kind == "tables-sum"
    named = [(one.name, one.address) for one in linted.proposal.tellers]
    assert named == [("Student council", "127.0.0.1:9000"), ("Library", "127.0.0.1:9001")]
    assert linted.proposal.features[0].cuts == (30, 60), "the range 0 to 90 in three parts"
    uneven = lint_text(text_of(fields(c1_high="14"))).proposal
    assert uneven is not None and uneven.features[0].cuts == (4.7, 9.3), "as a person would write them"
    assert length_of(fields()) == linted.manifest.timetable.ends - linted.manifest.timetable.published
    assert lint_text(text_of(fields(c1_cuts="10 40"))).proposal.features[0].cuts == (10, 40)  # type: ignore[union-attr]
    (hours, _) = lint_text(text_of(fields(c1_expects="1"))).proposal.features  # type: ignore[union-attr]
    assert hours.expects == (1,)
    waits = linted.manifest.sums_until - linted.manifest.timetable.ends
    assert waits == RETENTION_DAYS // 2 * 86_400
    trial = lint_text(text_of(form.fields_of(fields(pace="trial"))))
    assert trial.ok and trial.manifest is not None and trial.manifest.cohort.minimum == 2


def test_with_tellers_the_model_learns_from_answers_unless_staff_choose_that_it_starts_from_their_belief() -> None:
    plain, believed = (lint_text(text_of(_believed(adds=adds))) for adds in ("tellers", "tellers-belief"))
    for linted, kind, rounds in ((plain, "tables-sum", 1), (believed, "rule", 3)):
        assert linted.ok and linted.proposal is not None and linted.manifest is not None, linted.faults
        assert linted.proposal.design.kind == kind and len(linted.manifest.windows) == rounds
        assert [one.expects for one in linted.proposal.features] == [(1,), (1, 0, -1)]
        assert len(linted.proposal.tellers) == 2
        sent = _believed(adds="tellers" if rounds == 1 else "tellers-belief")
        assert length_of(sent) == linted.manifest.timetable.ends - linted.manifest.timetable.published


def test_without_tellers_the_file_starts_from_what_staff_believe_where_they_choose_it() -> None:
    sure = _believed(adds="belief")
    linted = lint_text(text_of(sure))
    assert linted.ok and linted.proposal is not None and linted.manifest is not None, linted.faults
    assert linted.proposal.protocol == "" and linted.proposal.tellers == ()
    assert linted.proposal.design == OnePacket("one-packet", 2.0, asks="rule")
    assert [one.expects for one in linted.proposal.features] == [(1,), (1, 0, -1)]
    assert linted.proposal.features[0].cuts == (30, 60), "the range 0 to 90 in three parts"
    assert len(linted.manifest.windows) == 2, "the middle is found first"
    assert length_of(sure) == linted.manifest.timetable.ends - linted.manifest.timetable.published
    plain = lint_text(text_of(_believed(adds=""))).proposal
    assert plain is not None and plain.design == OnePacket("one-packet", 2.0), "it is a choice"


@pytest.mark.parametrize("known", [{}, {"c1_expects": "1"}])
@pytest.mark.parametrize("adds", form.FROM_BELIEF)
def test_a_belief_about_fewer_than_two_columns_is_a_fault_of_the_choice(adds: str, known: dict[str, str]) -> None:
    wrong = fields(adds=adds, **known)
    (fault,) = form_faults(wrong, lint_text(text_of(wrong)).faults)
    assert fault.field == "adds" and "say of two columns or more" in fault.says


@pytest.mark.parametrize(("written", "says"), [
    ("", "name at least two"), ("Student council 127.0.0.1:9000", "name at least two"),
    ("a 127.0.0.1:9000\nb nowhere", "copy the address that"), ("a 127.0.0.1:9000\na 127.0.0.1:9001", "another name"),
])
def test_a_fault_of_the_tellers_is_told_at_their_field(written: str, says: str) -> None:
    wrong = fields(tellers=written)
    (fault,) = form_faults(wrong, lint_text(text_of(wrong)).faults)
    assert fault.field == "tellers" and says in fault.says


def test_tellers_are_proposed_below_a_thousand_people_alone() -> None:
    assert form.proposes_tellers(fields(adds="", minimum="999"))
    assert not form.proposes_tellers(fields(adds="", minimum="1000")) and not form.proposes_tellers(fields())
    assert not form.proposes_tellers(fields(adds="", minimum="many"))


@pytest.mark.slow
async def test_from_the_form_to_a_published_study_with_two_tellers(tmp_path: Path) -> None:
    tellers = [MemoryTeller(tmp_path / name) for name in ("council", "office")]
    app = AggregatorApp(
        tmp_path / "a home", Clock(), processes=0, link_to=lambda address, *_: tellers[int(address[-1])]
    )
    async with app, opened(app) as desk:
        page = await desk.get("/form")
        said, draft = words_of(page.text), re.search(r'name="draft" value="([^"]+)"', page.text)
        assert draft is not None
        assert "such as the students' council and the library" in said
        assert tellers_can(spare=False) in said
        assert "Ask them first" in said and "answers:" not in said
        assert said.index("ask two tellers early") < said.index("Sample file"), "asking comes first in time"
        unnamed = words_of((await desk.post("/form", draft=draft[1], **fields(tellers="", people="300"))).text)
        assert "300 people " in unnamed and "Tellers count here before you name them" in unnamed
        assert "if you leave this empty, they are 30 60." in unnamed and "Two tellers are missing" in unnamed
        believed, local = [
            words_of((await desk.post("/form", draft=draft[1], **_believed(people="60", adds=adds))).text)
            for adds in ("tellers-belief", "belief")
        ]
        for told in (believed, local):
            assert told.count("With 60 people the model ranks about as your") == 2, "in its step, and as the forecast"
            least = re.findall(r"about ([\d,]+) (?:people|members)", told)
            assert len(least) == 3 and "of 100" not in told
            assert len({one.replace(",", "") for one in least}) == 1, "consent has the same figure"
        assert "If you want to learn from answers, take a choice without" in unnamed
        assert "“Not known” is right" in unnamed
        wrong = words_of((await desk.post("/form", draft=draft[1], **fields(people="some"))).text)
        assert "How many people do you expect? expected a whole number from 2" in wrong
        checked = words_of((await desk.post("/form", draft=draft[1], **fields(adds=""))).text)
        assert "With fewer than 1,000 people, two tellers find more" in checked
        tellers[1].away = lambda _call: True
        asked = words_of((await desk.post("/form/tellers", draft=draft[1], **fields())).text)
        first, second = (teller_words(one.session.offer("any", "127.0.0.1:9000").key) for one in tellers)
        assert f"Student council answers: {first}" in asked and second not in asked
        assert "Library the teller Library does not answer" in asked
        tellers[1].away = lambda _call: False
        assert "Library 127.0.0.1:9001 Its words stand here once it was asked" in asked
        both = words_of((await desk.post("/form/tellers", draft=draft[1], **fields())).text)
        assert f"Library answers: {second}" in both and not app.studies()
        assert (await desk.post("/form/tellers", draft=draft[1], **fields(tellers="a nowhere"))).status == 400
        written = await desk.post("/form/text", draft=draft[1], **fields())
        assert "It can be published" in written.text
        asking = words_of((await desk.post("/form/publish", draft=draft[1], **fields(people="300"))).text)
        assert f"Student council (program at 127.0.0.1:9000 ): {first}" in asking
        assert f"127.0.0.1:9001 ): {second}" in asking
        preview = asking[asking.index("What students read before they say yes") :]
        assert f"Student council 127.0.0.1:9000 {first} Library 127.0.0.1:9001 {second}" in preview
        file = app.home.path / "drafts" / f"{draft[1]}.toml"
        assert f"anonml study rehearse '{file}' --home '{app.home.path}' --people 150" in asking and file.is_file()
        assert "What students read before they say yes" in asking and "hours : Your hours" in asking
        assert "staff@example.org" in asking and "Whether you left the course" in asking
        await desk.post("/studies", draft=draft[1], text=text_of(fields()), reach="loopback")
        (live,) = app.studies()
        assert [one.words for one in presented_tellers(live.manifest)] == [first, second]
        page = await desk.get(f"/studies/{live.study.hex()}")
        shown = words_of(page.text)
        assert f"Its words: {words(live.study)}" in shown and "Subject: The study is published" in shown
        again = await desk.get(f"/form?like={live.study.hex()}")
        assert "Whether you left the course" in again.text and "127.0.0.1:9001" in again.text
        assert f'value="{draft[1]}"' not in again.text
        assert (await desk.get(f"/form?like={'0' * 64}")).status == 404


def test_no_figure_of_a_sample_stays_with_a_published_study(tmp_path: Path) -> None:
    drafts = Drafts(tmp_path)
    drafts.keep_fields("0" * 16, fields(c1_counts="7\n5", c1_sample="0 90"))
    drafts.published("0" * 16, "ab" * 32)
    kept = drafts.of_study("ab" * 32) or {}
    assert kept["tellers"] == fields()["tellers"] and not [name for name in kept if name.endswith(("counts", "sample"))]
    assert drafts.all() == []


@pytest.mark.parametrize("pasted", [
    "Student council 127.0.0.1:9000\nLibrary, 127.0.0.1:9001",
    "teller Student council\naddress 127.0.0.1:9000\nwords a b c\nteller Library\naddress 127.0.0.1:9001\nwords d e f",
    "Student council\n127.0.0.1:9000\n\nLibrary\n127.0.0.1:9001",
])
def test_tellers_may_be_pasted_as_their_keepers_sent_them(pasted: str) -> None:
    expected = [("Student council", "127.0.0.1:9000"), ("Library", "127.0.0.1:9001")]
    assert form.tellers_in(fields(tellers=pasted)) == expected
    office = [("words office", "127.0.0.1:1"), ("teller", "127.0.0.1:2")]
    assert form.tellers_in(fields(tellers="words office 127.0.0.1:1\nteller 127.0.0.1:2")) == office


@pytest.mark.slow
async def test_the_mail_to_tellers_fits_how_the_desk_is_served_and_names_who_and_how_long(tmp_path: Path) -> None:
    app = AggregatorApp(tmp_path / "home", Clock(), processes=0)
    async with app, opened(app) as desk:
        await desk.get("/form")

        async def mail(**changed: str) -> str:
            return words_of((await desk.post("/form/mail", draft="0" * 16, **fields(**changed))).text)

        anywhere = await mail()
        assert "--loopback" not in anywhere and "and Tor (apt install" in anywhere
        assert f"anonml teller allow {app.home.public_key.hex()}" in anywhere
        assert "Student council, whose program is at 127.0.0.1:9000 Library, whose program is at 127" in anywhere
        assert "If you are our data protection officer in person, please decline" in anywhere
        assert "Responsible for the study: staff@example.org" in anywhere and "takes 10 d 4 h" in anywhere
        assert "for 45 days at most" in anywhere
        assert "at least 100 people enrol. A sum is made of at least 50 of them. Its epsilon is 2" in anywhere
        assert "no backup of it" in anywhere and "the sum of 3 made-up members" in anywhere
        assert f"are {words(app.home.public_key)}. Before you type the next line, compare them with us" in anywhere
        compared, allowed = (anywhere.index(said) for said in ("by telephone", "anonml teller allow"))
        assert compared < allowed, "a forged mail changes key and words alike"
        assert "it would end 20" in anywhere and "each run by somebody else" in await mail(tellers="")
        lacking = await mail(title="", contact=" ")
        assert "First fill in: Title , Contact" in lacking and "Subject" not in lacking
        for here, length in ((await mail(pace="trial"), "7 min 40 s"), (await _at_loopback(app, mail), "10 d 4 h")):
            assert here.count("Subject: ") == 2 and "apt install" not in here and "Tellers there protect nobody" in here
            first, second = here.split("Subject: ")[1:]
            for one, number, port, name, other in (
                (first, 1, 9000, "Student council", "Library"), (second, 2, 9001, "Library", "Student council")
            ):
                assert f'--name "{name}" --loopback --port {port} --home ~/teller-{number}' in one
                assert one.count(f"--home ~/teller-{number}") == 4 == one.count("--home ~/teller-"), "all of its lines"
                assert f"{other} has a mail of its own" in one
            assert "privacy rests on" not in here and "few of them" not in here and f"the study takes {length}" in here
            assert here.count("officer in person, please decline then") == 2 == here.count("A trial does not count")
            assert here.count("report. In the trial all this passes in some minutes, with made-up people.") == 2
            assert "for 45 days at most" in here, "a trial's study is kept as long"
        few = await mail(pace="trial", minimum="100", tellers="Student council 127.0.0.1:8761")
        assert "at least 2 people enrol. A sum is made of at least 2 of them" in few
        assert f'--name "{UNNAMED}" --loopback --port 8762 --home ~/teller-2' in few
        nobody = await mail(pace="trial", tellers="")
        assert nobody.count("the other teller has a mail of its own") == 2 and "To the first teller" in nobody
        assert f'--name "{UNNAMED}" --loopback --port 8761' in nobody
        costs = 'see what "$1" `does` 127.0.0.1:8761'
        assert "--name 'see what \"$1\" `does`' --loopback" in await mail(pace="trial", tellers=costs)
        assert "start it again with anonml aggregator desk --onion" in await _at_loopback(app, mail)


def test_the_mail_announces_dry_round_and_rehearsal_by_their_own_titles() -> None:
    practice = PROTOCOLS.proposal((files("aggregator.lab") / "practice.toml").read_text())
    for here in (True, False):
        (_, said), *_ = TellerRequest("Title", "staff", "00" * 32, here=here).mails()
        assert f'"{practice.title}"' in said and f"sum of {MEMBERS} made-up" in said and f'"{REHEARSAL}...' in said


async def _at_loopback(app: AggregatorApp, mail: Callable[[], Awaitable[str]]) -> str:
    with app.home.place("127.0.0.1:8750"):
        return await mail()
