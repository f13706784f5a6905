"""The owner's data, predictions, limits and copies by the command line."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from anon.accounting.zcdp import rho_within
from anon.errors import Refused
from anon.ldp import nano
from anon.protocols.cost_words import DELTA
from peer.cli.data import yours
from peer.data.choices import Choices, Person
from peer.predict import distinct_digits
from peer.store.home import PeerHome
from tests.support.peer_command import Command, Served

MODEL = {
    "version": 1,
    "study": "ab" * 32,
    "title": "Tired",
    "label": {
        "name": "tired", "description": "You are tired.", "query": "SELECT tired FROM person",
        "positive": [1], "negative": [0], "missing": "negative",
    },
    "features": [
        {
            "name": "cups", "kind": "categorical", "description": "Coffee.", "query": "SELECT cups FROM person",
            "missing": "own", "range": [], "bins": 0, "cuts": [], "scale": "linear", "categories": ["few", "many"],
        },
    ],
    "cuts": [],
    "ensemble": "soft",
    "classifier": "soft",
    "base_rate": 0.5,
    "threshold": 0.8802,
    "tables": [
        {
            "features": ["cups"], "cards": [3], "reports": 100, "f1": 0.7, "auc": 0.7, "weight": 1.0,
            "log_odds": [-2.0, 2.0, 0.0], "votes": [0, 1, 0],
        },
    ],
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "model.json"
    file.write_text(json.dumps(MODEL))
    return file


def _people(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "people.csv"
    file.write_text(text)
    return file


def test_a_file_that_is_no_model_is_not_taken_for_a_studys_id(command: Command, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text("<!doctype html>")
    done = command("predict", report)
    assert done.code == 3 and "no study's id" not in done.err


def test_predicting_for_oneself_without_data_warns(command: Command, model: Path, tmp_path: Path) -> None:
    done = command("predict", model, "--json")
    assert done.code == 0 and "reads the table “person”, which is not there" in done.err
    assert "anonml peer import" in done.err
    assert done.json == [{"who": "you", "probability": 0.5, "threshold": 0.8802, "positive": None}]
    command("import", _people(tmp_path, "age\n3\n"), "--table", "person")
    assert "reads the column “cups”, which is not there" in command("predict", model).err
    command("import", _people(tmp_path, "cups\nmany\n"), "--table", "person")
    done = command("predict", model)
    assert done.err == "" and "“tired”: score 88.1 %, threshold 88.0 %: yes" in done.out


def test_a_file_of_other_columns_is_refused(command: Command, model: Path, tmp_path: Path) -> None:
    done = command(
        "predict", model, "--people", _people(tmp_path, "who,coffee\na,many\n"), "--output", tmp_path / "p.csv"
    )
    assert done.code == 3 and "reads the column “cups”, which is not there" in done.err
    assert not (tmp_path / "p.csv").exists()
    assert command("predict", model, "--people", tmp_path / "gone.csv").err.count("gone.csv") == 1


def test_a_prediction_by_a_model_that_noise_explains_is_said_with_caution(command: Command, tmp_path: Path) -> None:
    command("import", _people(tmp_path, "cups\nmany\n"), "--table", "person")
    for chance, shown, said in (
        (0.31, False, "31 of 100 such studies"),
        (0.004, True, ""),
        (0.0001, False, "1 of 100"),
    ):
        file = tmp_path / "told.json"
        file.write_text(json.dumps(MODEL | {"chance": chance, "shown": shown}))
        done = command("predict", file)
        assert done.code == 0 and (said in " ".join(done.err.split())) and bool(done.err) is bool(said)
    (tmp_path / "odd.json").write_text(json.dumps(MODEL | {"chance": 1.5, "shown": False}))
    assert "expected a probability" in command("predict", tmp_path / "odd.json").err


def test_a_prediction_by_a_declared_rule_says_how_much_was_heard(command: Command, tmp_path: Path) -> None:
    command("import", _people(tmp_path, "cups\nmany\n"), "--table", "person")
    belief = {
        "features": 2, "heard": 0.12, "members": 90, "against": 0.4, "contradicted": False, "enough": 1600,
    }  # fmt: skip
    file = tmp_path / "told.json"
    file.write_text(json.dumps(MODEL | {"belief": belief}))
    told = " ".join(command("predict", file).err.split())
    assert "88 % follow from what staff declared beforehand of 2 features" in told
    assert "12 % from the answers of 90 members" in told
    assert "about 1,600 could" in told or "about 1600 could" in told
    file.write_text(json.dumps(MODEL | {"belief": belief | {"contradicted": True, "against": 0.001}}))
    assert "The answers contradict what was declared." in " ".join(command("predict", file).err.split())


def test_without_an_answer_no_score_is_told(command: Command, tmp_path: Path) -> None:
    command("import", _people(tmp_path, "cups\nmany\n"), "--table", "person")
    file = tmp_path / "told.json"
    file.write_text(json.dumps(MODEL | {"chance": 0.31, "shown": False}))
    told = command("predict", file)
    assert "“tired”: no answer" in told.out and "88" not in told.out
    assert command("predict", file, "--json").json[0]["probability"] > 0.8


def test_predictions_go_to_a_new_file_only(command: Command, model: Path, tmp_path: Path) -> None:
    people, target = _people(tmp_path, "who,cups\na,many\nb,few\n"), tmp_path / "p.csv"
    words = ("predict", model, "--people", people, "--person", "who", "--output")
    assert command(*words, target).code == 0
    written = target.read_text()
    assert written.splitlines() == ["who,probability,positive", "a,0.880797,1", "b,0.119203,0"]
    again = command(*words, target)
    assert again.code == 4 and "exists already" in again.err and target.read_text() == written
    lost = command(*words, tmp_path / "nowhere" / "p.csv")
    assert lost.code == 4 and "no such folder" in lost.err
    named = command("predict", model, "--people", people, "--person", "who").out
    assert "“a”: “tired”: score 88.1 %, threshold 88.0 %: yes" in named


def test_a_query_with_a_common_table_expression_reads_one_table(command: Command, model: Path, tmp_path: Path) -> None:
    plain = json.loads(model.read_text())
    plain["features"][0]["query"] = "WITH mine AS (SELECT cups FROM person) SELECT cups FROM mine"
    model.write_text(json.dumps(plain))
    done = command("predict", model, "--people", _people(tmp_path, "cups\nmany\n"), "--json")
    assert (done.code, done.json[0]["positive"]) == (0, True)


@pytest.mark.parametrize(
    ("score", "threshold", "shown"),
    [(0.99, 0.5, ("99.0", "50.0")), (0.98996, 0.99, ("98.996", "99.000")), (0.5, 0.5, ("50.0", "50.0"))],
)
def test_score_and_threshold_are_distinct_digits(score: float, threshold: float, shown: tuple[str, str]) -> None:
    assert distinct_digits(score, threshold) == shown


def test_an_import_that_no_study_reads_says_so(command: Command, served: Served, tmp_path: Path) -> None:
    other, told = tmp_path / "deutsch.csv", "No study reads this: your studies go on reading “person”."
    other.write_text("alter\n52\n")
    assert "No study" not in command("import", other).out, "before the first study"
    command("budget", "--minimum-cohort", "3")
    assert command("join", served.link, "--yes").code == 0
    assert told in " ".join(command("import", other).out.split())
    assert told in " ".join(command("import", other, "--json").json["notes"])
    assert "No study" not in command("import", other, "--table", "person").out


def test_import_of_a_missing_file_names_it(command: Command, tmp_path: Path) -> None:
    done = command("import", tmp_path / "gone.csv")
    assert done.code == 3 and "gone.csv" in done.err


def test_backup_into_a_missing_folder_closes_nothing(command: Command, tmp_path: Path) -> None:
    command("status")
    done = command("backup", tmp_path / "nowhere" / "b", "--final")
    assert done.code == 4 and "no such folder" in done.err
    assert command("backup", tmp_path / "b").code == 0


@pytest.mark.parametrize("home", ["file", "file/below", "/proc/anonml/home"])
def test_a_home_that_cannot_be_is_refused(command: Command, tmp_path: Path, home: str) -> None:
    (tmp_path / "file").touch()
    done = command("status", home=tmp_path / home)
    assert done.code == 4 and "--home" in done.err


def test_commands_that_only_read_make_no_home(command: Command, model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert command("tables", home=tmp_path / "file").code == 4
    assert "no tables yet" in command("tables").out
    assert command("predict", model).code == 0
    assert command("backup", tmp_path / "b").code == 4
    assert not command.home.exists()


def test_budget_shows_the_owners_limits(command: Command) -> None:
    shown = command("budget", "--per-study", "1.5", "--minimum-cohort", "7").out
    told = " ".join(command("budget", "--minimum-cohort", "6").err.split())
    assert "from 7 people to 6. That holds for every study" in told and "--minimum-cohort 7` raises it again" in told
    assert "may cost 1.5 (--per-study)" in shown and "at least 7 people (--minimum-cohort)" in shown


def test_each_measure_of_privacy_has_limits_of_its_own(command: Command) -> None:
    before = command("budget").out
    assert "another budget" not in before
    shown = command("budget", "--measure", "zcdp", "--per-study", "1.5").out
    assert "10 of epsilon 10 left for perturbed packets" in shown and "rho" not in shown
    assert "100 % of epsilon 3.93 left for noisy sums about a person" in shown and "may cost epsilon 1.5 (" in shown
    told = json.loads(
        command("budget", "--measure", "pure-central", "--unit", "record", "--lifetime", "1", "--json").out
    )
    limits = {(one["measure"], one["unit"]): (one["lifetime"], one["per_study"]) for one in told["other_budgets"]}
    most = rho_within(nano(1.5), DELTA) / 1e9
    expected = {("pure-central", "person"): (4, 2), ("zcdp", "person"): (0.3, most), ("pure-central", "record"): (1, 0)}
    assert limits == expected and (told["lifetime"], told["per_study"]) == (10, 5)



def test_a_passphrase_can_be_changed_by_who_knows_it(command: Command, served: Served) -> None:
    def given(old: str, new: str = "") -> None:
        for name, value in (("ANONML_PASSPHRASE", old), ("ANONML_NEW_PASSPHRASE", new)):
            command.monkeypatch.setenv(name, value)

    command("budget", "--minimum-cohort", "3")
    command("join", served.link, "--yes")
    key = command("key", served.link).out
    given("first")
    assert command("passphrase").code == 0
    given("wrong", "second")
    assert command("passphrase").code == 4
    given("first", "second")
    assert command("passphrase").code == 0
    given("first")
    assert command("key", served.link).code == 4
    given("second")
    assert command("key", served.link).out == key


@pytest.mark.slow
def test_a_change_of_passphrase_that_is_cut_short_locks_nobody_out(command: Command, served: Served) -> None:
    def cut_short(*_: object) -> None:
        raise KeyboardInterrupt

    command("budget", "--minimum-cohort", "3")
    command("join", served.link, "--yes")
    key = command("key", served.link).out
    command.monkeypatch.setenv("ANONML_PASSPHRASE", "first")
    assert command("passphrase").code == 0
    command.monkeypatch.setenv("ANONML_NEW_PASSPHRASE", "second")
    with command.monkeypatch.context() as patch:
        patch.setattr("peer.store.store.Store.reclose_secrets", cut_short)
        assert command("passphrase").code != 0
    command.monkeypatch.setenv("ANONML_PASSPHRASE", "second")
    assert command("key", served.link).out == key


def test_a_new_passphrase_is_typed_twice(command: Command) -> None:
    typed = iter(["one", "other"])
    command.monkeypatch.setattr("getpass.getpass", lambda _prompt: next(typed))
    done = command("passphrase")
    assert done.code == 4 and "differ" in done.err


@pytest.mark.slow
def test_an_emptied_file_is_not_taken_for_a_budget_that_nobody_spent(command: Command, tmp_path: Path) -> None:
    command("import", _people(tmp_path, "cups\nmany\n"), "--table", "person")
    assert command("budget").code == 0
    file = command.home / "peer.sqlite"
    for ending in ("-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    file.write_bytes(b"")
    done = command("budget")
    said = " ".join(done.err.split())  # the longer the path, the earlier a line ends
    assert done.code == 8 and "emptied" in said and "anonml peer restore" in said
    assert file.read_bytes() == b""


def test_columns_a_person_and_numbers_are_named_by_option(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("Wer,Stunden\nann,\"1,234\"\nbob,n/a\n")
    words = ("import", file, "--table", "person", "--column", "hours=Stunden", "--person", "Wer=ann")
    assert command(*words, "--numbers", "stunden=decimal").code == 0
    assert read_rows(command, "SELECT hours FROM person") == [(1.234,)]
    for wrong in (("--column", "hours"), ("--person", "=x"), ("--numbers", "stunden=roman"), ("--column", "a=b")):
        assert command("import", file, *wrong).code == 4
    assert command("import", file, "--table", "person", "--person", "wer=eve").code == 4
    assert command("import", file, "--table", "person").code == 0, "the name that was given before is remembered"
    assert [hours for (hours,) in read_rows(command, "SELECT hours FROM person")] == ["1,234", "n/a"]


def test_columns_may_be_named_as_they_stand_in_the_file(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("Wer ist es;Stunden\nann;1,5\nbob;2,5\n")
    words = ("--column", "hours=Stunden", "--person", "Wer ist es=ann", "--numbers", "Stunden=decimal")
    assert command("import", file, "--table", "person", *words).code == 0
    assert read_rows(command, "SELECT hours FROM person") == [(1.5,)]


def test_a_report_is_fetched_when_asked_for_and_kept_as_a_page_that_runs_nothing(
    command: Command, served: Served, tmp_path: Path
) -> None:
    target = tmp_path / "report.html"
    early = command("report", served.link, target)
    assert early.code == 4 and "no report is published yet" in early.err and not target.exists()
    served.aggregator.publish("report", b"<!doctype html>\n<h1 tabindex=\"0\">Sleep</h1>")
    done = command("report", served.link, target)
    assert done.code == 0 and str(target.name) in done.out
    text = target.read_text()
    assert '<h1 tabindex="0">Sleep</h1>' in text and "default-src 'none'" in text
    again = command("report", served.link, target)
    assert again.code == 4 and "exists already" in again.err and target.read_text() == text
    command("join", served.link, "--yes")
    assert "no study's id" in command("report", "zz", tmp_path / "other.html").err


def test_a_hostile_report_is_told_and_no_file_is_made(command: Command, served: Served, tmp_path: Path) -> None:
    served.aggregator.publish("report", b"<!doctype html><h1>Sleep</h1><script>evil()</script>")
    target = tmp_path / "report.html"
    done = command("report", served.link, target)
    assert done.code == 3 and "does not have the form that AnonML writes" in " ".join(done.err.split())
    assert not target.exists()


SEVERAL = "username,cups\nann,1\nbob,2\n Ann ,3\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_file_of_several_people_is_refused_until_one_is_named(command: Command, tmp_path: Path) -> None:
    file = _people(tmp_path, SEVERAL)
    done = command("import", file, "--table", "person")
    assert done.code == 4 and "username names several people (“ann”, “bob”)" in " ".join(done.err.split())
    assert "--person username=YOU" in done.err and "--all-rows" in done.err and command("tables", "--json").json == {}
    assert command("import", file, "--json").code == 4
    assert command("import", file, "--table", "person", "--person", "username=ann").code == 0
    assert read_rows(command, "SELECT cups FROM person") == [(1,), (3,)]
    assert command("import", file, "--table", "person", "--all-rows").code == 0
    assert read_rows(command, "SELECT count(*) FROM person") == [(3,)]


def test_people_beyond_the_first_rows_are_noticed_and_ten_are_named(command: Command, tmp_path: Path) -> None:
    file = _people(tmp_path, "username,cups\n" + "ann,1\n" * 300 + "".join(f"p{number},1\n" for number in range(12)))
    done = command("import", file)
    assert done.code == 4 and "“p8”, …)" in " ".join(done.err.split())


def test_on_a_terminal_the_owner_is_asked_which_one_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _people(tmp_path, SEVERAL)
    for typed, person in ((" bob \n", Person("username", "bob")), ("*\n", None)):
        monkeypatch.setattr("sys.stdin", _Terminal(typed))
        chosen = yours(file, None, Choices(), asks=True)
        assert chosen is not None and chosen.person == person
    for typed in ("", "\n"):
        monkeypatch.setattr("sys.stdin", _Terminal(typed))
        with pytest.raises(Refused, match="nothing was imported"):
            yours(file, None, None, asks=True)


def test_a_preview_shows_the_rows_of_the_person_who_is_named(command: Command, tmp_path: Path) -> None:
    file = _people(tmp_path, "username,cups\n" + "ann,1\n" * 300 + "bob,2\n")
    seen = command("import", file, "--preview", "--person", "username=bob", "--column", "mugs=cups", "--json").json
    assert (seen["tables"][0]["rows"], seen["tables"][0]["count"]) == ([["bob", 2]], 1)
    assert [column["name"] for column in seen["tables"][0]["columns"]] == ["username", "mugs"]
    for option in ((), ("--preview",)):
        nobody = command("import", file, *option, "--person", "username=4711")
        assert nobody.code == 4 and "no row has that value" in nobody.err and "It holds: “ann”, “bob”" in nobody.err


def read_rows(command: Command, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(PeerHome(command.home).data_path)) as database:
        return database.execute(query).fetchall()
