"""Looking, joining, running and leaving by the command line: what it tells the owner, and that it never falls over."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anon.study.manifest import Manifest
from anon.wire.replies import WORDS
from anon.wire.reply_sentences import SENTENCES, reply_sentence
from peer.data.evaluate import missing, snapshot_of
from peer.data.snapshot import Snapshot
from peer.run.plan import PASSED
from tests.support.fake_aggregator import DECLARED
from tests.support.peer_command import Command, Served, serving
from tests.support.sums import MOMENTS, countersigned, many, sum_study

ROOT = Path(__file__).resolve().parents[3]


def _person(command: Command, columns: str = "age,cups,tired", row: str = "30,some,1") -> None:
    command.home.parent.mkdir(exist_ok=True)
    file = command.home.parent / "person.csv"
    file.write_text(f"{columns}\n{row}\n")
    assert command("import", file).code == 0


def _joined(command: Command, served: Served) -> str:
    command("budget", "--minimum-cohort", "3")
    done = command("join", served.link, "--yes", "--json")
    assert done.code == 0, done.err
    return str(done.json["study"])


# Looking


def test_look_names_what_the_owners_data_lacks(command: Command, served: Served) -> None:
    shown = command("look", served.link)
    assert shown.code == 0
    assert "you have no table “person”: `anonml peer import FILE --table person`" in shown.out
    assert command("look", served.link, "--json").json["missing"] == {"tables": ["person"], "columns": []}
    _person(command, "age,tired", "30,1")
    assert "your data lacks “person.cups”: import a file" in command("look", served.link).out
    found = command("look", served.link, "--json").json
    assert (found["missing"], found["rows"]) == ({"tables": [], "columns": ["person.cups"]}, {"person": 1})
    _person(command)
    shown = command("look", served.link)
    assert "missing" not in re.sub("rule for missing|missing values leave|“tired” is missing, it counts", "", shown.out)
    assert "“person” 1" in shown.out


def test_look_names_a_table_of_several_people(command: Command, served: Served) -> None:
    _person(command, "username,age,cups,tired", "ann,30,some,1")
    assert "several people" not in command("look", served.link).out
    file = command.home.parent / "person.csv"
    file.write_text("username,age,cups,tired\nann,30,some,1\nbob,31,some,1\n")
    assert command("import", file, "--all-rows").code == 0
    seen = " ".join(command("look", served.link).out.split())
    assert "“person.username” names several people (“ann”, “bob”): every row counts as yours" in seen
    assert "--table person --person username=YOU" in seen


def test_look_names_the_values_that_would_count_as_missing(command: Command, served: Served) -> None:
    _person(command, "age,cups,tired", "old,many,1")
    seen = command("look", served.link)
    assert seen.code == 0 and "your tables give no value that counts for “age”" in " ".join(seen.out.split())
    assert json.loads(command("look", served.link, "--json").out)["uncounted"] == ["age"]


def test_look_tells_sentences_queries_and_times(command: Command, served: Served) -> None:
    found = command("look", served.link, "--json").json
    assert found["features"][0] == {"name": "age", "sentence": "Your age.", "query": "SELECT age FROM person"}
    assert found["label"] == {"name": "tired", "sentence": "You are tired.", "query": "SELECT tired FROM person"}
    plain, full = command("look", served.link).out, command("look", served.link, "--queries").out
    assert "SELECT" not in plain and "anonml peer look LINK --queries" in plain
    assert full.count("SELECT") == 3
    closes = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(found["enrol_closes"]))
    assert f"Enrolment closes {time.strftime('%a', time.gmtime(found['enrol_closes']))} {closes} UTC" in plain
    assert "Results come after" in plain


def test_a_minimum_of_ones_own_is_told_with_how_to_change_it(command: Command, served: Served) -> None:
    statement = "You demand at least 20 people; this study may go on with 3."
    shown = command("look", served.link).out
    assert statement in shown and "`anonml peer budget --minimum-cohort 3`" in shown
    command("budget", "--minimum-cohort", "3")
    assert statement not in command("look", served.link).out


def test_objections_name_commands_that_help(command: Command, served: Served) -> None:
    command("budget", "--per-study", "0.5", "--lifetime", "1")
    done = command("join", served.link, "--yes")
    assert done.code == 4
    for helping in ("anonml peer budget --per-study ", "anonml peer budget --lifetime "):
        amount = done.err.split(helping)[1].split("`")[0]
        assert command(*helping.split()[2:], amount).code == 0
    assert command("join", served.link, "--yes").code == 0


def test_nobody_there_says_try_again(command: Command, served: Served) -> None:
    link = served.link.replace(served.link.split("/")[2], "127.0.0.1:1")
    done = command("look", link)
    assert done.code == 7 and "try again" in done.err
    named = command("look", served.link.replace("127.0.0.1", "localhost"))
    assert named.code == 4 and "one of this machine" in named.err
    proxied = command("look", served.link, "--route", "socks://127.0.0.1:1")
    assert proxied.code == 7 and "check that it runs" in proxied.err


# Joining


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "code"), [("y", 0), ("yes", 0), ("YES", 0), ("n", 4), ("no", 4), ("", 4), ("maybe\ny", 0)]
)
def test_the_answer_may_be_a_word_or_a_letter(command: Command, served: Served, typed: str, code: int) -> None:
    _person(command)
    assert command("join", served.link, typed=typed + "\n").code == code
    assert len(command("status", "--json").json) == (code == 0)


def test_a_yes_given_before_evaluates_nothing(command: Command, served: Served) -> None:
    """The study's queries run for a time that may depend on the data, and enrolment leaves a while after the yes."""
    evaluated: list[Path] = []

    def noted(manifest: Manifest, data_path: Path, _seconds: float) -> Snapshot:
        evaluated.append(data_path)
        return snapshot_of(manifest, missing(manifest))

    command.monkeypatch.setattr("peer.data.evaluate.evaluated", noted)
    _person(command)
    assert command("look", served.link).code == 0 and len(evaluated) == 1
    assert command("join", served.link, typed="n\n").code == 4 and len(evaluated) == 2
    assert command("join", served.link, "--yes").code == 0 and len(evaluated) == 2


@pytest.mark.slow
def test_too_few_records_are_told_before_a_yes_and_refuse_none(command: Command) -> None:
    with serving(sum_study(MOMENTS, keys=many(20, "person") + "least_records = 2\n")) as served:
        served.aggregator.publish("tellers", countersigned(served.aggregator.manifest))
        _person(command, "day,age,sleep,cups,tired", "1,30,8,some,1")
        note = "The study is meant for members with at least 2 records, and finds 1 of yours"
        seen = " ".join(command("look", served.link).out.split())
        assert note in seen and "taking part may be read as having them" in seen
        (few,) = command("look", served.link, "--json").json["few_records"]
        assert few.startswith(note)
        command("budget", "--minimum-cohort", "3")
        assert command("join", served.link, typed="y\n").code == 0
        _person(command, "day,age,sleep,cups,tired", "1,30,8,some,1\n2,30,8,some,1")
        assert command("look", served.link, "--json").json["few_records"] == []


def test_a_yes_given_before_draws_no_code(command: Command, served: Served) -> None:
    _person(command)
    command("budget", "--minimum-cohort", "3")
    asked, given = command("join", served.link, typed="n\n"), command("join", served.link, "--yes")
    assert (asked.code, given.code) == (4, 0)
    assert "\N{FULL BLOCK}" in asked.out and "\N{FULL BLOCK}" not in given.out
    assert "Fingerprint, to compare" in given.out


def test_without_data_a_yes_is_asked_for_twice(command: Command, served: Served) -> None:
    declined = command("join", served.link, typed="y\nn\n")
    assert declined.code == 4 and "declined" in declined.err
    assert "Go on all the same?" in declined.out and "Do you consent?" in declined.out
    assert command("join", served.link, typed="n\ny\n").code == 4
    assert command("status", "--json").json == []
    assert command("join", served.link, typed="y\ny\n").code == 0


def test_nobody_at_the_keyboard_is_a_no(command: Command, served: Served) -> None:
    done = command("join", served.link, "--json")
    assert done.code == 4 and "nobody answered" in done.err


def test_a_yes_that_is_not_possible_is_not_asked_for(command: Command, served: Served) -> None:
    command("budget", "--per-study", "0.5")
    done = command("join", served.link, typed="y\ny\n")
    assert done.code == 4 and "budget --per-study" in done.err and "[y/N]" not in done.out


def test_a_joined_study_says_so_before_anything_is_asked(command: Command, served: Served) -> None:
    _joined(command, served)
    again = command("join", served.link, typed="y\ny\n")
    assert (again.code, again.out) == (6, "") and "joined this study already: consented" in again.err
    looked = command("look", served.link)
    assert looked.code == 0 and looked.out.splitlines()[0].startswith("You have joined this study already: consented.")
    assert command("look", served.link, "--json").json["joined"] == "consented"
    command("leave")
    assert command("join", served.link, "--yes").code == 0  # who left early may come back


def test_a_member_is_told_the_cost_that_is_held_and_no_objection(command: Command, served: Served) -> None:
    _person(command)
    before = " ".join(command("look", served.link).out.split())
    assert "Your budget: 10 now, 8 with this study" in before and "Per-attribute" not in before
    command("budget", "--lifetime", "2", "--minimum-cohort", "3")
    done = command("join", served.link, "--yes")
    assert done.code == 0 and "Keep it running until your packet is sent" in " ".join(done.out.split())
    shown = " ".join(command("look", served.link).out.split())
    assert "It holds epsilon 0 spent, 2 reserved; the odds of anything about you move by at most" in shown
    assert "with this study" not in shown and "not possible" not in shown


def test_status_and_run_say_what_comes_next_and_when(command: Command, served: Served) -> None:
    _joined(command, served)
    assert "before enrolment closes at " in " ".join(command("status").out.split())
    told = " ".join(command("run", "--once", "--max-seconds", "2").out.split())
    assert "enrolled: waits until enrolment closes at" in told


def test_a_closed_study_says_so_on_the_first_line(command: Command, served: Served) -> None:
    closes = served.aggregator.manifest.timetable.enrol_closes
    assert command("look", served.link, "--json").json["closed"] is False
    command.monkeypatch.setattr("time.time", lambda: closes + 1.0)
    looked = command("look", served.link)
    assert looked.out.splitlines()[0].startswith("This study is closed: enrolment ended ")
    joined = command("join", served.link, typed="y\ny\n")
    assert (joined.code, joined.out) == (4, "") and "this study is closed: enrolment ended" in joined.err
    assert command("look", served.link, "--json").json["closed"] is True


# Which study


def test_study_messages_say_what_there_is(command: Command, served: Served) -> None:
    assert "no studies yet" in command("leave").err
    first = _joined(command, served)
    with serving(DECLARED.replace("Sleep and coffee", "Tea")) as other:
        second = _joined(command, other)
        both = command("leave")
        assert both.code == 4
        for words in (first[:8], second[:8], "Sleep and coffee", "Tea", "consented"):
            assert words in both.err
        assert first[:8] in command("leave", "--study", "zz").err
        assert command("leave", "--study", second[:8]).code == 0
        assert {one["study"]: one["state"] for one in command("status", "--json").json} == {
            first: "consented", second: "withdrawn",
        }
        assert command("leave").code == 0  # the other one has ended
    assert "have ended" in command("leave").err


# Running


def test_run_without_studies_stops_and_says_so(command: Command, served: Served) -> None:
    done = command("run", "--max-seconds", "3")
    assert done.code == 0 and "no studies yet: `anonml peer join LINK`" in done.out
    _joined(command, served)
    command("leave")
    done = command("run", "--max-seconds", "3")
    assert done.code == 0 and "have ended" in done.out


@pytest.mark.parametrize("word", ["invite-spent", "key-not-listed", "roster-full"])
def test_a_refused_enrolment_says_what_to_do(command: Command, served: Served, word: str) -> None:
    _joined(command, served)
    served.aggregator.says["enrol"] = word
    assert command("run", "--once", "--max-seconds", "1").code == 0
    (one,) = command("status", "--json").json
    assert one["state"] == "refused"
    assert one["reason"] == f"not admitted; {reply_sentence(word)}" != f"not admitted; {word}"


def test_every_word_has_its_sentence() -> None:
    assert set(SENTENCES) == WORDS
    assert reply_sentence(PASSED) == PASSED and reply_sentence("all is well") == "“all is well”"


@pytest.mark.slow
def test_run_keeps_trying_while_the_proxy_is_away(command: Command, served: Served) -> None:
    _joined(command, served)
    done = command("run", "--max-seconds", "2", "--route", "socks://127.0.0.1:1")
    assert (done.code, done.err) == (0, "")
    assert command("status", "--json").json[0]["state"] == "consented"
    assert command("run", "--once", "--max-seconds", "1").code == 0
    assert command("status", "--json").json[0]["state"] == "enrolled"


@pytest.mark.process
def test_an_interrupt_of_a_run_leaves_no_traceback(command: Command, served: Served) -> None:
    _joined(command, served)
    running = subprocess.Popen(
        [sys.executable, "-m", "anonml", "peer", "run", "--home", command.home],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"},
    )
    assert running.stdout is not None
    assert "Sleep and coffee" in running.stdout.readline()
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, "") and "nothing is lost" in out


@pytest.mark.parametrize("place", ["anonml._application", "peer.cli.main.open_view"])
def test_an_interrupt_before_anything_runs_leaves_no_traceback(command: Command, place: str) -> None:
    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    command.monkeypatch.setattr(place, interrupted)
    done = command("run", "--max-seconds", "3")
    assert done.code in (0, 130) and "nothing is lost" in done.out + done.err
