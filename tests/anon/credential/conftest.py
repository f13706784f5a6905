"""One member of one study, for the tests of tokens and of issuing."""

from __future__ import annotations

import pytest

from anon.credential import TokenForm, Verifier
from tests.anon.credential.token_forgery import HEADER, Member, enrol


@pytest.fixture(scope="module")
def member() -> Member:
    return enrol()


@pytest.fixture(scope="module", params=list(TokenForm), ids=["challenge", "announcements"])
def form(request: pytest.FixtureRequest) -> TokenForm:
    return TokenForm(request.param)


@pytest.fixture(scope="module")
def verifier(member: Member, form: TokenForm) -> Verifier:
    return Verifier(member.public_key, HEADER, 1, form)
