"""A study is named by the beginning of its id, in the same way on both sides."""

import pytest

from anon.errors import Refused
from anon.kit.terminal.options import picked

FIRST, SECOND = bytes([0xAB, 1]) + bytes(30), bytes([0xAB, 2]) + bytes(30)
STUDIES = {FIRST: "Sleep (collecting)", SECOND: "Coffee (enrolling)", bytes([0xCD]) * 32: "Tea (ended)"}


def test_one_study_needs_no_name_and_several_need_enough_of_it() -> None:
    assert picked({FIRST: "Sleep"}, "", "none") == FIRST
    assert picked(STUDIES, "AB02", "none") == SECOND
    with pytest.raises(Refused, match=r"several.*ab010000 Sleep \(collecting\); ab020000 Coffee \(enrolling\)$"):
        picked(STUDIES, "ab", "none")


def test_a_name_that_fits_nothing_is_told_with_those_there_are() -> None:
    with pytest.raises(Refused, match=r"'ff'; there are: ab010000 Sleep \(collecting\); ab02.*cdcd"):
        picked(STUDIES, "ff", "none")
    with pytest.raises(Refused, match=r"^no study yet$"):
        picked({}, "ab", "no study yet")
