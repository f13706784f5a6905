"""A member works its earlier random bytes out again, whatever its protocol reads and wherever a seat speaks.

Studies that cannot work stop in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path

import pytest
from attrs import evolve, frozen

from anon.credential import Credential
from anon.errors import Malformed
from anon.ldp import RandomBytes
from anon.protocols.board import BoardEntry, BoardPage, Mail, demand_members
from anon.protocols.contract import DocumentArrived, Layout, Place, Record, Round
from anon.protocols.outgoing import OpenShares
from anon.protocols.registry import ProtocolParts, _check_written, protocol_of
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import Proposal
from anon.wire.cbor import encode
from anon.wire.letters import TextAndLetters
from peer.protocols.contract import Correspondence
from peer.rules.lifecycle import State
from peer.rules.study_secrets import fresh
from peer.run.packets.inputs import PacketInputs
from tests.support import letters
from tests.support.letters_study import STUDY, resolved
from tests.support.letters_world import learned, own_data
from tests.support.protocols import with_toy
from tests.support.world import in_memory, published

EARLY: Place = ("answer", 0)
"""A seat's document that sorts before the pages."""


@frozen
class Talkative(letters.Shared):
    """The aggregator's seat speaks after the first round too."""

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        first, *rest = super().rounds(study)
        return evolve(first, seat=EARLY), *rest

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        return {**super().documents(study), EARLY: 100}


@frozen(eq=False)
class Remembering(letters.Peer):
    """It draws bytes for every letter, reads the roster for the first two, and notes which pages it is asked about."""

    drawn: dict[tuple[bytes, int], bytes]
    again: dict[tuple[bytes, int], bytes]
    asked: dict[int, set[tuple[int, ...]]]

    def needs(self, manifest: Manifest, survey: int) -> tuple[Place, ...]:
        return (("roster", 0),) if survey in (letters.KEYS, letters.SHARES) else ()

    def random_size(self, manifest: Manifest, survey: Survey) -> int:
        return super().random_size(manifest, survey) or 8

    def reads(self, manifest: Manifest, survey: Survey, tag: bytes, pages: Mapping[int, BoardPage]) -> bool:
        self.asked.setdefault(survey.survey, set()).add(tuple(sorted(pages)))
        return super().reads(manifest, survey, tag, pages)

    def letters(
        self, manifest: Manifest, survey: Survey, record: Record | None, known: Correspondence,
        documents: Sequence[DocumentArrived], random_bytes: RandomBytes,
    ) -> OpenShares:  # fmt: skip
        size = self.random_size(manifest, survey)
        self.drawn[known.tag, survey.survey] = drawn = random_bytes(size)
        return super().letters(manifest, survey, record, known, documents, BytesIO(drawn).read)

    def received(
        self, manifest: Manifest, known: Correspondence, documents: Sequence[DocumentArrived]
    ) -> Mapping[Place, bytes]:
        self.again.update({(known.tag, survey): drawn for survey, drawn in known.own.items()})
        return super().received(manifest, known, documents)


@frozen
class Answering(letters.Aggregator):
    def answered(
        self, study: Manifest, number: int, documents: Mapping[Place, bytes], mail: Mail, secret: bytes,
        random_bytes: Callable[[int], bytes],
    ) -> bytes:  # fmt: skip
        if number == 0:
            return encode([study.study_id, secret[:8], random_bytes(8)])
        return super().answered(study, number, documents, mail, secret, random_bytes)


@pytest.mark.slow
async def test_bytes_of_earlier_rounds_come_again_with_seats_and_documents_between(tmp_path: Path) -> None:
    peer = Remembering({}, {}, {})
    protocols = with_toy(ProtocolParts(Talkative(), peer, Answering()))
    async with in_memory(tmp_path / "home", STUDY, protocols=protocols) as world:
        await world.settle_in(3)
        for number, answer in enumerate((1, 1, 0)):
            own_data(world._home(number).data_path, answer)
        await world.go_on()
        assert learned(await published(world.live))[:2] == ("2", "3")
        unread = {(tag, survey) for tag, survey in peer.drawn if survey not in (letters.ROWS, letters.VECTOR)}
        assert len(unread) == 12 and {key: peer.drawn[key] for key in unread} == peer.again
        # It is asked when it writes and afterwards, of the same pages: those of earlier rounds. Free surveys are not.
        assert peer.asked == {letters.VECTOR: {(0, 1)}}


def test_documents_in_another_order_change_no_bytes() -> None:
    """Each time a member asks for what it needs then, and the same documents come among others."""
    credential = Credential(b"issuer", b"header", b"signature", b"base", b"blind", ())
    documents = [DocumentArrived("page", 0, b"first"), DocumentArrived("page", 1, b"second")]
    drawn = [
        PacketInputs(
            resolved(), fresh([100] * 8, "", bytes), credential, b"seed", (), tuple(arrived)
        ).drawn(0, letters.VECTOR, b"answers")(32)
        for arrived in (documents, documents[::-1], [DocumentArrived("answer", 0, b"seat's"), *documents])
    ]  # fmt: skip
    assert len(set(drawn)) == 1


@frozen
class Longer(letters.Shared):
    """A survey says another length than its part writes."""

    def lay_out(
        self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]
    ) -> Layout:
        made = super().lay_out(proposal, windows, randbelow)
        return evolve(
            made, surveys=tuple(evolve(one, size=40) if one.kind == "came" else one for one in made.surveys)
        )


@pytest.mark.slow
async def test_a_text_of_another_length_stops_its_members_in_a_sentence(tmp_path: Path) -> None:
    protocols = with_toy(ProtocolParts(Longer(), letters.Peer(), letters.Aggregator()))
    async with in_memory(tmp_path / "home", STUDY, protocols=protocols) as world:
        await world.settle_in(3)
        await world.go_on()
        for app in world.peers:
            (status,) = app.status()
            assert status.state is State.STOPPED and "another length" in str(status.reason)
            assert len(status.slots) == 4


@pytest.mark.parametrize(("first", "second", "members"), [(5, 0, 4), (3, 2, 4)])
def test_more_writers_than_members_stop_a_peer(first: int, second: int, members: int) -> None:
    """More in one survey, or new pseudonyms in a later one: an aggregator can give itself credentials."""
    entry = BoardEntry(TextAndLetters(b"", ()), b"")
    tags = [bytes([number]) * 48 for number in range(5)]
    pages = {
        0: BoardPage({letters.KEYS: dict.fromkeys(tags[:first], entry)}, ()),
        1: BoardPage({letters.SHARES: dict.fromkeys(tags[first : first + second], entry)}, ()),
    }
    demand_members(resolved(), pages, 5)
    with pytest.raises(Malformed, match="more writers"):
        demand_members(resolved(), pages, members)


def test_the_first_letters_by_their_slot_are_the_keys() -> None:
    manifest = resolved()
    keys, rows, shares, *rest = manifest.slots
    swapped = evolve(
        manifest, slots=(evolve(keys, rows=shares.rows), rows, evolve(shares, rows=keys.rows), *rest)
    )
    _check_written(manifest, protocol_of(manifest))
    with pytest.raises(Malformed, match="something else than sealing keys"):
        _check_written(swapped, protocol_of(manifest))


def test_fixed_letters_tell_of_no_answers_that_were_erased() -> None:
    secrets = fresh([100], "", lambda size: bytes(size))
    fixed = secrets.fixed(b"yes")
    assert fixed.ground == b"" and fixed.fixed(b"no") == fixed and len(fixed.letters) == 32
    assert evolve(secrets, ground=b"\x01" * 32).fixed(b"yes").letters != fixed.letters != secrets.fixed(b"no").letters
