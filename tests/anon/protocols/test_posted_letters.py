"""A letter to the aggregator beside a posted text: under a tag that is used once, and for no other seat."""

from __future__ import annotations

from functools import partial

import pytest
from attrs import evolve

from anon.crypto.sealing import seal
from anon.crypto.sealing.opening import Opener
from anon.errors import InvalidValue
from anon.protocols.board import BoardEntry, BoardPage, mail_of, seats_of
from anon.protocols.outgoing import OpenShares, written
from anon.wire.letters import AGGREGATOR, letter_info
from tests.support.letters import ROWS
from tests.support.letters_study import resolved

OPENER, TAG = Opener(bytes(range(32))), b"\x01" * 48
MANIFEST = resolved()
ASKED = evolve(MANIFEST.survey(ROWS), m=1, parameters=(16,))
STUDY = evolve(
    MANIFEST,
    sealing_key=OPENER.public_key,
    surveys=(*MANIFEST.surveys[:ROWS], ASKED, *MANIFEST.surveys[ROWS + 1 :]),
)


def test_the_aggregator_alone_opens_it() -> None:
    assert seats_of(STUDY, ROWS, TAG, {}) == (AGGREGATOR,)
    sealing = partial(seal, public_key=OPENER.public_key, info=letter_info(STUDY.study_id, ROWS, TAG, AGGREGATOR))
    with pytest.raises(ValueError, match="letters of 16 bytes"):
        written(OpenShares(bytes(ASKED.size), (b"one byte too long",)), [sealing], 1, 16)
    short = written(OpenShares(bytes(ASKED.size), (b"for the seat....",)), [sealing], 1, 16)
    page = BoardPage({ROWS: {TAG: BoardEntry(ASKED.parse_written(short.report), b"")}}, ())
    assert mail_of(STUDY, {0: page}, AGGREGATOR, OPENER.open) == {(ROWS, TAG): b"for the seat...."}
    assert mail_of(STUDY, {0: page}, TAG, OPENER.open) == {}
    other = BoardPage({ROWS: {b"\x02" * 48: BoardEntry(ASKED.parse_written(short.report), b"")}}, ())
    assert mail_of(STUDY, {0: other}, AGGREGATOR, OPENER.open) == {}


def test_a_posted_text_has_one_seat_at_most() -> None:
    with pytest.raises(InvalidValue, match="seats"):
        evolve(ASKED, m=2)
