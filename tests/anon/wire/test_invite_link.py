"""A link that is not exactly an invite is refused: no second parameter, no repeated one, no code without end."""

from __future__ import annotations

import pytest

from anon.errors import Malformed
from anon.wire.invite import Invite, parse_invite

LINK = Invite("127.0.0.1:8750", bytes(range(32)), bytes(32), "a code").link()


def test_the_link_reads_back() -> None:
    assert parse_invite(LINK).link() == LINK


@pytest.mark.parametrize("spoilt", [
    LINK.replace("anonml://", "https://"),
    LINK + "&from=7",
    LINK + "&code=another",
    LINK + "&key=" + bytes(32).hex(),
    LINK.replace("code=a%20code", "code=" + "a" * 201),
    LINK.replace("&code=a%20code", "&more=1"),
])
def test_anything_else_is_refused(spoilt: str) -> None:
    assert spoilt != LINK
    with pytest.raises(Malformed, match="not an AnonML link"):
        parse_invite(spoilt)


def test_the_longest_code_is_taken() -> None:
    assert parse_invite(LINK.replace("code=a%20code", "code=" + "a" * 200)).code == "a" * 200
