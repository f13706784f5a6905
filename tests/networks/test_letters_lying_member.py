"""A member of the toy `letters` that lies: it stops, silences and learns from nobody, and no sum is another than that
of what was sent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attrs import evolve

from anon.crypto.pure import sealing as pure
from anon.crypto.sealing import OVERHEAD, openssl
from anon.crypto.sealing.opening import Opener
from anon.crypto.sealing_sizes import PUBLIC_KEY_SIZE, is_public_key
from anon.errors import Malformed
from anon.protocols.board import mail_of, page_body, read_page, seats_of
from anon.protocols.outgoing import OpenShares, written
from anon.wire.letters import AGGREGATOR, letter_info
from peer.rules.lifecycle import State
from tests.support import letters
from tests.support.letters_liar import Liar, with_liar
from tests.support.letters_world import (
    audited,
    bodies_of,
    due_for,
    go_on,
    learned,
    members,
    sent,
    spent,
    surveys_sent,
)
from tests.support.packets import moved
from tests.support.tries import soaked
from tests.support.world import World, sealed

KEYS, ROWS, SHARES, VECTOR, CAME, OPENING = range(6)
SEATS = 8
REFUSED = ("malformed", "malformed-report")
POINT = (9).to_bytes(32, "little")
BAD_KEYS = {
    "zeros": bytes(PUBLIC_KEY_SIZE),
    "elements above the modulus": b"\xff" * (PUBLIC_KEY_SIZE - 32) + POINT,
    "an element at the modulus": (3329).to_bytes(3, "little") + bytes(PUBLIC_KEY_SIZE - 35) + POINT,
    "a point of small order": bytes(PUBLIC_KEY_SIZE - 32) + (1).to_bytes(32, "little"),
    "its second spelling": bytes(PUBLIC_KEY_SIZE - 32) + (2**255 - 18).to_bytes(32, "little"),
}


@pytest.mark.parametrize("name", BAD_KEYS)
def test_the_verdict_on_a_key_is_that_of_both_seals(name: str) -> None:
    assert not is_public_key(BAD_KEYS[name])
    for seal in (openssl.seal, pure.seal):
        with pytest.raises(Malformed):
            seal(b"text", BAD_KEYS[name], b"")


def test_a_key_of_most_elements_below_the_modulus_is_one() -> None:
    fair = (3328 | 3328 << 12).to_bytes(3, "little") * 384 + bytes(32) + (9).to_bytes(32, "little")
    assert is_public_key(fair) and not is_public_key(fair[1:]) and not is_public_key(fair + b"\0")
    for seal in (openssl.seal, pure.seal):
        assert len(seal(b"text", fair, b"")) == 4 + OVERHEAD


def test_a_letter_without_a_key_leaves_its_place_empty_and_moves_no_other() -> None:
    made = OpenShares(b"text", (b"one", b"two", b"six"))
    seals = [lambda body: body + bytes(OVERHEAD), None, lambda body: body + bytes(OVERHEAD)]
    report = written(made, seals, 4, 3).report
    places = [report.index(body) for body in (b"one", b"six")]
    assert b"two" not in report and places[1] - places[0] == 2 * (OVERHEAD + 3 + 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", soaked(2, ["zeros", "elements above the modulus", "a point of small order"]))
async def test_a_key_to_which_nothing_can_be_sealed_stops_nobody(tmp_path: Path, name: str) -> None:
    async with members(tmp_path, [1, 0, 1]) as world:
        liar = await with_liar(world)
        assert await liar.says(KEYS, BAD_KEYS[name]) == "accepted"
        await go_on(world)
        await demand_right(world, ("2", "3"))


async def demand_right(world: World, row: tuple[str, str]) -> None:
    """The sum is right and audited; every honest member sent all its packets, and paid for what stands on its record.
    """
    bodies = await bodies_of(world)
    assert learned(bodies)[:2] == row
    assert (await audited(world, bodies)).ok, (await audited(world, bodies)).lines()
    for number in range(len(world.peers)):
        assert surveys_sent(world, number) == [KEYS, ROWS, SHARES, VECTOR, CAME, OPENING]
        assert spent(world, number) == due_for(world, number) == world.live.manifest.epsilon
        assert world.peers[number].status()[0].state is State.FINISHED


def other_purposes(liar: Liar) -> dict[str, bytes]:
    """Purposes of letters that are not those of its letters."""
    study = liar.world.live.manifest.study_id
    return {
        "no purpose": b"",
        "another study": letter_info(bytes(32), SHARES, liar.tag, AGGREGATOR),
        "another survey": letter_info(study, VECTOR, liar.tag, AGGREGATOR),
        "another writer": letter_info(study, SHARES, bytes(48), AGGREGATOR),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", soaked(2, ["no purpose", "another study", "another survey", "another writer", "garbage"])
)
async def test_letters_that_do_not_open_stop_nobody(tmp_path: Path, name: str) -> None:
    """It sends no number, so nobody needs the letters."""
    async with members(tmp_path, [1, 0, 1]) as world:
        liar = await with_liar(world)
        assert await liar.says(KEYS, liar.opener.public_key) == "accepted"
        await go_on(world, until=world.live.rounds[1].window.opens)
        body = bytes(2 * letters.WIDTH)
        if name == "garbage":
            bad = [os.urandom(len(body) + OVERHEAD) for _ in range(SEATS)]
        else:
            bad = await liar.letters_to_all(body, other_purposes(liar)[name])
        assert await liar.says(SHARES, b"\0", bad) == "accepted"
        await go_on(world)
        await demand_right(world, ("2", "3"))
        await demand_unread(world, liar)


@pytest.mark.slow
async def test_a_number_whose_shares_reached_nobody_opens_nothing(tmp_path: Path) -> None:
    """No member adds up what it has not: the study ends after its last round, with nothing opened."""
    async with members(tmp_path, [1, 0, 1]) as world:
        liar = await with_liar(world)
        await liar.says(KEYS, liar.opener.public_key)
        assert await liar.says(SHARES, b"\0", [os.urandom(2 * letters.WIDTH + OVERHEAD)] * SEATS) == "accepted"
        assert await liar.says(VECTOR, letters.spelled(7)) == "accepted"
        await go_on(world)
        bodies = await bodies_of(world)
        assert world.live.state == "ended" and letters.RESULT not in bodies
        assert set(read_page(world.live.manifest, 4, bodies["page", 4]).texts(OPENING).values()) == {letters.NOTHING}
        assert (await audited(world, bodies)).ok, (await audited(world, bodies)).lines()


@pytest.mark.slow
async def test_one_packet_a_slot_and_none_for_another_round_study_or_length(tmp_path: Path) -> None:
    async with members(tmp_path, [1, 0, 1]) as world:
        liar = await with_liar(world)
        key = liar.opener.public_key
        assert await liar.says(KEYS, key) == "accepted"
        assert await liar.posts(liar.writes(KEYS, key[::-1])) == "tag-spent"
        assert await liar.posts(liar.writes(CAME, bytes(32))) == "window-not-open"
        assert await liar.posts(moved(liar.writes(KEYS, key), slot=SHARES)) == "unknown-slot"
        assert await liar.posts(moved(liar.writes(KEYS, key), round=1, slot=CAME)) == "unknown-slot"
        assert await liar.posts(moved(liar.writes(KEYS, key), study=bytes(32))) == "wrong-study"
        assert await liar.says(SHARES, b"\0" * 3, [bytes(2 * letters.WIDTH + OVERHEAD)] * SEATS) in REFUSED
        for many, size in ((SEATS - 1, 0), (SEATS, -1), (0, 0)):
            wrong = [bytes(2 * letters.WIDTH + OVERHEAD + size)] * many
            assert await liar.posts(liar.writes(SHARES, b"\0", wrong)) in REFUSED
        with pytest.raises(Malformed, match="do not fit"):  # no packet of any member is so long
            sealed(world.live, liar.writes(SHARES, bytes(100_000)))
        await go_on(world)
        await demand_right(world, ("2", "3"))


@pytest.mark.slow
async def test_anothers_packet_counts_once_and_its_letters_open_for_no_other_writer(tmp_path: Path) -> None:
    async with members(tmp_path, [1, 0, 1]) as world:
        liar = await with_liar(world)
        await liar.says(KEYS, liar.opener.public_key)
        await go_on(world, until=world.live.rounds[1].window.closes - 1)
        theirs = next(packet for packet in sent(world, 0) if packet.survey == SHARES)
        assert await liar.posts(theirs) == "accepted"  # it holds its slot: acknowledged once more, and stored once
        stolen = world.live.manifest.survey(SHARES).parse_written(theirs.report)
        assert await liar.posts(liar.writes(SHARES, stolen.text, stolen.letters)) == "accepted"
        own = liar.writes(SHARES, stolen.text, stolen.letters)
        assert await liar.posts(evolve(theirs, token=own.token)) == "tag-spent"
        await go_on(world)
        page = read_page(world.live.manifest, 1, (await bodies_of(world))["page", 1])
        assert len(page.packets) == 4
        await demand_right(world, ("2", "3"))
        await demand_unread(world, liar)


async def demand_unread(world: World, liar: Liar) -> None:
    """The aggregator's seat read a letter of every honest member, and none of the liar."""
    study, bodies = world.live.manifest, await bodies_of(world)
    pages = {number: read_page(study, number, bodies["page", number]) for number in range(2)}
    assert liar.tag in pages[1].entries[SHARES]
    mail = mail_of(study, pages, AGGREGATOR, Opener(world.live.packet_intake.rules.sealing_key).open)
    assert {writer for survey, writer in mail if survey == SHARES} == {*pages[1].entries[SHARES]} - {liar.tag}


@pytest.mark.slow
async def test_a_circle_has_no_place_for_whoever_told_no_key(tmp_path: Path) -> None:
    """A place beyond the circle is empty for all readers: no letter there reaches anybody."""
    async with members(tmp_path, [1, 0, 1]) as world:
        await go_on(world, until=world.live.rounds[1].window.opens)
        study = world.live.manifest
        page = read_page(study, 0, (await bodies_of(world))["page", 0])
        tags = list(page.texts(KEYS))
        assert seats_of(study, SHARES, tags[0], {0: page}) == (AGGREGATOR, *tags[1:])
        empty = read_page(study, 0, page_body(study.study_id, 0, ()))
        assert seats_of(study, SHARES, tags[0], {0: empty}) == (AGGREGATOR,)
