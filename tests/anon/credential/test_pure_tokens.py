"""Credentials and tokens by either curve: equal bytes from equal randomness, and each verifies the other's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import ROOT

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("one_credential.py")
COUNTS = [1, 3]
VECTORS = ["test_bbs_official_vectors.py", "test_credential_own_vector.py", "test_credential_curve.py"]
TRAPS = ["test_credential_traps.py", "test_token_traps.py"]
SLOW = "not every_flipped_bit"


def by(crypto: str, **asked: Any) -> dict[str, Any]:
    """The output of `one_credential`, run with this cryptographic library."""
    told = {"counts": COUNTS, "fixed": False, **asked}
    command = [sys.executable, str(SCRIPT), json.dumps(told)]
    environment = {**os.environ, "ANONML_CRYPTO": crypto, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert (said["curve"], said["sodium"]) == (crypto, crypto)
    return said


def test_equal_randomness_gives_equal_bytes() -> None:
    mine, theirs = by("pure", fixed=True)["made"], by("native", fixed=True)["made"]
    assert mine == theirs
    assert len(mine["1"]["tokens"]) == 2 * 832


def test_a_token_takes_less_than_a_tenth_of_a_second() -> None:
    """Processor time, so that a busy machine does not decide; a new context each time."""
    command = [sys.executable, "-m", "benchmarks.tokens", "--prover", "--seconds", "1"]
    environment = {**os.environ, "ANONML_CRYPTO": "pure"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=120)
    figures = json.loads(done.stdout)
    assert figures["phone_make"]["processor_median"] < 100
    assert figures["phone_finalize"]["processor_median"] < 3000


def damaged(token: str) -> list[str]:
    """One token, and damage of each kind to it: a bit of a point, of a scalar, an order-3 point, a scalar too great."""
    octets = bytes.fromhex(token)
    found = [octets]
    for place in (0, 20, 60, 130, 200, 300, 400, 500, 600, 660, 690, len(octets) - 1):
        found.append(octets[:place] + bytes([octets[place] ^ 1]) + octets[place + 1 :])
    found.append(b"\x80" + bytes(94) + b"\2" + octets[96:])
    found.append(octets[:96] + b"\xc0" + bytes(95) + octets[192:])
    found.append(octets[:96] + b"\x80" + bytes(94) + b"\2" + octets[192:])
    found.append(octets[:96] + bytes([octets[96] ^ 0x20]) + octets[97:])
    found.append(octets[:-32] + b"\xff" * 32)
    return [one.hex() for one in found] + [token[2:], ""]


def test_each_verifies_the_others_tokens_and_refuses_the_same() -> None:
    for prover, verifier in (("pure", "native"), ("native", "pure")):
        made = by(prover)["made"]
        judge = {str(count): [made[str(count)]["key"], count, made[str(count)]["tokens"].split()] for count in COUNTS}
        judge["damaged"] = [made["1"]["key"], 1, damaged(made["1"]["tokens"])]
        judged = by(verifier, counts=[], judge=judge)["judged"]
        for count in COUNTS:
            assert judged[str(count)] == made[str(count)]["tags"].split()
        assert judged["damaged"] == by(prover, counts=[], judge={"damaged": judge["damaged"]})["judged"]["damaged"]
        assert judged["damaged"][0] == made["1"]["tags"]
        assert all(re.match("Malformed|RejectedProof", one) for one in judged["damaged"][1:])


def credential_tests(*words: str) -> str:
    """The credential's own tests with the Python curve underneath; their last line."""
    files = [f"tests/anon/credential/{word}" if word.startswith("test_") else word for word in words]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, "ANONML_CRYPTO": "pure"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def test_the_official_vectors_hold() -> None:
    assert "skipped" not in credential_tests(*VECTORS)


def test_credentials_of_others_are_judged_alike() -> None:
    """In one fold: good ones, errors that cancel, the identity; all flaws take minutes."""
    credential_tests("test_credential_lists.py", "-k", "all_good or cancel or base_that_is_the_identity")


@pytest.mark.soak
def test_the_traps_of_credentials_and_tokens_hold() -> None:
    credential_tests(*TRAPS, "test_credential_lists.py", "-k", SLOW)


@pytest.mark.soak
def test_every_flipped_bit_is_refused_too_and_batches_name_the_bad_ones() -> None:
    credential_tests(*TRAPS, "-k", "every_flipped_bit")
    credential_tests("test_token_batch.py")
