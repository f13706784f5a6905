"""The parser of control replies: known texts, and random ones cut at random places. It parses, or says Malformed; it
never grows."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anon.errors import Malformed
from anon.route.tor.replies import (
    LINE_BYTES,
    REPLY_BYTES,
    ReplyLine,
    ReplyParser,
    TorReply,
    arguments,
    event_of,
    unquoted,
)
from tests.support.patience import cheap
from tests.support.tries import examples

TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=40)
DATA = st.lists(TEXT.filter(lambda text: "\x85" not in text), max_size=4).map("\n".join)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted(cut % (len(data) + 1) for cut in cuts)
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


def parsed(chunks: list[bytes]) -> tuple[list[TorReply], bool]:
    """Replies before the first fault, and whether there was one."""
    parser = ReplyParser()
    found: list[TorReply] = []
    for chunk in chunks:
        try:
            found += parser.feed(chunk)
        except Malformed:
            return found, True
    return found, False


def spelled(reply: TorReply) -> bytes:
    out = []
    for number, line in enumerate(reply.lines):
        kind = " " if number == len(reply.lines) - 1 else "-" if line.data is None else "+"
        out.append(f"{line.status:03}{kind}{line.text}")
        if line.data is not None:
            out += ["." + part if part.startswith(".") else part for part in line.data.split("\n")] + ["."]
    return "".join(line + "\r\n" for line in out).encode("latin-1")


@st.composite
def replies(draw: st.DrawFn) -> TorReply:
    lines = draw(st.lists(st.builds(ReplyLine, st.integers(0, 999), TEXT, st.none() | DATA), max_size=4))
    return TorReply((*lines, draw(st.builds(ReplyLine, st.integers(0, 999), TEXT))))


def test_a_real_getinfo_with_data_and_quotes() -> None:
    (reply,) = ReplyParser().feed(
        b'250-version=0.4.9.11\r\n250-net/listeners/socks="127.0.0.1:9050"\r\n250+circuit-status=\r\n1 BUILT $A~b\r\n'
        b'..dot\r\n.\r\n250 OK\r\n'
    )
    assert reply.status == 250
    assert reply.values() == {
        "version": "0.4.9.11",
        "net/listeners/socks": "127.0.0.1:9050",
        "circuit-status": "1 BUILT $A~b\n.dot",
    }


def test_a_key_is_not_shown() -> None:
    (reply,) = ReplyParser().feed(b"250-ServiceID=a\r\n250-PrivateKey=ED25519-V3:secret\r\n250 OK\r\n")
    assert "secret" not in repr(reply)


def test_events_and_their_arguments() -> None:
    first, second = ReplyParser().feed(
        b'650 STATUS_CLIENT WARN BOOTSTRAP PROGRESS=14 TAG=conn WARNING="No route \\"to\\" host\\n" REASON=NOROUTE\r\n'
        b"650-CONF_CHANGED\r\n650-SocksPort=9050\r\n650 OK\r\n"
    )
    event = event_of(first)
    assert event.name == "STATUS_CLIENT"
    assert event.arguments() == (
        ["WARN", "BOOTSTRAP"],
        {"PROGRESS": "14", "TAG": "conn", "WARNING": 'No route "to" host\n', "REASON": "NOROUTE"},
    )
    assert event_of(second).name == "CONF_CHANGED"
    assert event_of(second).text == "SocksPort=9050\nOK"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(r"a\tb", "a\tb"), (r"\101\60", "A0"), (r"\\\"", '\\"'), (r"\q", "q"), (r"\777", "\xff"), ("plain", "plain")],
)
def test_escapes(text: str, expected: str) -> None:
    assert unquoted(text) == expected


@pytest.mark.parametrize("text", ['KEY="open', '"', 'a"b', 'KEY="a\\"', 'KEY=a"b"'])
def test_open_and_stray_quotes_are_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        arguments(text)


@pytest.mark.parametrize(
    "line", [b"\r\n", b"25\r\n", b"250\r\n", b"250=x\r\n", b"abc x\r\n", b"\xb2\xb3\xb9 x\r\n", b"HTTP/1.1 200 OK\r\n"]
)
def test_what_is_no_reply_is_malformed(line: bytes) -> None:
    with pytest.raises(Malformed):
        ReplyParser().feed(line)


@given(st.lists(replies(), max_size=4), st.lists(st.integers(0, 10_000), max_size=8), st.integers(0, 10_000))
@pytest.mark.slow
def test_whole_replies_survive_every_cut_and_truncation_yields_none(
    sent: list[TorReply], cuts: list[int], end: int
) -> None:
    data = b"".join(map(spelled, sent))
    assert parsed(pieces(data, cuts)) == (sent, False)
    short = data[: end % (len(data) + 1)]
    found, fault = parsed(pieces(short, cuts))
    assert not fault
    assert found == sent[: len(found)]
    assert len(found) == sum(
        len(b"".join(map(spelled, sent[: number + 1]))) <= len(short) for number in range(len(sent))
    )


LOOKS_LIKE = st.lists(
    st.sampled_from([b"250", b"650", b"-", b"+", b" ", b"\r\n", b"\n", b".", b'"', b"\\", b"=", b"K", b"\x00"]),
    max_size=60,
).map(b"".join)


@settings(max_examples=examples(300))
@given(st.binary(max_size=400) | LOOKS_LIKE, st.lists(st.integers(0, 400), max_size=8))
@example(b"250+a=\r\n.\r\n.\r\n", [9])
def test_random_bytes_mean_the_same_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    whole, whole_fault = parsed([bytes([byte]) for byte in data])
    cut, cut_fault = parsed(pieces(data, cuts))
    assert whole_fault == cut_fault
    assert whole[: len(cut)] == cut  # replies completed in the very chunk that turns bad are dropped with it
    for reply in whole:
        reply.values()
        event_of(reply)


@settings(max_examples=examples(300))
@given(st.text(max_size=200) | LOOKS_LIKE.map(lambda data: data.decode("latin-1")))
@pytest.mark.slow
def test_random_arguments_parse_or_are_malformed(text: str) -> None:
    try:
        words, pairs = arguments(text)
    except Malformed:
        return
    assert sum(map(len, words)) + sum(map(len, pairs)) <= len(text)


def test_an_endless_line_ends_in_a_bounded_error() -> None:
    parser = ReplyParser()
    for _ in range(LINE_BYTES // 65_536):
        assert parser.feed(b"x" * 65_536) == []
    with pytest.raises(Malformed, match=str(LINE_BYTES)):
        parser.feed(b"x" * 65_536)


@pytest.mark.parametrize("opening", [b"", b"250+data=\r\n"])
def test_an_endless_reply_ends_in_a_bounded_error(opening: bytes) -> None:
    parser = ReplyParser()
    parser.feed(opening)
    line = (b"250-" + b"x" * 1018 + b"\r\n") * 64
    fed = 0
    with pytest.raises(Malformed, match=str(REPLY_BYTES)):
        while fed < 2 * REPLY_BYTES:
            parser.feed(line)
            fed += len(line)
    assert fed <= REPLY_BYTES


@pytest.mark.parametrize(
    "text", ['K="' + "\\" * 200_001, "a=" * 100_000, "\\" * 200_000, 'K="' + 'a\\"' * 60_000, "x" * 250_000 + '"']
)
def test_giant_arguments_take_linear_time(text: str) -> None:
    with cheap(), contextlib.suppress(Malformed):
        arguments(text)
