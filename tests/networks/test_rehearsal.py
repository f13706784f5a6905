"""Made-up people rehearse a study as its file says it, on a virtual clock. It is no loosened form of a real study."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import subprocess
import sys
from contextlib import ExitStack, closing
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import define, evolve
from rich.console import Console

from aggregator.app import AggregatorApp
from anon.crypto.nacl import SigningKey
from anon.errors import Malformed, Refused
from anon.protocols.resolve import resolve
from anon.study import proposal
from examples import hosting, serving
from examples.clock import Keeper, Party
from examples.own_study import HOSTS, OwnStudy, made_up
from examples.picture import Picture
from examples.processes import Child
from examples.processes import tellers as started_tellers
from examples.rehearsal import MOST, _folder, demanded, made_of, outcome
from examples.schedule import Schedule, with_tellers
from examples.study_run import StudyRun
from peer.rules.consent import explain
from peer.store.home import PeerHome
from tests.examples.test_checks import STUDY
from tests.support.clock import Clock
from tests.support.command_line import ROOT, anonml, attempt
from tests.support.protocols import PROTOCOLS, parse_proposal
from tests.support.sums import KEYS, MOMENTS, RULE, sum_study, tellers
from tests.support.teller_links import MemoryTeller
from tests.support.world import study_text

NOW = 1_800_000_000.0


def written(folder: Path, text: str) -> Path:
    file = folder / "study.toml"
    file.write_text(text)
    return file


def own(folder: Path, text: str, people: int, key: SigningKey | None = None) -> OwnStudy:
    """A rehearsal of this file by so many."""
    study = parse_proposal(text)
    return OwnStudy.of(made_up(written(folder, text), study, people), folder, study, NOW, key)


@pytest.mark.parametrize(("text", "people", "said"), [
    (study_text(minimum=30), 29, "expected 30, the study's minimum, to 1,000; got 29"),
    (study_text(maximum=40), 41, "to 40; got 41"),
    (study_text(minimum=MOST + 1, maximum=0), 0, "got 2,001"),
    (study_text(admission="allow-list"), 0, "allow-list"),
])  # fmt: skip
def test_people_who_cannot_bring_a_study_to_its_end_are_refused(text: str, people: int, said: str) -> None:
    with pytest.raises(Refused, match=said):
        demanded(parse_proposal(text), people)


def test_without_a_number_as_many_take_part_as_the_study_needs() -> None:
    assert demanded(parse_proposal(study_text(minimum=30)), 0) == 30


@pytest.mark.parametrize("text", [study_text(minimum=7), sum_study(RULE, minimum=7)], ids=["histogram", "rule"])
def test_the_studys_own_terms_are_rehearsed(tmp_path: Path, text: str) -> None:
    wanted = own(tmp_path, text, 60)
    with ExitStack() as running:
        assert wanted.published_text(running) == text
    study = parse_proposal(text)
    lengths = (wanted.schedule.enrol, wanted.schedule.settle, wanted.schedule.binning, wanted.schedule.collect)
    declared = study.schedule
    assert lengths == (declared.enrol, declared.settle, declared.binning, declared.collect)
    assert wanted.least == 7 and wanted.title == f"Rehearsal: {study.title}" and wanted.begins == NOW


@pytest.mark.parametrize(("settle", "binning", "ahead"), [(10**6, 10**6, 1800.0), (100, 300, 5.0), (100, 0, 5.0)])
def test_what_runs_ahead_stays_within_the_shortest_stage(settle: int, binning: int, ahead: float) -> None:
    assert Schedule.of(proposal.Schedule(10**6, settle, 10**6, binning)).ahead == ahead


@pytest.mark.parametrize(("people", "hosts"), [(2, 1), (60, 3), (MOST, HOSTS)])
def test_few_people_share_a_process(tmp_path: Path, people: int, hosts: int) -> None:
    assert own(tmp_path, study_text(), people).hosts == hosts


def test_tellers_are_asked_with_the_staffs_key_which_nobody_else_reads(tmp_path: Path) -> None:
    key = SigningKey(bytes(range(32)))
    own(tmp_path, sum_study(MOMENTS), 4, key)
    kept = tmp_path / "aggregator" / "signing.key"
    assert kept.read_bytes() == bytes(key) and stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("made", [True, False], ids=["a home", "no home"])
def test_a_rehearsals_programs_find_its_folder_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if made:
        Path("home").mkdir()
    with _folder(Path("home")) as folder:
        assert folder.is_absolute() and folder.is_dir() and (folder.parent == tmp_path / "home") == made
    assert not folder.exists() and Path("home").exists() == made


@pytest.mark.process
def test_a_rehearsal_that_the_system_ends_leaves_no_folder_with_a_key(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, signal, sys; from examples.rehearsal import _folder\n"
        "with _folder(pathlib.Path(sys.argv[1])) as folder:\n"
        "    (folder / 'signing.key').touch(); os.kill(os.getpid(), signal.SIGTERM); signal.pause()"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, check=False)
    assert ended.returncode == 143 and not list(tmp_path.iterdir())


def test_a_study_of_several_tables_needs_data_of_its_own(tmp_path: Path) -> None:
    text = study_text().replace("[tables]\n", '[tables]\nvisits = ["day"]\n')
    with pytest.raises(Malformed, match="several tables"):
        own(tmp_path, text, 4)


@pytest.mark.parametrize("text", [
    study_text(minimum=3).replace("epsilon = 2.0", "epsilon = 19.0"),
    sum_study(MOMENTS).replace("epsilon = 1.0", "epsilon = 19.0"),
], ids=["histogram", "sum"])
@pytest.mark.slow
def test_limits_and_rows_of_made_up_people_suit_the_study(tmp_path: Path, text: str) -> None:
    wanted = own(tmp_path, text, 3)
    manifest = resolve(wanted.proposal, KEYS, int(NOW))
    with Keeper(tmp_path / "clock", 2, start=NOW) as keeper:
        party = Party(keeper.clock.path, keeper.place)
        for number, person in enumerate(wanted.scene.peers):
            peer = hosting._settle_in(person, tmp_path / str(number), hosting.Way(), party, wanted.least).peer
            assert explain(manifest, peer.policy(), peer.budget(), NOW).objections == ()
            peer.close()
            with closing(sqlite3.connect(PeerHome(tmp_path / str(number)).data_path)) as data:
                assert data.execute(f"SELECT count(*) FROM {manifest.tables[0].name}").fetchone() == (1,)


FIGURES = {name: figure for name, figure in STUDY.items() if name != "shown" and "auc" not in name}


def test_a_rehearsal_promises_no_report_that_is_not_there() -> None:
    said, code = outcome(FIGURES, Path("/here/report.html"))
    assert code == 0 and "500 made-up people took part" in said and "The report is /here/report.html" in said
    said, code = outcome({"unpublished": "the teller Library does not answer"}, None)
    assert code == 1 and said.splitlines() == [
        "the study ended without a report: the teller Library does not answer", "There is no report."
    ]  # fmt: skip
    said, code = outcome(FIGURES | {"accepted": 499, "lost": 1}, Path("/here/report.html"))
    assert code == 1 and "499 are in the transcripts" in said and "took part" not in said


def test_a_rehearsal_says_what_its_people_hold_and_what_keepers_see() -> None:
    said = made_of(parse_proposal(sum_study(MOMENTS, tellers(entries=False))), 60)
    assert "all of its 60 people are made up" in said and "Its tellers' status shows it as “Rehearsal: Sleep”" in said
    assert "three of four people in the upper half of “" in said
    study = parse_proposal(study_text())
    assert "tellers" not in made_of(study, 60)
    hidden = [evolve(feature, query=f"SELECT 1 + ({feature.query})") for feature in study.features]
    assert "Label and answers are chance." in made_of(evolve(study, features=tuple(hidden)), 60)


async def test_tellers_hear_that_a_rehearsal_was_broken_off(tmp_path: Path) -> None:
    places = [MemoryTeller(tmp_path / name) for name in ("council", "office")]
    app = AggregatorApp(tmp_path / "home", Clock(), processes=0, link_to=lambda at, *_: places[int(at[-1])])
    async with app:
        manifest = await app.create_study(PROTOCOLS.proposal(sum_study(MOMENTS, tellers(entries=False))))
        live = app.study(manifest.study_id)
        with pytest.raises(asyncio.CancelledError):
            async with serving._over_for_tellers(app, live):
                assert "finish" not in places[0].calls
                raise asyncio.CancelledError
        assert [teller.calls[-1] for teller in places] == ["finish", "finish"]


@define
class Server:
    """An aggregator of a rehearsal, with what it will say."""

    lines: list[dict[str, Any]]

    def line(self) -> dict[str, Any]:
        """The next."""
        return self.lines.pop(0)


def test_it_is_told_what_a_rehearsal_waits_for(tmp_path: Path) -> None:
    faults = ("", "the teller Library does not answer", "")
    lines = [{"phase": "collecting", "enrolled": 4, "fault": fault} for fault in faults]
    ended = {"phase": "published", "enrolled": 4, "fault": ""}
    printed = StringIO()
    run = StudyRun(own(tmp_path, study_text(), 4), Console(file=printed, width=200))
    server = cast(Child, Server([*lines, ended]))
    assert run._follow(server, Picture(tmp_path, 4, lambda: NOW, NOW)) == ended
    waits = [line for line in printed.getvalue().splitlines() if "it waits" in line]
    assert waits == ["  it waits: the teller Library does not answer"]
    assert printed.getvalue().count(" s   the model is published") == 1, "one stage ended"


def test_a_study_without_a_search_for_ranges_has_no_stage_of_it(tmp_path: Path) -> None:
    phases, printed = ["enrolling", "settling", "collecting", "learning", "published"], StringIO()
    server = cast(Child, Server([{"phase": phase, "enrolled": 4, "fault": ""} for phase in phases]))
    run = StudyRun(own(tmp_path, study_text(), 4), Console(file=printed, width=80))
    run._follow(server, Picture(tmp_path, 4, lambda: NOW, NOW))
    ended = [line.split()[0] for line in printed.getvalue().splitlines() if " s   " in line]
    assert ended == ["enrol", "settle", "collect", "learn"] and "ranges" not in printed.getvalue()


@pytest.mark.process
def test_a_study_with_real_tellers_is_rehearsed_to_its_report(tmp_path: Path) -> None:
    home, report, names = tmp_path / "home", tmp_path / "report.html", ["clinic", "students"]
    asyncio.run(anonml("aggregator", "init", "--home", home))
    text = sum_study(RULE, tellers(names, entries=False))
    with started_tellers(names, tmp_path) as addresses:
        file = written(tmp_path, with_tellers(text, parse_proposal(text), addresses))
        asked = attempt("study", "rehearse", file, "--people", "5", "--report", report, "--home", home)
        done = asyncio.run(asked)
        overviews = [asyncio.run(anonml("teller", "status", "--home", tmp_path / f"teller-{n}")) for n in range(2)]
    assert done.code == 0 and "5 made-up people took part, 15 packets came" in done.out, done
    assert "Rehearsal: Sleep" in report.read_text()
    said = " ".join(done.err.split())
    assert all(f"The study's words: {told['fingerprint']}" in said for (told,) in overviews)
    assert all(told["runs_ahead"] for (told,) in overviews), "no member's program answers so early"
    assert [path.name for path in home.iterdir() if path.name.startswith("rehearsal")] == []
    for overview in overviews:
        (told,) = overview
        assert told["title"] == "Rehearsal: Sleep" and told["stage"] == "over"
