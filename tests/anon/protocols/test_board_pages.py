"""Pages of the board as values: read once by their exact bytes, and named by the digests of their packets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from anon.credential import token_size
from anon.crypto import labels
from anon.errors import Malformed
from anon.protocols import board
from anon.protocols.board import page_body, read_page
from anon.protocols.sortition import occasion_of
from anon.wire.cbor import sha256
from anon.wire.letters import written_report
from anon.wire.packets import PublishedPacket
from tests.support.letters import KEYS
from tests.support.letters_study import resolved

STUDY, SIZE = resolved(), resolved().survey(KEYS).size


@pytest.fixture(autouse=True)
def nothing_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Other tests' pages are not here, and these are not theirs."""
    monkeypatch.setattr(board, "_READ", {})
    yield


def packet(tag: int, text: bytes = bytes(SIZE)) -> bytes:
    token = bytes([tag]) * 48 + bytes(token_size(STUDY.packets) - 48)
    return PublishedPacket(occasion_of(STUDY, KEYS), KEYS, written_report(text, []), (), token).to_bytes()


def test_a_page_is_read_once_and_never_taken_for_another() -> None:
    body = page_body(STUDY.study_id, 0, [packet(1), packet(2)])
    page = read_page(STUDY, 0, body)
    assert read_page(STUDY, 0, bytes(bytearray(body))) is page
    other = read_page(STUDY, 0, page_body(STUDY.study_id, 0, [packet(1), packet(2, b"\x01" * SIZE)]))
    assert other is not page and other.texts(KEYS) != page.texts(KEYS) and other.digest != page.digest
    for study, number in ((STUDY, 1), (resolved(maximum=9), 0)):
        with pytest.raises(Malformed):
            read_page(study, number, body)


def test_a_page_is_named_by_its_packets() -> None:
    packets = [packet(1), packet(2)]
    page = read_page(STUDY, 0, page_body(STUDY.study_id, 0, packets))
    digests = [sha256(labels.PACKET_DIGEST, one) for one in packets]
    assert [entry.digest for entry in page.entries[KEYS].values()] == digests
    assert page.digest == hashlib.sha256(b"".join(digests)).digest()
    assert read_page(STUDY, 0, page_body(STUDY.study_id, 0, packets[:1])).digest != page.digest


def test_pages_are_kept_up_to_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [page_body(STUDY.study_id, 0, [packet(tag)]) for tag in (1, 2, 3)]
    monkeypatch.setattr(board, "_MOST_READ", 2 * len(bodies[0]))
    first, second, third = (read_page(STUDY, 0, body) for body in bodies)
    assert read_page(STUDY, 0, bodies[1]) is second and read_page(STUDY, 0, bodies[2]) is third
    assert read_page(STUDY, 0, bodies[0]) is not first
    monkeypatch.setattr(board, "_MOST_READ", 1)
    assert read_page(STUDY, 0, bodies[1]) is not second and not board._READ
