"""One member of one study, for the tests of tokens and of issuing."""

from __future__ import annotations

import pytest

from anon.credential import Verifier
from tests.anon.credential.token_forgery import HEADER, Member, enrol


@pytest.fixture(scope="module")
def member() -> Member:
    return enrol()


@pytest.fixture(scope="module")
def verifier(member: Member) -> Verifier:
    return Verifier(member.public_key, HEADER, 1)
