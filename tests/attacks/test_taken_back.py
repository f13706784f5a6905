"""The owner deletes a table, or everything, while studies are under way: what is sent, charged and kept does not differ
with it, and of what was deleted no byte is left."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from anon.errors import Refused
from anon.queries.sandbox import plain_tables_of
from peer.app import PeerApp
from peer.data.evaluate import answers_of, at_once, snapshot_of
from peer.data.importing import import_rows
from peer.pairing.state import folder_of
from peer.rules.lifecycle import LAST, State
from peer.rules.packet_lifecycle import Status
from peer.rules.study_secrets import StudySecrets
from peer.run.taking_back import Choice
from peer.run.taking_back_words import told
from peer.store.database.integrity import write_digest
from peer.store.held_folder import HeldFolder
from peer.store.home import PeerHome
from peer.store.home_contents import Fate, entries, fate_of
from peer.store.pending_invites import WaitingLinks
from peer.store.records import AnsweringStudy
from tests.attacks.test_manifests_kept import aged
from tests.support.canaries import CANARIES, NUMBER, TEXT, WHOLE, forgetful_sqlite, spellings, traces
from tests.support.clock import Clock
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator, advance, reopened, stored
from tests.support.peer_command import Command, Served
from tests.support.tries import every
from tests.support.whole_lives import COLUMNS, Hook, life, nothing, owner

CODE = "zeisigcode"


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with forgetful_sqlite(monkeypatch):
        yield


def deleting(choice: Choice) -> Hook:
    """The owner who deletes the table then."""

    def delete(app: PeerApp) -> None:
        with app.taking_back() as mine:
            assert [one.study for one in mine.delete_table("person", choice)]

    return delete


# A table


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "when", "choice"),
    every(3, [DECLARED, PAPER, BINNED], ["enrolled", "checked"], [Choice.GO_ON, Choice.MISSING]),
)
async def test_who_deletes_and_stays_sends_the_same_packets_at_the_same_cost(
    tmp_path: Path, text: str, when: str, choice: Choice
) -> None:
    seen = []
    for hook in (nothing, deleting(choice)):
        aggregator = FakeAggregator.with_study(text)
        app = owner(tmp_path / hook.__name__, aggregator)
        await life(app, aggregator, **{when: hook})
        (status,) = app.status()
        assert status.state is State.FINISHED, status.reason
        lengths = [len(body) for body in aggregator.sent("packets")]
        seen.append((lengths, [one.status for one in status.slots], status.reserved))
        assert status.spent == sum(one.epsilon for one in status.slots) > 0
    assert seen[0] == seen[1] and seen[0][0], "nothing that leaves tells who deleted"
    assert traces(tmp_path / "delete") == []


@pytest.mark.slow
async def test_after_evaluation_the_owner_chooses_whether_answers_are_kept(tmp_path: Path) -> None:
    for choice, kept in ((Choice.GO_ON, NUMBER), (Choice.MISSING, None)):
        aggregator = FakeAggregator.with_study(PAPER)
        app = owner(tmp_path / choice, aggregator)

        def look(
            app: PeerApp, choice: Choice = choice, kept: float | None = kept, aggregator: FakeAggregator = aggregator
        ) -> None:
            packets = [one.sealed for one in app.store.outbox(aggregator.study)]
            deleting(choice)(app)
            study = app.store.study(aggregator.study)
            assert (
                isinstance(study, AnsweringStudy) and snapshot_of(study.manifest, study.snapshot).values["age"] == kept
            )
            assert [one.sealed for one in app.store.outbox(aggregator.study)] == packets, "what is made is sent"
            assert (traces(app._home.path) == []) is (kept is None)

        await life(app, aggregator, checked=look)
        assert app.store.state(aggregator.study) is State.FINISHED


@pytest.mark.parametrize("text", [DECLARED, PAPER])
async def test_who_leaves_too_sends_nothing_more_and_what_was_made_stays_charged(tmp_path: Path, text: str) -> None:
    aggregator = FakeAggregator.with_study(text)
    app = owner(tmp_path, aggregator)
    made: list[int] = []

    def leave(app: PeerApp) -> None:
        made.extend(one.epsilon for one in app.store.outbox(aggregator.study))
        deleting(Choice.LEAVE)(app)

    await life(app, aggregator, checked=leave)
    (status,) = app.status()
    assert status.state is State.WITHDRAWN and aggregator.sent("packets") == []
    assert status.spent == sum(made) and status.reserved == 0 and (made or text == PAPER)
    assert [one.status for one in status.slots] == [Status.STOPPED] * len(made)
    assert traces(tmp_path) == []


async def test_who_leaves_before_closing_is_struck_off(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = owner(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await advance(app, aggregator, aggregator.manifest.timetable.enrol_closes - 10)
    deleting(Choice.LEAVE)(app)
    assert await app.deliver_withdrawal(aggregator.study) is State.WITHDRAWN
    assert aggregator.enrolments == {} and app.budget().held == 0


async def test_a_study_that_reads_other_tables_is_let_be(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = owner(tmp_path, aggregator)
    import_rows(tmp_path / "data.sqlite", "diary", ("entry",), [(TEXT,)])
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    with app.taking_back() as mine:
        assert mine.delete_table("diary", Choice.LEAVE) == []
    assert app.store.state(aggregator.study) is State.CONSENTED


async def test_a_deletion_takes_the_copies_of_another_process_s_page_and_of_a_phone(tmp_path: Path) -> None:
    app = owner(tmp_path, FakeAggregator.with_study())
    (tmp_path / "pairing").mkdir()
    for place in ("incoming", "pairing/incoming"):
        copy = HeldFolder(tmp_path / place, os.urandom).path / "key" / "person.csv"
        copy.parent.mkdir(parents=True)
        copy.write_text(TEXT)
    import_rows(tmp_path / "data.sqlite", "diary", ("entry",), [(NUMBER,)])
    with app.taking_back() as mine:
        mine.delete_table("diary", Choice.GO_ON)
    assert not list(tmp_path.glob("**/*.csv"))


@pytest.mark.slow
async def test_nothing_is_erased_while_a_phone_is_let_in(tmp_path: Path) -> None:
    app = owner(tmp_path, FakeAggregator.with_study())
    refused = pytest.raises(Refused, match="pairing is on")
    with folder_of(PeerHome(tmp_path)).held(), app.taking_back() as mine, refused:
        mine.erase(True)
    assert "person" in plain_tables_of(tmp_path / "data.sqlite")


async def test_nothing_is_deleted_while_another_process_runs_the_home_or_uses_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("peer.data.deleting.delete_all.__defaults__", (0.1, lambda: None))
    aggregator = FakeAggregator.with_study()
    app = owner(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    with app.taking_back() as mine:
        with PeerHome(tmp_path).running():
            for take in (lambda: mine.delete_table("person", Choice.LEAVE), lambda: mine.erase(True)):
                with pytest.raises(Refused, match="runs this peer"):
                    take()
        with closing(sqlite3.connect(tmp_path / "data.sqlite", isolation_level=None)) as importing:
            importing.execute("BEGIN IMMEDIATE")
            with pytest.raises(Refused, match="in use"):
                mine.erase(True)
    assert app.store.state(aggregator.study) is State.CONSENTED and "person" in plain_tables_of(
        tmp_path / "data.sqlite"
    )


# Everything


async def _full_home(tmp_path: Path) -> tuple[PeerApp, dict[bytes, FakeAggregator], dict[str, bytes]]:
    """A home with a study in every state that is not over, one that is, and a file of every kind that goes; what must
    not be found in it afterwards."""
    clock, home = Clock(), PeerHome(tmp_path / "home")
    aggregators = [FakeAggregator.with_study(text, clock) for text in (DECLARED, PAPER, DECLARED)]
    app = owner(home.path, aggregators[0])
    finished, checked, enrolled = aggregators
    await life(app, finished)
    app = reopened(home, checked)
    needles = dict(CANARIES) | spellings("code", CODE)

    def secrets_of(app: PeerApp, aggregator: FakeAggregator) -> None:
        made = StudySecrets.from_bytes(app._tools.vault.open(app.store.study(aggregator.study).secrets or b""))
        needles[f"seed {len(needles)}"] = made.signing_seed
        needles[f"nym {len(needles)}"] = bytes(made.commitment.nym_secrets[0])
        needles[f"enrolment {len(needles)}"] = stored(app, aggregator.study, "enrolment") or b""

    checked = aggregators[1] = FakeAggregator.with_study(PAPER, clock)
    app = reopened(home, checked)
    await app.join(checked.invite, checked.manifest.epsilon)
    secrets_of(app, checked)
    checked.crowd(4)
    await advance(app, checked, checked.manifest.timetable.enrol_closes)
    checked.close()
    await advance(app, checked, checked.manifest.windows[0].opens)
    needles |= {f"packet {one.slot}": one.sealed.ciphertext for one in app.store.outbox(checked.study) if one.sealed}
    enrolled = aggregators[2] = FakeAggregator.with_study(DECLARED, clock)
    app = reopened(home, enrolled)
    await app.join(enrolled.invite, enrolled.manifest.epsilon)
    await advance(app, enrolled, enrolled.clock() + 5)
    secrets_of(app, enrolled)
    app.store.freeze(enrolled.study, await answers_of(at_once, enrolled.manifest, home.data_path, 20.0))
    waiting = FakeAggregator.with_study(DECLARED, clock)
    app.waiting[waiting.study] = evolve(waiting.invite, code=CODE)
    app.pause(clock() + 50, enrolled.study)
    _litter(home.path)
    (HeldFolder(home.path / "incoming", os.urandom).path / f"{TEXT}.csv").write_text(TEXT)  # a living page's
    assert {"peer.sqlite", "data.sqlite"} <= {line.partition(":")[0] for line in traces(home.path, needles)}
    return app, {one.study: one for one in aggregators}, needles


def _litter(home: Path) -> None:
    """Files of every kind that goes, as killed processes and other programs of the home leave them."""
    content = "\n".join((TEXT, str(NUMBER), CODE)).encode()
    for name in (
        "peer.sqlite.v2-kept", "peer.sqlite.v2-kept.new", "data.sqlite-journal", "settings.json.new", "told.json",
        "told.json.new", "scratch/peer.sqlite", f"incoming/ab/cd/{TEXT}.csv", f"pairing/incoming/ab/cd/{TEXT}.csv",
        "pairing/state.json", "pairing/state.json.new", "pairing/wish-off",
    ):  # fmt: skip
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(content)
    for name in ("tor/state", "pairing/tor/state", "aggregator/signing.key", "letter.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(b"stays")


@pytest.mark.slow
@pytest.mark.parametrize("tell", [True, False])
async def test_erasing_everything_leaves_the_ledger_and_not_one_byte_of_the_rest(tmp_path: Path, tell: bool) -> None:
    app, aggregators, needles = await _full_home(tmp_path)
    home, spent = app._home.path, {one.study: one.spent for one in app.budget().entries}
    policy, receipts = app.policy(), [(one.study, one.survey, one.cost.amount) for one in app.receipts()]
    with app.taking_back() as mine:
        result = mine.erase(tell)
    assert traces(home, needles) == []
    assert {one.study: one.spent for one in app.budget().entries} == spent and sum(spent.values()) > 0
    assert [(one.study, one.survey, one.cost.amount) for one in app.receipts()] == receipts and receipts
    assert app.policy() == policy and app.budget().held == sum(spent.values())
    assert result.unknown == ("letter.txt",) and (home / "letter.txt").read_bytes() == b"stays"
    for name in ("tor/state", "pairing/tor/state", "aggregator/signing.key"):
        assert (home / name).read_bytes() == b"stays"
    states = [one.state for one in app.status()]
    assert states.count(State.LEAVING) == (1 if tell else 0) and set(states) <= {*LAST, State.LEAVING}
    if tell:
        (owed,) = result.leaving
        aggregator = aggregators[owed.study]
        app = reopened(PeerHome(home), aggregator)
        assert await app.deliver_withdrawal(owed.study) is State.WITHDRAWN and aggregator.enrolments == {}
    assert all(aggregator.sent("packets") == [] for aggregator in list(aggregators.values())[1:])


@pytest.mark.slow
async def test_an_erased_home_goes_on_with_the_budget_that_is_left(tmp_path: Path) -> None:
    app, _, _ = await _full_home(tmp_path)
    held, home = app.budget().available, app._home
    with app.taking_back() as mine:
        mine.erase(False)
        mine.erase(True)  # again, as after a crash
    app.close()
    aggregator = FakeAggregator.with_study(DECLARED, Clock(app._now()))
    app = reopened(home, aggregator)
    assert app.budget().available > held and app.budget().held > 0
    assert WaitingLinks(app.store, lambda: app._tools.vault) == {}
    import_rows(home.data_path, "person", COLUMNS, [(30, "some", 1)])
    await life(app, aggregator)
    assert app.store.state(aggregator.study) is State.FINISHED


@pytest.mark.slow
async def test_erasing_that_was_killed_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, _, needles = await _full_home(tmp_path)
    with app.taking_back() as mine:
        for at in range(4):
            left = [at]

            def killed(path: Path, left: list[int] = left) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr("anon.storage.overwriting._overwrite", lambda path, _size: killed(path))
                with pytest.raises(KeyboardInterrupt):
                    mine.erase(True)
        mine.erase(True)
    assert traces(app._home.path, needles) == []


@pytest.mark.parametrize("left", [False, True])
async def test_a_home_that_was_moved_elsewhere_is_erased_without_a_word_to_anybody(tmp_path: Path, left: bool) -> None:
    aggregator = FakeAggregator.with_study()
    app = owner(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await advance(app, aggregator, aggregator.clock() + 5)
    if left:
        await app.leave(aggregator.study)
    app.store._connection.execute("UPDATE meta SET value = '1' WHERE key = 'retired'")
    write_digest(app.store._connection)
    with app.taking_back() as mine:
        assert mine.erase(True).leaving == ()
    assert aggregator.sent("withdraw") == [] and traces(tmp_path) == [] and app.store.retired()


async def test_a_study_whose_manifest_is_refused_by_now_keeps_nothing_from_being_erased(tmp_path: Path) -> None:
    app, aggregator, old = await aged(tmp_path)
    app.store.freeze(old, TEXT.encode())
    with app.taking_back() as mine:
        assert len(mine.titles()) == len(mine.under_way()) == 2
        told(mine.under_way(), aggregator.clock())
        mine.erase(True)
    assert app.store.state(old) is State.WITHDRAWN and traces(tmp_path) == []


@pytest.mark.slow
async def test_every_kind_of_file_of_a_home_has_a_fate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files that appear in a home while a peer lives there: one that is new must say whether it goes."""
    app, _, _ = await _full_home(tmp_path)
    app.set_passphrase("not so long")
    assert [one.name for one in entries(app._home.path, Fate.UNKNOWN)] == ["letter.txt"]
    assert fate_of("pairing/on") is Fate.STAYS and fate_of("pairing/state.json") is Fate.GOES


# By command


def _joined(command: Command, served: Served, tmp_path: Path) -> None:
    file = tmp_path / "person.csv"
    file.write_text(f"age,cups,tired\n{NUMBER},{TEXT},{WHOLE}\n")
    assert command("import", file, "--table", "person").code == 0
    file.unlink()
    assert command("budget", "--minimum-cohort", "3").code == 0
    assert command("join", served.link, "--yes").code == 0
    assert command("run", "--once").code == 0


def test_delete_says_what_it_means_and_does_it_on_a_yes_alone(command: Command, served: Served, tmp_path: Path) -> None:
    _joined(command, served, tmp_path)
    for typed, code in (("", 4), ("n\nn\n", 4)):
        done = command("delete", "person", typed=typed)
        assert done.code == code and "nothing was deleted" in done.err
        assert "Sleep and coffee: your answers are not worked out yet" in done.out
    done = command("delete", "person", typed="y\ny\n")
    assert done.code == 0 and "deleted: person" in done.out and "was told that you left" in done.out
    assert traces(tmp_path) == [] and served.aggregator.enrolments == {}
    assert command("tables", "--json").json == {}
    again = command("delete", "person", "--yes")
    assert again.code == 4 and "you have none" in again.err


def test_erase_says_what_goes_and_what_stays(command: Command, served: Served, tmp_path: Path) -> None:
    _joined(command, served, tmp_path)
    done = command("erase", typed="n\n")
    assert done.code == 4 and "nothing was deleted" in done.err
    for said in ("all your tables", "spent twice", "Sleep and coffee", "SSD", "cannot be called back"):
        assert said in done.out
    done = command("erase", "--yes")
    assert done.code == 0 and "was told that you left" in done.out, done.err
    assert traces(tmp_path) == [] and served.aggregator.enrolments == {}
    assert command("status", "--json").json[0]["state"] == "withdrawn"


def test_a_forgotten_passphrase_does_not_keep_data_from_being_erased(
    command: Command, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _joined(command, served, tmp_path)
    monkeypatch.setenv("ANONML_NEW_PASSPHRASE", "long forgotten")
    assert command("passphrase").code == 0
    monkeypatch.setattr("getpass.getpass", lambda _prompt: "")
    assert command("erase", "--yes").code == 4
    done = command("erase", "--yes", "--silent")
    assert done.code == 0 and traces(tmp_path) == [] and len(served.aggregator.enrolments) == 1


def test_erasing_where_no_peer_lives_makes_none(command: Command, tmp_path: Path) -> None:
    done: Any = command("erase", "--yes")
    assert done.code == 4 and "nothing to erase" in done.err and not (tmp_path / "home").exists()
