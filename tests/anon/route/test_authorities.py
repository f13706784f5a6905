"""The certificate authorities are not read by an import, and are there when somebody speaks TLS."""

from __future__ import annotations

import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from anon.route.authorities import read_later
from tests.docs.repository import ROOT


def test_contexts_read_them_once_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent")
    monkeypatch.setenv("SSL_CERT_DIR", "/nonexistent")
    read: list[ssl.SSLContext] = []
    with read_later():
        context = ssl.create_default_context()
        monkeypatch.setattr(context, "set_default_verify_paths", lambda: read.append(context), raising=False)
    assert read == []
    for _ in range(2):
        made = context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="example.org")
        assert isinstance(made, ssl.SSLObject) and read == [context]
    assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    assert "set_default_verify_paths" not in vars(ssl.SSLContext)


def test_a_context_class_of_somebody_else_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def own(context: object) -> None:
        """Another program's way."""

    monkeypatch.setattr(ssl.SSLContext, "set_default_verify_paths", own)
    with read_later():
        assert vars(ssl.SSLContext)["set_default_verify_paths"] is own
    assert vars(ssl.SSLContext)["set_default_verify_paths"] is own


@pytest.mark.process
def test_an_exchange_loads_none() -> None:
    program = (
        "import aiohttp.connector as own, ssl, sys\n"
        "print(own._SSL_CONTEXT_VERIFIED.cert_store_stats()['x509'])\n"
    )
    authority = Path(ssl.get_default_verify_paths().openssl_cafile)
    if not authority.is_file():
        pytest.skip("this machine has no list of authorities")
    counts = [
        int(subprocess.run(
            [sys.executable, "-c", first + program], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout)
        for first in ("", "import anon.route.exchange\n")
    ]
    assert counts[0] > 0 and counts[1] == 0
