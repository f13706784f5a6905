"""Fingerprints as words and as codes: what they carry, and that a drawing is the code."""

from __future__ import annotations

import pytest
import segno

from anon.errors import Refused
from anon.kit.terminal import qr
from anon.transparency.fingerprint import study_code, words
from tests.support.peer_command import serving

STUDY = bytes(range(32))
PARTS = {" ": (0, 0), "\N{UPPER HALF BLOCK}": (1, 0), "\N{LOWER HALF BLOCK}": (0, 1), "\N{FULL BLOCK}": (1, 1)}


def modules(lines: tuple[str, ...] | list[str]) -> list[list[int]]:
    """The drawing's modules, dark as 1."""
    return [[PARTS[one][half] for one in line] for line in lines for half in (0, 1)]


def test_a_drawing_is_the_code_with_its_margin() -> None:
    text = study_code(STUDY)
    found = modules(qr.drawing(text))
    code = [[int(one) for one in row] for row in segno.make(text, error="m", boost_error=False, micro=False).matrix]
    size = len(code)
    assert [row[2 : 2 + size] for row in found[2 : 2 + size]] == code
    assert not any(found[0] + found[1] + found[-1] + [row[0] for row in found] + [row[-1] for row in found])
    finder = [1] * 7
    assert (
        found[2][2:9] == found[8][2:9] == found[2][-9:-2] == found[-10 if len(found) > size + 4 else -9][2:9] == finder
    )


def test_it_fits_beside_a_consent_sheet() -> None:
    lines = qr.drawing(study_code(STUDY))
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 40


def test_what_the_code_carries() -> None:
    assert study_code(STUDY) == "ANONML-STUDY:" + words(STUDY).upper()
    version = segno.make(study_code(STUDY), micro=False)
    assert version.mode == "alphanumeric"


def test_too_long() -> None:
    with pytest.raises(Refused, match="too long"):
        qr.drawing("x" * 5000)


def test_consent_shows_words_and_code_and_never_the_invites_code(command) -> None:
    with serving() as served:
        code = served.aggregator.invite.code
        shown = command("look", served.link)
        assert words(served.aggregator.study) in shown.out
        lines = qr.drawing(study_code(served.aggregator.study))
        assert all(line.rstrip() in shown.out for line in lines)
        told = command("look", served.link, "--json").json["fingerprint_qr"]
        assert told == {"text": study_code(served.aggregator.study), "drawing": list(lines)}
        assert code not in told["text"]
        joined = command("join", served.link, "--yes")
        assert joined.code == 0 and "keep `anonml peer run` running, or you are not enrolled" in " ".join(
            joined.out.split()
        )
        seen = command("fingerprint", "--json").json
        assert [one["kind"] for one in seen["heads"]] == ["manifest"]
        assert command("fingerprint", "--number", "7").code == 4
        assert seen["qr"]["text"] in command("fingerprint").out
