"""A teller's answers to calls: to the study's aggregator alone, once, and nothing to garbage; the service around
them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve

from anon.crypto.nacl import SigningKey
from anon.errors import Conflict, Damaged, Malformed, Refused, RejectedProof, Unreachable
from anon.sharing import exchange
from anon.sharing.arrangement import parse_entry
from anon.sharing.exchange import CALLS, TellerCall
from anon.teller import service
from anon.teller.calls import Calls
from anon.teller.home import DATABASE, Place, TellerHome, open_home
from anon.teller.journal import MOST_OFFERS, MOST_STUDIES, Journal
from anon.teller.news import Event, News
from anon.wire.cbor import encode
from tests.support.clock import Clock
from tests.support.patience import PATIENCE, until
from tests.support.served_tellers import join_up, sum_study
from tests.support.tellers import PLACES, World, expected
from tests.support.tries import every

HERE = "127.0.0.1:8760"


def at(number: int) -> str:
    """The address of each teller: two at one are one teller."""
    return f"127.0.0.1:{8760 + number}"


@define
class AskedTeller:
    """The methods of `Teller` by way of the bytes of `Calls`."""

    calls: Calls
    aggregator: SigningKey | None = None

    @property
    def key(self) -> bytes:
        return bytes(self.calls.key.verify_key)

    def ask(self, asked: TellerCall[Any], signer: SigningKey | None = None) -> Any:
        return asked.answered(
            200, self.calls.answer(asked.name, asked.body(signer or self.aggregator or SigningKey.generate(), self.key))
        )

    def __getattr__(self, name: str) -> Any:
        asks = {
            "key_shares": exchange.ask_key_shares, "take_key_share": exchange.ask_key_share,
            "settle": exchange.ask_settle, "accepted": exchange.ask_accepted,
            "sign_list": exchange.ask_list, "add_noise": exchange.ask_noise, "finish": exchange.ask_finish,
        }
        return lambda *given: self.ask(asks[name](*given))

    def countersign(self, _study: bytes, _arrangement: bytes, manifest: bytes) -> Any:
        return self.ask(exchange.ask_countersign(manifest))

    def take_roll(self, study: bytes, _manifest: bytes, heads: bytes, bodies: Any) -> Any:
        return self.ask(exchange.ask_roll(study, heads, bodies.roster, bodies.seed, bodies.credentials, bodies.beside))

    def admit(self, occasion: Any, items: Any) -> Any:
        statement, refused = self.ask(exchange.ask_admit(occasion, items))
        return type("Said", (), {"statement": statement, "refused": refused})


def asked_teller(folder: Path, number: int = 0, heard: Callable[[News], None] = lambda news: None) -> AskedTeller:
    home = open_home(folder / str(number), os.urandom)
    place, journal = Place(f"teller {number}", at(number)), Journal(home.journal)
    return AskedTeller(Calls(home.key, place, journal, os.urandom, tell=heard))


def joined(folder: Path, heard: Callable[[News], None] = lambda news: None, named: bool = False) -> World:
    """A study of two tellers that are asked through their calls, ready for packets. `heard`: of the first. `named`: it
    had named the aggregator."""
    tellers: Any = [asked_teller(folder, 0, heard), asked_teller(folder, 1)]
    world = sum_study(
        [teller.ask(exchange.ask_entry(f"teller {number}", at(number))) for number, teller in enumerate(tellers)]
    )
    for teller in tellers:
        teller.aggregator = world.aggregator.key
    if named:
        key = world.aggregator.manifest.aggregator_key
        tellers[0].calls = evolve(tellers[0].calls, allowed=lambda: [key])
    world.tellers = tellers
    join_up(world)
    return world


def test_a_whole_sum_by_calls(tmp_path: Path) -> None:
    world = joined(tmp_path)
    assert world.summed(world.packets()).values == expected(PLACES[:4])


def test_packets_in_batches_are_summed_as_at_once(tmp_path: Path) -> None:
    """Each batch is settled by the statements about it, and a batch that comes again says the same."""
    world = joined(tmp_path)
    packets = world.packets()
    for part in (packets[:1], packets[1:3], packets[3:], packets[:1]):
        assert world.settle(world.admit(part)) == {packet.tag for packet in part}
    accepted = world.tellers[0].accepted(world.occasion())
    assert accepted == {packet.tag for packet in packets}
    signatures = world.signatures(body := world.list_of(accepted))
    assert len(set(world.noisy(signatures))) == 2 and body


def test_the_keeper_hears_once_of_a_study_that_comes_is_added_up_and_is_over(tmp_path: Path) -> None:
    heard: list[News] = []
    world = joined(tmp_path, heard.append, named=True)
    teller: Any = world.tellers[0]
    manifest = world.aggregator.manifest.to_bytes()
    teller.countersign(world.study, b"", manifest)
    assert [news.event for news in heard] == [Event.COUNTERSIGNED]
    packets = world.packets()
    world.admit(packets[:2])
    teller.calls = evolve(teller.calls, journal=Journal(tmp_path / "0" / DATABASE))  # as a program that begins anew
    world.summed(packets)
    teller.finish(world.study)
    teller.finish(world.study)
    assert [(news.event, news.round, news.others) for news in heard[1:]] == [
        (Event.ADDING_UP, 0, 0), (Event.OVER, None, 0)
    ]  # fmt: skip
    assert {news.manifest.to_bytes() for news in heard} == {manifest}


@pytest.mark.parametrize("before", [True, False])
def test_the_keeper_hears_of_packets_that_come_before_their_window_has_closed(tmp_path: Path, before: bool) -> None:
    heard: list[News] = []
    world = joined(tmp_path, heard.append, named=True)
    teller: Any = world.tellers[0]
    closes = world.aggregator.manifest.windows[-1].closes
    now = closes - world.aggregator.manifest.timetable.margin - before
    teller.calls = evolve(teller.calls, now=lambda: float(now))
    world.admit(world.packets()[:2])
    assert [(news.event, news.early) for news in heard[1:]] == [(Event.ADDING_UP, before)]


def test_a_study_that_ends_counts_those_that_still_run(tmp_path: Path) -> None:
    heard: list[News] = []
    world = joined(tmp_path, heard.append, named=True)
    teller: Any = world.tellers[0]
    entries = [one.ask(exchange.ask_entry(f"teller {number}", at(number))) for number, one in enumerate(world.tellers)]
    another = sum_study(entries)
    teller.calls, key = evolve(teller.calls, allowed=lambda: None), teller.aggregator
    teller.aggregator = another.aggregator.key
    teller.countersign(another.study, b"", another.aggregator.manifest.to_bytes())
    teller.calls = evolve(teller.calls, allowed=lambda: [])
    teller.finish(another.study)
    teller.aggregator = key
    teller.finish(world.study)
    assert [news.others for news in heard if news.event is Event.OVER] == [1, 0]


def test_a_stranger_writes_no_line(tmp_path: Path) -> None:
    """While no aggregator is named, anybody may bring a study, end it, and bring the next one."""
    heard: list[News] = []
    world = joined(tmp_path, heard.append)
    world.summed(world.packets())
    world.tellers[0].finish(world.study)
    assert heard == []


@pytest.mark.parametrize("name", every(3, [name for name in CALLS if name != "entry"]))
def test_a_stranger_is_told_nothing_about_a_study(tmp_path: Path, name: str) -> None:
    """Another key, no signature, another teller's request, and a study that this teller does not have."""
    world = joined(tmp_path)
    teller: Any = world.tellers[0]
    study, occasion = world.study, world.occasion()
    ask = {
        "countersign": exchange.ask_countersign(world.aggregator.manifest.to_bytes()),
        "key-shares": exchange.ask_key_shares(study), "key-share": exchange.ask_key_share(study, 1, b"x"),
        "roll": exchange.ask_roll(study, b"", b"", b"", b"", ()), "admit": exchange.ask_admit(occasion, []),
        "settle": exchange.ask_settle(occasion, []), "accepted": exchange.ask_accepted(occasion),
        "list": exchange.ask_list(occasion, b""),
        "noise": exchange.ask_noise(occasion, []), "finish": exchange.ask_finish(study),
    }[name]
    assert world.aggregator.key is teller.aggregator
    with pytest.raises(RejectedProof):
        teller.ask(ask, SigningKey.generate())
    with pytest.raises(RejectedProof):
        teller.calls.answer(
            name, bytes(world.aggregator.key.verify_key) + ask.body(SigningKey.generate(), teller.key)[32:]
        )
    with pytest.raises(RejectedProof):
        teller.calls.answer(name, ask.body(world.aggregator.key, world.tellers[1].key))  # type: ignore[attr-defined]
    with pytest.raises(Malformed):
        teller.calls.answer(name, ask.request[:100])
    if name != "countersign":
        with pytest.raises(Refused, match="did not countersign"):
            asked_teller(tmp_path, 7).ask(ask, world.aggregator.key)
    assert world.summed(world.packets()).values == expected(PLACES[:4])


def test_late_again_and_a_second_list(tmp_path: Path) -> None:
    world = joined(tmp_path)
    packets, occasion = world.packets(), world.occasion()
    teller: Any = world.tellers[0]
    statements = world.admit(packets)
    accepted = world.settle(statements)
    again = world.members[0].packet(world.arrangement, occasion, [1, 1])
    assert teller.admit(occasion, [again.relayed(0).to_bytes()]).refused == {"tag-spent": 1}
    signatures = world.signatures(body := world.list_of(accepted))
    with pytest.raises(Conflict, match="second list"):
        teller.sign_list(occasion, world.list_of(accepted - {packets[0].tag}))
    with pytest.raises(Conflict):
        teller.admit(occasion, [again.relayed(0).to_bytes()])
    assert teller.sign_list(occasion, body) == signatures[0]
    with pytest.raises(Refused, match="missing"):
        teller.add_noise(occasion, [])
    first = teller.add_noise(occasion, [signatures[1]])
    assert teller.add_noise(occasion, [signatures[1]]) == first


def test_another_name_or_address_gets_no_offer(tmp_path: Path) -> None:
    teller = asked_teller(tmp_path)
    for name, address in (("Mallory", HERE), ("teller 0", "127.0.0.1:1")):
        with pytest.raises(Refused, match="teller 0"):
            teller.ask(exchange.ask_entry(name, address))


@pytest.mark.slow
def test_offers_that_nobody_uses_are_dropped_and_used_ones_stay(tmp_path: Path) -> None:
    teller = asked_teller(tmp_path)
    journal = teller.calls.journal
    asked = exchange.ask_entry("teller 0", HERE)
    first = teller.ask(asked)
    world = sum_study([first, asked_teller(tmp_path, 1).ask(exchange.ask_entry("teller 1", at(1)))])
    teller.ask(exchange.ask_countersign(world.aggregator.manifest.to_bytes()), world.aggregator.key)
    second = teller.ask(asked)
    later = [teller.ask(asked) for _ in range(MOST_OFFERS)]
    assert journal.offer(first.to_bytes()) is not None and journal.offer(second.to_bytes()) is None
    assert all(journal.offer(one.to_bytes()) is not None for one in later)


def test_no_more_studies_than_it_may_serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is over makes room for the next. A repeated countersignature is no further study."""
    monkeypatch.setattr("anon.teller.calls.MOST_STUDIES", 1)
    assert MOST_STUDIES > 1
    teller, other = asked_teller(tmp_path), asked_teller(tmp_path, 1)

    def study() -> World:
        return sum_study(
            [one.ask(exchange.ask_entry(f"teller {number}", at(number))) for number, one in enumerate((teller, other))]
        )

    def countersign(world: World) -> None:
        teller.ask(exchange.ask_countersign(world.aggregator.manifest.to_bytes()), world.aggregator.key)

    first, second = study(), study()
    countersign(first)
    countersign(first)
    with pytest.raises(Refused, match="takes no more"):
        countersign(second)
    teller.ask(exchange.ask_finish(first.study), first.aggregator.key)
    countersign(second)


def test_named_aggregators_alone_get_offers_and_countersignatures(tmp_path: Path) -> None:
    """A stranger cannot use up what the others need, with whatever signature; a study that runs goes on."""
    world = joined(tmp_path)
    teller: Any = world.tellers[0]
    home, mallory, staff = open_home(tmp_path / "0", os.urandom), SigningKey.generate(), SigningKey.generate()
    home.allow([bytes(staff.verify_key)])
    calls = Calls(home.key, teller.calls.place, teller.calls.journal, os.urandom, home.allowed)
    offer = exchange.ask_entry("teller 0", HERE)
    mallorys = offer.body(mallory, b"")
    with pytest.raises(Refused, match="named"):
        calls.answer("entry", mallorys)
    with pytest.raises(RejectedProof):
        calls.answer("entry", bytes(staff.verify_key) + mallorys[32:])
    mine = exchange.parse_entry(calls.answer("entry", offer.body(staff, b"")))
    other = asked_teller(tmp_path, 1).ask(exchange.ask_entry("teller 1", at(1)))
    strangers = sum_study([mine, other])
    asked = exchange.ask_countersign(strangers.aggregator.manifest.to_bytes())
    for signer in (strangers.aggregator.key, staff):
        with pytest.raises((Refused, RejectedProof)):
            calls.answer("countersign", asked.body(signer, teller.key))
    assert world.summed(world.packets()).values == expected(PLACES[:4])


def test_what_a_stranger_wrote_is_not_read_where_aggregators_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home(tmp_path, os.urandom)
    home.allow([bytes(SigningKey.generate().verify_key)])
    calls = Calls(home.key, Place("teller 0", HERE), Journal(home.journal), os.urandom, home.allowed)
    monkeypatch.setattr("anon.teller.calls.parse_manifest", lambda *_: pytest.fail("it was read"))
    with pytest.raises(Refused, match="named"):
        calls.answer(
            "countersign",
            exchange.ask_countersign(b"x" * 2**20).body(SigningKey.generate(), bytes(home.key.verify_key)),
        )


def test_strangers_studies_of_before_keep_no_named_aggregator_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anon.teller.calls.MOST_STUDIES", 1)
    teller, other = asked_teller(tmp_path), asked_teller(tmp_path, 1)
    home = open_home(tmp_path / "0", os.urandom)
    calls = Calls(home.key, teller.calls.place, teller.calls.journal, os.urandom, home.allowed)
    studies = [
        sum_study(
            [one.ask(exchange.ask_entry(f"teller {number}", at(number))) for number, one in enumerate((teller, other))]
        )
        for _ in range(2)
    ]
    first, second = ((world, exchange.ask_countersign(world.aggregator.manifest.to_bytes())) for world in studies)
    calls.answer("countersign", first[1].body(first[0].aggregator.key, teller.key))
    with pytest.raises(Refused, match="takes no more"):
        calls.answer("countersign", second[1].body(second[0].aggregator.key, teller.key))
    home.allow([bytes(second[0].aggregator.key.verify_key)])
    assert calls.answer("countersign", second[1].body(second[0].aggregator.key, teller.key))


# The service


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[service.Service, int]]:
    home = open_home(folder, os.urandom)
    home.keep_place(Place("teller 0", HERE))
    async with service.opened(home, os.urandom) as made:
        runner, port = await service.quiet_http.listen(made.answer, "127.0.0.1", 0, find=made.call)
        yield made, port
        await runner.cleanup()


async def post(port: int, path: str, body: bytes | None, method: str = "POST") -> tuple[int, bytes, set[str]]:
    """As aggregators ask, whose head is the one that a teller reads."""
    length = f"Content-Length: {len(body)}\r\n" if body is not None else ""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{length}Connection: close\r\n\r\n".encode() + (body or b""))
    head, _, said = (await asyncio.wait_for(reader.read(), PATIENCE)).partition(b"\r\n\r\n")
    writer.close()
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), said, {line.partition(":")[0] for line in lines[1:]}


ENTRY = exchange.ask_entry("teller 0", HERE).body(SigningKey.generate(), b"")


async def test_words_and_entries_are_for_everybody(tmp_path: Path) -> None:
    async with serving(tmp_path) as (made, port):
        status, body, headers = await post(port, exchange.WORDS_PATH, None, "GET")
        assert status == 200 and exchange.read_words(body) == ("teller 0", made.words)
        assert headers <= {"Content-Length", "Connection"}
        status, body, _ = await post(port, "/v1/entry", ENTRY)
        assert status == 200 and parse_entry(body).address == HERE


@pytest.mark.parametrize(("path", "method"), [
    ("/v1/entry", "GET"), ("/v1/words", "POST"), ("/v1/words?x", "GET"), ("/", "GET"), ("/v1/none", "POST"),
    ("/v1/entry/", "POST"),
    ("/v1/entry", "PUT"), (f"/v1/{'0' * 64}/heads", "GET"),
])
async def test_anything_else_is_not_there(tmp_path: Path, path: str, method: str) -> None:
    async with serving(tmp_path) as (_, port):
        assert (await post(port, path, None if method == "GET" else ENTRY, method))[:2] == (404, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"x" * 100, encode([]), encode(["teller 0"]), encode({}), bytes(range(200))]
)
@pytest.mark.parametrize("name", CALLS)
async def test_garbage_is_told_so(tmp_path: Path, name: str, body: bytes) -> None:
    """One that is long enough to name a signer is a stranger's."""
    open_to_anybody = name in ("entry", "countersign")
    async with serving(tmp_path) as (_, port):
        status, said, _ = await post(port, f"/v1/{name}", body)
        expected_code = (
            (400, "malformed") if len(body) < 200 else (401, "rejected-proof") if open_to_anybody else (403, "refused")
        )
        assert (status, json.loads(said)["error"]) == expected_code


async def test_strangers_are_refused_before_a_request_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And get the answer at once, while their request has not come."""
    named = SigningKey.generate()
    async with serving(tmp_path) as (made, port):
        open_home(tmp_path, os.urandom).allow([bytes(named.verify_key)])
        monkeypatch.setattr(Calls, "answer", lambda *_: pytest.fail("it was read"))
        for name, largest in (("countersign", 2**22), ("roll", 2**25)):
            asked = TellerCall(name, bytes(largest - exchange.OPENING_BYTES), bytes)
            body = asked.body(SigningKey.generate(), bytes(made.calls.key.verify_key))
            length = f"Content-Length: {len(body)}\r\n"
            head = f"POST {asked.path} HTTP/1.1\r\nHost: x\r\n{length}Connection: close\r\n\r\n".encode()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head + body[: exchange.OPENING_BYTES])
            assert (await asyncio.wait_for(reader.readuntil(b"\r\n"), PATIENCE)).startswith(b"HTTP/1.1 403")
            writer.write(body[exchange.OPENING_BYTES :])
            writer.close()


async def test_a_named_aggregator_is_known_before_its_request_came(tmp_path: Path) -> None:
    named = SigningKey.generate()
    async with serving(tmp_path) as (made, port):
        open_home(tmp_path, os.urandom).allow([bytes(named.verify_key)])
        body = exchange.ask_entry("teller 0", HERE).body(named, b"")
        for signer, key in ((named, bytes(named.verify_key)), (SigningKey.generate(), None)):
            opening = exchange.read_opening("entry", exchange.ask_entry("teller 0", HERE).body(signer, b""), len(body))
            if key is None:
                with pytest.raises(Refused, match="named"):
                    made.calls.caller(opening)
            else:
                assert made.calls.caller(opening) == key
        assert (await post(port, "/v1/entry", body))[0] == 200


async def test_a_studys_aggregator_is_known_again_after_a_restart(tmp_path: Path) -> None:
    world = joined(tmp_path)
    calls: Calls = world.tellers[0].calls  # type: ignore[attr-defined]
    again = Calls(calls.key, calls.place, calls.journal, os.urandom)
    asked, own = exchange.ask_finish(world.study), bytes(calls.key.verify_key)
    for signer in (world.aggregator.key, SigningKey.generate()):
        body = asked.body(signer, own)
        opening = exchange.read_opening("finish", body, len(body))
        if signer is world.aggregator.key:
            assert again.caller(opening) == calls.caller(opening) == bytes(signer.verify_key)
        else:
            with pytest.raises(Refused, match="did not countersign"):
                again.caller(opening)


async def test_a_request_that_its_opening_did_not_announce_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, port):
        for body in (ENTRY[:-1] + b"x", ENTRY + b"x", ENTRY[:-1]):
            status, said, _ = await post(port, "/v1/entry", body)
            assert (status, json.loads(said)["error"]) == (401, "rejected-proof")


async def test_a_body_that_is_too_long_or_of_unknown_length_is_not_read(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, port):
        for body in (bytes(CALLS["finish"].most_body + 1), None):
            status, said, _ = await post(port, "/v1/finish", body)
            assert status == 400 and b"stated length" in said


async def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log says so once, until a call was answered again."""
    async with serving(tmp_path) as (made, port):
        connection = made.calls.journal._connection
        pages = await service.in_thread(made.worker, lambda: connection.execute("PRAGMA page_count").fetchone()[0])

        async def most(count: int) -> None:
            await service.in_thread(
                made.worker, lambda: connection.execute(f"PRAGMA max_page_count = {count}").fetchone()
            )

        await most(pages)
        answers = [await post(port, "/v1/entry", ENTRY) for _ in range(40)]
        full = [body for status, body, _ in answers if status == 507]
        assert len(full) > 1 and not any(str(tmp_path).encode() in body for body in full)
        assert caplog.text.count("cannot be written") == 1
        await most(1_000_000)
        assert (await post(port, "/v1/entry", ENTRY))[0] == 200


async def test_a_damaged_journal_ends_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = asyncio.Event()
    home = open_home(tmp_path, os.urandom)
    with pytest.MonkeyPatch.context() as patched:
        from tests.support.served_tellers import free_port

        home.keep_place(Place("teller 0", f"127.0.0.1:{(port := free_port())}"))
        patched.setattr(Journal, "keep_offer", _broken)
        running = asyncio.ensure_future(service.serve(home, os.urandom, lambda _address: ready.set()))
        await ready.wait()
        status, body, _ = await post(
            port, "/v1/entry", exchange.ask_entry("teller 0", f"127.0.0.1:{port}").body(SigningKey.generate(), b"")
        )
        assert status == 500 and b"damaged" in body and str(tmp_path).encode() not in body
        with pytest.raises(Damaged, match="journal"):
            await asyncio.wait_for(running, 20)
    held_again(home)


def _broken(*_given: object) -> None:
    raise Damaged("the journal")


def held_again(home: TellerHome) -> None:
    """The lock is free."""
    os.close(home.lock())


async def test_a_fault_of_the_program_says_its_kind_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_given: object) -> None:
        raise ValueError("secret")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Journal, "keep_offer", fail)
        async with serving(tmp_path) as (_, port):
            status, body, _ = await post(port, "/v1/entry", ENTRY)
    assert status == 500 and b"secret" not in body
    assert "a call failed: ValueError" in caplog.text and "secret" not in caplog.text


async def test_nothing_is_logged_about_calls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with serving(tmp_path) as (_, port):
            await post(port, "/v1/entry", ENTRY)
            await post(port, "/v1/admit", b"x")
    assert [record.getMessage() for record in caplog.records if record.name.startswith(("anon", "aiohttp"))] == []


@pytest.mark.parametrize(("took", "steps"), [(0.1, 1), (0.9, 1), (1.1, 2)])
async def test_noise_leaves_at_whole_steps_and_holds_up_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took: float, steps: int
) -> None:
    clock, order, asked, answer = Clock(0.0), list[str](), list[asyncio.Task[Any]](), Calls.answer

    def slowly(calls: Calls, name: str, body: bytes) -> bytes:
        order.append(name)
        clock.seconds += took * service.NOISE_STEP
        return answer(calls, name, body)

    async def sleep(seconds: float) -> None:
        asked.append(asyncio.create_task(post(port, "/v1/entry", ENTRY)))
        await until(lambda: made._turn._waiters)
        order.append(f"until {clock() + seconds}")

    monkeypatch.setattr(Calls, "answer", slowly)
    async with serving(tmp_path) as (made, port):
        made.elapsed, made.sleep = clock, sleep
        aggregator = SigningKey.generate()
        made.calls._aggregators.add(bytes(aggregator.verify_key))
        noise = TellerCall("noise", b"x", bytes).body(aggregator, bytes(made.calls.key.verify_key))
        assert (await post(port, "/v1/noise", noise))[0] == 400
        assert (await asked[0])[0] == 200
    assert order == ["noise", f"until {steps * service.NOISE_STEP}", "entry"]


async def test_a_call_is_finished_before_the_journal_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one that waits for its turn is sent away."""
    done: list[str] = []
    keep, close = Journal.keep_offer, Journal.close
    begun, slow = threading.Event(), threading.Event()

    def slowly(*given: Any) -> None:
        begun.set()
        slow.wait(PATIENCE)
        keep(*given)
        done.append("kept")

    def closed(journal: Journal) -> None:
        close(journal)
        done.append("closed")

    monkeypatch.setattr(Journal, "keep_offer", slowly)
    monkeypatch.setattr(Journal, "close", closed)
    async with service.opened(_made(tmp_path), os.urandom) as made:
        making = asyncio.ensure_future(made._in_turn("entry", ENTRY))
        await until(begun.is_set)
        making.cancel()
        asyncio.get_running_loop().call_later(0.1, slow.set)  # the service is told to stop meanwhile
    late = await asyncio.gather(made._in_turn("entry", ENTRY), return_exceptions=True)
    assert done == ["kept", "closed"] and isinstance(late[0], Unreachable)


def _made(folder: Path) -> TellerHome:
    home = open_home(folder, os.urandom)
    home.keep_place(Place("teller 0", HERE))
    return home
