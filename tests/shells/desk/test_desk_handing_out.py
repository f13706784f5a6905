"""Links that staff hand out: they say where they lead, and come as cards, a table, a mail and one page for a class."""

from __future__ import annotations

import csv
import html
import io
import re
from pathlib import Path

import pytest
from attrs import evolve
from typer.testing import CliRunner

from aggregator.cli.main import app as commands
from aggregator.cli.study import app as studies
from aggregator.desk.drafts import Drafts
from aggregator.desk.timeline import stages
from aggregator.rules.lifecycle import Phase
from aggregator.study.handout import PLACE, mail
from anon.protocols.registry import protocol_of
from anon.transparency.fingerprint import words
from anon.wire.invite import parse_invite
from tests.support.desk_browser import Desk, opened, words_of
from tests.support.fake_aggregator import DECLARED, FakeAggregator
from tests.support.world import in_memory, study_text

HERE = "127.0.0.1:8750"


def _links(page: str) -> list[str]:
    return [html.unescape(link) for link in re.findall(r"<code>anonml peer open '(anonml://[^<]+)'</code>", page)]


def _at(desk: Desk) -> str:
    return f"/studies/{desk.app.studies()[0].study.hex()}"


async def test_cards_say_what_to_do_and_the_table_has_the_same_links(desk: Desk) -> None:
    page = await desk.post(f"{_at(desk)}/invites", count="3", address=HERE)
    links, said = _links(page.text), words_of(page.text)
    fingerprint = words(desk.app.studies()[0].study)
    assert len(links) == 3 and page.text.count("<svg") == 3
    assert said.count(f"before you say yes: {fingerprint}") == 4 and said.count("-py3-none-any.whl'") >= 3
    table = await desk.post(f"{_at(desk)}/invites.csv", links="\n".join(links))
    assert table.headers["Content-Type"].startswith("text/csv") and "attachment" in table.headers["Content-Disposition"]
    assert list(csv.reader(io.StringIO(table.text))) == [
        ["number", "link", "command"],
        *([str(n), link, f"anonml peer open '{link}'"] for n, link in enumerate(links, 1))
    ]
    assert said.count("reads it from a photo") == 3
    other = parse_invite(links[0]).link().replace(desk.app.studies()[0].study.hex(), "0" * 64)
    for wrong in ("", "=1+1", other):
        assert (await desk.post(f"{_at(desk)}/invites.csv", links=wrong)).status == 400


async def test_links_of_this_machine_say_so_before_and_after_they_are_drawn(desk: Desk) -> None:
    said = "These links work on this machine alone, because the study was published for this machine."
    with desk.app.home.place(HERE):
        assert said in words_of((await desk.get(_at(desk))).text)
        assert "This is this machine alone." in words_of((await desk.get("/")).text)
    drawn = words_of((await desk.post(f"{_at(desk)}/invites", count="1", address=HERE)).text)
    assert (
        said in drawn
        and "publish it again for people anywhere, through Tor, and" in drawn
        and "--loopback" not in drawn
    )


@pytest.mark.slow
async def test_one_page_for_a_class(tmp_path: Path) -> None:
    async with (
        in_memory(tmp_path / "open", study_text(admission="open")) as running,
        opened(running.app, running) as desk,
    ):
        with running.app.home.place(HERE):
            page = await desk.get(f"{_at(desk)}/class")
            assert "One page for a whole class" in words_of((await desk.get(_at(desk))).text)
            assert (
                len(_links(page.text)) == 1
                and page.text.count("<svg") == 1
                and parse_invite(_links(page.text)[0]).code == ""
            )
    async with in_memory(tmp_path / "invite", study_text()) as running, opened(running.app, running) as desk:
        page = await desk.get(f"{_at(desk)}/class")
        assert "Cards to print, one for each person" in words_of((await desk.get(_at(desk))).text)
        assert not _links(page.text) and "each person needs a card" in words_of(page.text)


@pytest.mark.slow
def test_the_terminal_writes_a_table_and_a_mail(tmp_path: Path) -> None:
    home, run, target = str(tmp_path / "home"), CliRunner(), tmp_path / "links.csv"
    for typed in (["init", str(tmp_path / "study.toml")], ["publish", str(tmp_path / "study.toml"), "--home", home]):
        assert run.invoke(studies, typed, catch_exceptions=False).exit_code == 0
    done = run.invoke(
        commands, ["invite", "--count", "4", "--csv", str(target), "--home", home], catch_exceptions=False
    )
    rows = list(csv.reader(io.StringIO(target.read_text("utf-8"))))
    assert len({parse_invite(link).code for _, link, _ in rows[1:]}) == 4 and target.stat().st_mode & 0o777 == 0o600
    assert PLACE in done.stdout and "anonml://" not in done.stdout
    assert run.invoke(commands, ["invite", "--csv", str(target), "--home", home]).exit_code != 0, "it never overwrites"
    here = run.invoke(commands, ["invite", "--json", "--home", home, "--address", HERE], catch_exceptions=False)
    assert "because the aggregator is not served through Tor now" in " ".join(here.stderr.split())


async def test_the_mail_has_the_fingerprint_the_wheel_and_the_place_of_the_link(desk: Desk) -> None:
    manifest = desk.app.studies()[0].manifest
    text = mail(manifest)
    assert (
        words(manifest.study_id) in text
        and re.search(r"anonml-[\d.]+-py3-none-any\.whl", text)
        and text.count(PLACE) == 1
    )
    assert "study: Income.\n" in text and "study: Why?\n" in mail(evolve(manifest, title="Why?"))


async def test_a_group_smaller_than_programs_join_is_told_on_the_page_the_cards_and_in_the_mail(tmp_path: Path) -> None:
    typed = "anonml peer budget --minimum-cohort 4"
    small = study_text(minimum=4)
    async with in_memory(tmp_path / "home", small) as running, opened(running.app, running) as desk:
        assert running.live.manifest.cohort.minimum == 4
        assert typed in words_of((await desk.get(_at(desk))).text)
        cards = await desk.post(f"{_at(desk)}/invites", count="2", address=HERE)
        assert words_of(cards.text).count(f"all lower their own limit with {typed} .") == 2
        assert typed in mail(running.live.manifest)
        usual = evolve(running.live.manifest.cohort, minimum=20)
        assert "minimum-cohort" not in mail(evolve(running.live.manifest, cohort=usual))


@pytest.mark.slow
async def test_drafts_outlive_the_desk_and_are_listed(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text()) as running:
        async with opened(running.app, running) as desk:
            await desk.get("/editor")
            draft = Drafts.new()
            await desk.post("/editor/lint", text='title = "Half a st', draft=draft)
            await desk.post("/editor/lint", text='title = "Half a study"\n', draft=draft)
            example = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", (await desk.get("/editor")).text, re.DOTALL)
            assert example is not None
            await desk.post("/editor/lint", text=html.unescape(example[1]), draft=Drafts.new())
        async with opened(running.app, running) as again:
            said = words_of((await again.get("/")).text)
            assert "Half a study" in said and said.count("Discard it for good") == 1
            assert "Half a study" in (await again.get(f"/editor?draft={draft}")).text
            await again.post("/drafts/discard", draft=draft)
            assert "Half a study" not in (await again.get("/")).text
            assert (await again.get(f"/editor?draft={draft}")).status == 404
            for wrong in ("../../desk", "A" * 16):
                assert (await again.post("/drafts/discard", draft=wrong)).status == 400


def test_where_files_are_of_excel_its_library_is_installed_at_once() -> None:
    manifest = FakeAggregator.with_study(DECLARED).manifest
    assert "py3-none-any.whl'" in mail(manifest)
    for source in ("Save it as log.xlsx.", "Open it in Excel and save it."):
        assert "py3-none-any.whl[excel]'" in mail(evolve(manifest, data_source=source))
    assert "[excel]" not in mail(evolve(manifest, data_source="It excels: an .xlsxx file."))


def test_learning_is_shown_to_last_until_the_results_and_not_until_collection_closes() -> None:
    manifest = FakeAggregator.with_study(DECLARED).manifest
    shown = stages(manifest, protocol_of(manifest).rounds(manifest), Phase.LEARNING, 0)
    ends = {stage.name: stage.ends for stage in shown}
    assert ends["learning"] == manifest.timetable.ends > manifest.windows[-1].closes
    assert not any(word in stage.what for stage in shown for word in ("peers", "credentials", "seed"))
