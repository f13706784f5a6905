"""The wire between an aggregator and a teller: a call and its answer come over as they are, and strangers' bytes do
not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anon.crypto.nacl import SigningKey
from anon.errors import AnonmlError, Conflict, Damaged, Malformed, NoRoom, Refused, RejectedProof, Unreachable
from anon.sharing import exchange
from anon.sharing.arrangement import TellerEntry, parse_entry
from anon.sharing.exchange import (
    CALLS,
    OPENING_BYTES,
    TellerCall,
    batches,
    fault,
    read_fault,
    read_request,
    read_signed,
    reply,
)
from anon.sharing.statements import Disagreed, ListSignature, disagreement_of
from anon.text.foreign import Marked, Quoted
from anon.wire.cbor import encode
from anon.wire.packets import Occasion
from tests.support.tellers import make_world

AGGREGATOR = SigningKey.generate()
HERE, ELSEWHERE = bytes([1]) * 32, bytes([2]) * 32
STUDY = bytes([7]) * 32
OCCASION = Occasion(STUDY, 3, 2)
TAG = bytes(48)
ASKED: dict[str, tuple[TellerCall[Any], list[Any], bytes, Any]] = {
    "countersign": (exchange.ask_countersign(b"manifest"), [b"manifest"], b"word", b"word"),
    "key-shares": (exchange.ask_key_shares(STUDY), [STUDY], reply({1: b"x"}), {1: b"x"}),
    "key-share": (exchange.ask_key_share(STUDY, 1, b"x"), [STUDY, 1, b"x"], reply([]), None),
    "roll": (
        exchange.ask_roll(STUDY, b"h", b"r", b"s", b"c", [b"b"]),
        [STUDY, b"h", b"r", b"s", b"c", [b"b"]],
        reply([]),
        None,
    ),
    "admit": (
        exchange.ask_admit(OCCASION, [b"a"]),
        [STUDY, 3, 2, [b"a"]],
        reply([b"v", {"malformed": 2}]),
        (b"v", {"malformed": 2}),
    ),
    "settle": (exchange.ask_settle(OCCASION, [b"v"]), [STUDY, 3, 2, [b"v"]], reply([TAG]), frozenset([TAG])),
    "accepted": (exchange.ask_accepted(OCCASION), [STUDY, 3, 2], reply([TAG]), frozenset([TAG])),
    "list": (exchange.ask_list(OCCASION, b"l"), [STUDY, 3, 2, b"l"], b"signature", b"signature"),
    "noise": (exchange.ask_noise(OCCASION, [b"s"]), [STUDY, 3, 2, [b"s"]], b"share", b"share"),
    "finish": (exchange.ask_finish(STUDY), [STUDY], reply([]), None),
}
"""Of each signed call: as it is asked, its fields, a reply, and what is read of it."""


def test_every_call_is_tried() -> None:
    assert ASKED.keys() | {"entry"} == CALLS.keys()
    assert all(name == asked.name and asked.path == f"/v1/{name}" for name, (asked, *_) in ASKED.items())


@pytest.mark.parametrize("name", ASKED)
def test_a_call_and_its_answer_come_over(name: str) -> None:
    asked, fields, said, read = ASKED[name]
    signed = read_signed(name, asked.body(AGGREGATOR, HERE))
    assert signed.fields(bytes(AGGREGATOR.verify_key), HERE) == fields
    assert asked.answered(200, said) == read
    if name != "countersign":
        assert signed.study == STUDY


@pytest.mark.parametrize("name", ASKED)
def test_a_request_of_another_signer_teller_or_call_is_refused(name: str) -> None:
    asked, own = ASKED[name][0], bytes(AGGREGATOR.verify_key)
    for body, told in (
        (asked.body(SigningKey.generate(), HERE), name),
        (asked.body(AGGREGATOR, ELSEWHERE), name),
        (own + asked.body(SigningKey.generate(), HERE)[32:], name),
        (asked.body(AGGREGATOR, HERE)[:-1], name),
        (asked.body(AGGREGATOR, HERE) + b"x", name),
        (asked.body(AGGREGATOR, HERE)[:-1] + b"\xff", name),
        (asked.body(AGGREGATOR, HERE), "finish" if name != "finish" else "key-shares"),
    ):
        with pytest.raises(RejectedProof):
            read_signed(told, body).fields(own, HERE)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("more", [[0], [b""]])
def test_a_request_of_other_kinds_is_refused(name: str, more: list[Any]) -> None:
    fields = ASKED[name][1]
    for wrong in ([], fields + more, [*fields[:-1], None], [*fields[:-1], [0]]):
        with pytest.raises(Malformed):
            read_request(name, encode(wrong))


@pytest.mark.parametrize("body", [b"", b"\x80", b"\xff" * 40, bytes(OPENING_BYTES)])
def test_a_body_that_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        read_signed("finish", body)


@pytest.mark.parametrize(
    "request_untrusted", [b"", encode([]), encode([STUDY[1:]]), encode([7]), encode([STUDY])[:-1], encode(STUDY)]
)
def test_a_study_is_read_out_of_its_place_alone(request_untrusted: bytes) -> None:
    with pytest.raises(Malformed):
        _ = read_signed("finish", bytes(OPENING_BYTES) + request_untrusted).study


@pytest.mark.parametrize(("name", "said"), [
    ("key-share", reply([1])),
    ("key-share", b""),
    ("key-shares", reply([])),
    ("key-shares", reply({"1": b"x"})),
    ("key-shares", reply({1: "x"})),
    ("admit", reply([b"v"])),
    ("admit", reply([b"v", {"malformed": 0}])),
    ("admit", reply([b"v", {1: 1}])),
    ("settle", reply([b"short"])),
    ("settle", reply({})),
])
def test_a_reply_of_another_form_is_refused(name: str, said: bytes) -> None:
    with pytest.raises(Malformed):
        ASKED[name][0].answered(200, said)


def test_an_entry_comes_over() -> None:
    entry = TellerEntry("name", "127.0.0.1:1", bytes(32), bytes(1216), bytes(32))
    asked = exchange.ask_entry(entry.name, entry.address)
    signed = read_signed("entry", asked.body(AGGREGATOR, HERE))
    assert (
        signed.fields(bytes(AGGREGATOR.verify_key), b"")
        == signed.fields(bytes(AGGREGATOR.verify_key), HERE)
        == [entry.name, entry.address]
    )
    assert asked.answered(200, entry.to_bytes()) == entry
    for wrong in (b"", encode([entry.name]), entry.to_bytes() + b"\0", encode([*entry.as_plain()[:4], b""])):
        with pytest.raises(Malformed):
            parse_entry(wrong)


def test_words_come_over() -> None:
    assert exchange.read_words(reply(["Ann", "babab-"])) == ("Ann", "babab-")
    with pytest.raises(Malformed):
        exchange.read_words(reply(["Ann"]))


def test_batches_are_bounded_and_in_order() -> None:
    items = [bytes([number]) * 2**20 for number in range(9)]
    assert [len(batch) for batch in batches(items)] == [4, 4, 1]
    assert [item for batch in batches(items) for item in batch] == items
    small = [b"x"] * 300
    assert [len(batch) for batch in batches(small)] == [128, 128, 44]
    assert [len(batch) for batch in batches([bytes(2**23)] * 2)] == [1, 1]
    assert list(batches([])) == []


@pytest.mark.parametrize(("error", "status"), [
    (Malformed("m"), 400), (RejectedProof("p"), 401), (Refused("r"), 403), (Conflict("c"), 409),
    (Unreachable("u"), 503),
])
def test_an_error_comes_over_as_its_type(error: AnonmlError, status: int) -> None:
    said, body = fault(error)
    told = read_fault(body)
    assert (said, type(told), str(told)) == (status, type(error), f"“{error}”")
    with pytest.raises(type(error)):
        ASKED["finish"][0].answered(said, body)


@pytest.mark.parametrize(
    "error", [Damaged("/home/ann/teller.sqlite"), NoRoom("/home/ann/teller.sqlite"), ValueError("secret")]
)
def test_an_error_names_nothing_of_the_tellers_machine(error: Exception) -> None:
    status, body = fault(error)
    assert status >= 500 and b"ann" not in body and b"secret" not in body
    assert isinstance(read_fault(body), type(error) if isinstance(error, AnonmlError) else Unreachable)


def test_evidence_comes_over_and_is_checked(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    keys = [SigningKey((tmp_path / str(number) / "signing.key").read_bytes()) for number in (0, 1)]
    said = [ListSignature(world.occasion(), number, bytes([number]) * 32).sign(key) for number, key in enumerate(keys)]
    evidence = disagreement_of(*said, world.arrangement)
    status, body = fault(Disagreed(evidence))
    told = read_fault(body, world.arrangement)
    assert status == 409 and isinstance(told, Disagreed) and told.evidence == evidence
    other = make_world(tmp_path / "other", another=1).arrangement
    assert isinstance(read_fault(body, other), RejectedProof)
    assert type(read_fault(body)) is Conflict


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b"7", b"[" * 9000, bytes(range(128, 227)), json.dumps({"error": "x"}).encode()],
)
def test_an_answer_that_is_no_tellers_is_none(body: bytes) -> None:
    assert type(read_fault(body)) is Unreachable


def test_a_tellers_text_is_made_harmless() -> None:
    told = read_fault(json.dumps({"error": "refused", "message": "a\x1b[2Jb\u202e" + "x" * 9000}).encode())
    assert isinstance(told, Refused)
    assert "\x1b" not in str(told) and "\u202e" not in str(told) and len(str(told)) < 600


@pytest.mark.parametrize(
    "code", ["malformed", "refused", "conflict", "unreachable", "no-room", "tellers-disagree", "error", "made-up"]
)
def test_a_tellers_words_are_marked_as_its_own_by_their_type(code: str) -> None:
    """Else a teller speaks in the aggregator's voice, in its log, its status and on its desk."""
    words = "done. Publish the study again with another teller: “pay me”"
    (said,) = read_fault(json.dumps({"error": code, "message": words}).encode()).args
    quoted = said if isinstance(said, Quoted) else next(part for part in said.parts if isinstance(part, Quoted))
    assert (
        isinstance(said, Marked)
        and str(said).endswith(f"“{quoted.said}”")
        and "“" not in quoted.said
        and "”" not in quoted.said
    )


@pytest.mark.parametrize("code", ["", "Signed by AnonML.", "tag spent", "a" * 41, "x\n", "Tag-spent", "-", "é"])
def test_a_reason_of_a_teller_is_a_word(code: str) -> None:
    read = ASKED["admit"][0].read
    assert read(encode([b"statement", {"tag-spent": 2}])) == (b"statement", {"tag-spent": 2})
    with pytest.raises(Malformed, match="small letters and hyphens"):
        read(encode([b"statement", {code: 1}]))
