"""`anonml teller`: a home is made once and served where it says, and a mistyped one is not made."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from typer.testing import CliRunner

from anon.crypto.nacl import SigningKey
from anon.errors import Damaged, InvalidValue, Malformed, Refused
from anon.sharing import exchange
from anon.sharing.arrangement import parse_arrangement
from anon.study.proposal import DRY_ROUND
from anon.teller.calls import Calls
from anon.teller.cli import app
from anon.teller.home import ALLOWED, PLACE, Place, existing_home, open_home
from anon.teller.journal import Journal
from anon.teller.news import Event, News
from anon.teller.session import Teller
from anon.text.instants import instant
from anon.transparency.fingerprint import words
from anon.wire.onion_address import onion_fault
from anonml import wiring
from tests.support.served_tellers import sum_study
from tests.support.spare import spared
from tests.support.sums import manifest_of, signing_key
from tests.support.tellers import held_tags

AB, AC = 0, 1


def run(*words: str | Path) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def told(*words: str | Path) -> Any:
    return json.loads(run(*words, "--json"))


def test_a_teller_is_made_with_an_onion_address_and_keeps_it(tmp_path: Path) -> None:
    made = told("init", "--name", "Ann", "--home", tmp_path / "home")
    host, _, port = made["address"].rpartition(":")
    assert onion_fault(host) == "" and port == "80"
    renamed = told("init", "--name", "Ann and Bo", "--home", tmp_path / "home")
    assert renamed == {**made, "name": "Ann and Bo"} == told("words", "--home", tmp_path / "home")
    assert made["words"] in run("words", "--home", tmp_path / "home")
    with pytest.raises(Refused, match="is served at"):
        run("init", "--name", "Ann", "--loopback", "--home", tmp_path / "home")


@pytest.mark.parametrize(
    "words",
    [
        ["--port", "99"],
        ["--loopback", "--name", ""],
        ["--loopback", "--name", "a\x1bb"],
        ["--name", "x" * 201],
        ["--loopback", "--name", "<YOUR OFFICE>"],
    ],
)
def test_a_wrong_wish_makes_nothing(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises((Refused, InvalidValue)):
        run("init", *([] if "--name" in words else ["--name", "Ann"]), *words, "--home", tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_one_command_makes_a_teller_and_serves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(home: Any, random_bytes: Any, ready: Any, *_: Any) -> None:
        ready(home.place().address)

    monkeypatch.setattr("anon.teller.service.serve", serve)
    words = ("serve", "--name", "Library", "--loopback", "--port", "8762", "--home", tmp_path)
    monkeypatch.setattr("anon.kit.terminal.logs.time.time", lambda: 1_800_000_000.0)
    begins = [line.partition(" ")[0] for line in run(*words).splitlines()]
    assert begins == ["2027-01-15T08:00:00Z"] * 3
    assert "teller Library serving at 127.0.0.1:8762" in run("serve", "--home", tmp_path)
    with pytest.raises(Refused, match="go with --name"):
        run("serve", "--loopback", "--home", tmp_path)


def test_a_taken_port_says_how_a_teller_is_made_anew(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"{port}, at which .* with another --port and --home"):
            run("serve", "--name", "Library", "--loopback", "--port", str(port), "--home", tmp_path / "home")


def test_a_line_tells_what_becomes_of_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = manifest_of()
    events = (
        News(Event.COUNTERSIGNED, manifest), News(Event.ADDING_UP, manifest, 0),
        News(Event.ADDING_UP, manifest, 1, early=True),
        News(Event.OVER, manifest, others=2), News(Event.OVER, manifest),
    )  # fmt: skip
    dry = evolve(manifest, title=DRY_ROUND)
    assert News(Event.OVER, dry).said.endswith("Keep serving: the staff's rehearsal or their study comes next")

    async def serve(home: Any, random_bytes: Any, ready: Any, say: Any, progress: Any, tell: Any) -> None:
        for news in events:
            tell(news)

    monkeypatch.setattr("anon.teller.service.serve", serve)
    run("init", "--name", "Ann", "--loopback", "--home", tmp_path)
    monkeypatch.setattr("anon.kit.terminal.logs.time.time", lambda: 1_800_000_000.0)
    begins = f"2027-01-15T08:00:00Z {manifest.study_id.hex()[:8]} “{manifest.title}”: "
    ahead = (
        "the staff's clock runs ahead, as in a rehearsal or a dry round. In any other study tell the staff and the "
        "other tellers"
    )
    stop = "No other study runs: you may stop (Ctrl-C), unless the staff plan a further one"
    assert run("serve", "--home", tmp_path).splitlines() == [
        f"{begins}new, of “{manifest.contact}”: at least 4 members; a sum may be of 2",
        f"{begins}asked to add up round 1",
        f"{begins}asked to add up round 2, before its dates: {ahead}",
        f"{begins}over; its keys and shares are erased here. Keep serving: 2 studies run still",
        f"{begins}over; its keys and shares are erased here. {stop}",
    ]
    lines = [json.loads(line) for line in run("serve", "--json", "--home", tmp_path).splitlines()]
    assert [line["event"] for line in lines] == ["countersigned", *["adding-up"] * 2, *["over"] * 2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_teller_that_is_stopped_says_so_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    async def serve(*_: Any) -> None:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    monkeypatch.setattr("anon.teller.service.serve", serve)
    run("init", "--name", "Ann", "--loopback", "--home", tmp_path)
    monkeypatch.setattr("anon.kit.terminal.logs.time.time", lambda: 1_800_000_000.0)
    again = f"`anonml teller serve --home {tmp_path}`"
    assert run("serve", "--home", tmp_path) == (
        f"2027-01-15T08:00:00Z stopped; nothing is lost: {again} goes on from here\n"
    )


def test_status_says_first_when_nobody_serves_the_teller(tmp_path: Path) -> None:
    run("init", "--name", "Ann", "--loopback", "--home", tmp_path)
    away = f"nobody serves this teller now, and its studies wait: start it with `anonml teller serve --home {tmp_path}`"
    assert run("status", "--home", tmp_path).splitlines()[0] == away
    held = existing_home(tmp_path, os.urandom).lock()
    assert "nobody" not in run("status", "--home", tmp_path)
    os.close(held)
    assert away in run("status", "--home", tmp_path)


@pytest.mark.parametrize("command", ["serve", "words", "status", "allow"])
def test_a_mistyped_home_is_not_made(tmp_path: Path, command: str) -> None:
    with pytest.raises(Refused, match="no teller here"):
        run(command, "--home", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_place_that_is_damaged_is_named(tmp_path: Path) -> None:
    run("init", "--name", "Ann", "--loopback", "--home", tmp_path)
    for damage in (b"", b"{}", b"[]", b'{"name": "", "address": "x"}', b'{"name": 1, "address": "x"}'):
        (tmp_path / PLACE).write_bytes(damage)
        with pytest.raises(Damaged, match="place"):
            run("words", "--home", tmp_path)


def test_status_shows_each_study(tmp_path: Path) -> None:
    run("init", "--name", "Ann", "--loopback", "--home", tmp_path / "home")
    run("init", "--name", "Bo", "--loopback", "--port", "8761", "--home", tmp_path / "other")
    assert told("status", "--home", tmp_path / "home") == []
    assert "no study yet" in run("status", "--home", tmp_path / "home")
    calls = []
    for name in ("home", "other"):
        home = existing_home(tmp_path / name, os.urandom)
        calls.append(Calls(home.key, home.place(), Journal(home.journal), os.urandom))
    entries = []
    for one in calls:
        entry = exchange.ask_entry(one.place.name, one.place.address).body(signing_key(0), b"")
        entries.append(exchange.parse_entry(one.answer("entry", entry)))
    world = sum_study(entries)
    asked = exchange.ask_countersign(world.aggregator.manifest.to_bytes())
    calls[0].answer("countersign", asked.body(world.aggregator.key, bytes(calls[0].key.verify_key)))
    (study,) = told("status", "--home", tmp_path / "home")
    assert (study["study"], study["stage"], study["members"]) == (world.study.hex(), "countersigned", None)
    why = "waits for the list of members, which the staff's program makes"
    (planned,) = parse_arrangement(world.aggregator.manifest.part).sums
    begun = {"round": 0, "slot": 0, "stage": "waiting", "taken": 0, "accepted": 0}
    assert study["sums"] == [begun | {"why": why, "noise": float(planned.sigma_squared) ** 0.5}]
    assert study["ended"] is None and not study["runs_ahead"], "no roster has come"
    table, key = world.aggregator.manifest.timetable, world.aggregator.manifest.aggregator_key.hex()
    assert (study["aggregator"], study["minimum"], study["enrolment_closes"]) == (key, 3, table.enrol_closes)
    said = run("status", "--home", tmp_path / "home")
    for part in (
        world.study.hex()[:8],
        f"words {study['fingerprint']}",
        f"with the key {key}",
        "begins with at least 3 members (few, as in a trial; 20 are usual); a sum may be of 3, as some may",
        "members' programs check that it keeps the epsilon",
        f"enrolment ends {instant(table.enrol_closes)}",
        f"answers come until {instant(study['answers_close'])}",
        f"at the latest {instant(study['needed_until'])}",
    ):
        assert part in said
    assert "deviation" not in said, "two studies' noises differ by their units, and read as if one were safer"
    assert study["answers_close"] <= table.ends < study["needed_until"] and "costs epsilon" not in said
    given = CliRunner().invoke(app, ["status", "--home", str(tmp_path / "home")], obj=wiring(), catch_exceptions=False)
    assert given.output == said, "a study of no protocol that this program knows"
    assert told("status", "--home", tmp_path / "other") == []
    listed = run("allow", key, "--home", tmp_path / "home")
    assert f"{key} (calls itself “{study['contact']}”; its words: {words(bytes.fromhex(key))})\n" in listed


@pytest.mark.slow
def test_a_teller_leaves_a_study_and_nothing_of_it_is_summed(tmp_path: Path) -> None:
    world = spared(tmp_path)
    study, journal = world.aggregator.study.hex(), world.journals[0]
    home = open_home(tmp_path / "0", os.urandom)
    home.keep_place(Place("teller 0", "127.0.0.1:8760"))
    world.admit(AB, world.packets())
    assert held_tags(journal, world.at(AB))
    held = home.lock()
    with pytest.raises(Refused, match="stop it first"):
        run("refuse", study[:8], "--home", home.path)
    os.close(held)
    for mistyped in (study[:7], "0" * 64, "x"):
        with pytest.raises(Refused, match="expected a key"):
            run("refuse", mistyped, "--home", home.path)
    assert held_tags(journal, world.at(AB))
    journal.close()
    said = run("refuse", study[:8], "--home", home.path)
    assert f"Left {study[:8]} “" in said and "it goes on with its other tellers" in said
    assert f"Start your teller again for others: `anonml teller serve --home {home.path}`" in said
    left = told("status", "--home", home.path)
    assert [(one["study"], one["stage"]) for one in left] == [(study, "over")] * 2
    said = run("status", "--home", home.path)
    assert "keep serving" not in said
    assert f": over since {instant(left[0]['ended'])}" in said
    reopened = Journal(home.journal)
    assert not held_tags(reopened, world.at(AB))
    for pair in (AB, AC):
        with pytest.raises(Refused, match="over for this teller"):
            Teller(home.key, reopened, os.urandom).key_shares(world.quorums[pair].id)


def test_aggregators_are_named_and_listed(tmp_path: Path) -> None:
    run("init", "--name", "Ann", "--loopback", "--home", tmp_path)
    keys = [letter * 64 for letter in "ab"]
    everybody = {"everybody": True, "allowed": []}
    assert told("allow", "--home", tmp_path) == everybody
    assert "Every aggregator" in run("allow", "--home", tmp_path)
    for key in keys:
        said = run("allow", key, "--home", tmp_path)
        assert f"{key} (no study of it is here yet; its words: {words(bytes.fromhex(key))})" in said
        assert said.endswith(f"leave `anonml teller serve --home {tmp_path}` running.\n")
    assert told("allow", "--home", tmp_path) == {"everybody": False, "allowed": keys}
    for wrong in (["ab"], ["xy"], [keys[0], "--everybody"]):
        with pytest.raises((Refused, InvalidValue, Malformed)):
            run("allow", *wrong, "--home", tmp_path)
    assert existing_home(tmp_path, os.urandom).allowed() == {bytes.fromhex(key) for key in keys}
    assert told("allow", "--everybody", "--home", tmp_path) == everybody


def test_a_key_is_taken_back_and_with_the_last_one_nobody_may_ask(tmp_path: Path) -> None:
    """An empty list is not that of a teller who never named anybody."""
    run("init", "--name", "Ann", "--loopback", "--home", tmp_path)
    staff, other = SigningKey.generate(), SigningKey.generate()
    keys = {key: bytes(key.verify_key).hex() for key in (staff, other)}
    run("allow", *keys.values(), "--home", tmp_path)
    assert told("refuse", keys[other].upper(), "--home", tmp_path)["allowed"] == [keys[staff]]
    home = existing_home(tmp_path, os.urandom)
    calls = Calls(home.key, home.place(), Journal(home.journal), os.urandom, home.allowed)
    asked = exchange.ask_entry("Ann", home.place().address).body(staff, b"")
    assert calls.answer("entry", asked)
    said = run("refuse", keys[staff], "--home", tmp_path)
    assert said.startswith(f"Taken back: {keys[staff]} (no study") and "No aggregator may ask" in said
    with pytest.raises(Refused, match="named"):
        calls.answer("entry", asked)
    with pytest.raises(Refused, match="expected a key"):
        run("refuse", keys[staff], "--home", tmp_path)


@pytest.mark.parametrize("damage", [b"", b"{}x", b'["ab"]', b"[1]", b'["zz"]'])
def test_a_damaged_list_of_aggregators_lets_nobody_in(tmp_path: Path, damage: bytes) -> None:
    run("init", "--name", "Ann", "--loopback", "--home", tmp_path)
    (tmp_path / ALLOWED).write_bytes(damage)
    with pytest.raises(Damaged, match="allowed"):
        run("allow", "--home", tmp_path)
