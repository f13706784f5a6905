"""A peer's whole life on arm64, with the packages of a phone and cryptography in Python, beside two of this machine: a
histogram and a sum with two tellers. The aggregator and the tellers are this machine's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.arm64.emulator import ARM64, SITE, needs_arm64
from tests.mobile.phone import ABSENT
from tests.support.members_elsewhere import Member, demand_found_again, play
from tests.support.systems import LINUX

pytestmark = [pytest.mark.soak, pytest.mark.process, pytest.mark.timeout(3600), needs_arm64]
UNDERNEATH = f"""
import json, platform, sys
from importlib.util import find_spec
from anon.crypto import curve, nacl, sealing, turboshake
import aiohttp._http_parser as parser
parts = curve, nacl, sealing, turboshake
print(json.dumps({{
    "machine": platform.machine(), "found": [name for name in {ABSENT!r} if find_spec(name)],
    "parts": [part.IMPLEMENTATION for part in parts], "parser": parser.__file__,
}}))
"""


def test_a_peer_on_arm64_goes_from_a_file_to_packets_found_again_and_is_erased(tmp_path: Path) -> None:
    home, others = tmp_path / "first", (tmp_path / "second", tmp_path / "third")
    members = [Member(ARM64, home), *(Member(LINUX, other) for other in others)]
    seen = asyncio.run(play(tmp_path / "study", members, with_sum=True))
    demand_found_again(seen, 2)
    ((own, *_), *_) = seen.predictions
    assert own[0]["who"] == "you" and 0 <= own[0]["probability"] <= 1
    assert (data := home / "data.sqlite").exists()
    erased, receipts, tables = asyncio.run(_erased(home))
    assert erased.startswith("erased;")
    assert [one["status"] for one in json.loads(receipts)] == ["included"] * 2
    assert json.loads(tables) == {} and not data.exists()


def test_nothing_but_a_phones_packages_is_underneath() -> None:
    told = asyncio.run(ARM64.done("-c", UNDERNEATH))
    found: dict[str, Any] = json.loads(told.out)
    assert found["machine"] == "aarch64" and found["found"] == ["aggregator"], "the aggregator lies in this folder"
    assert found["parts"] == ["pure"] * 4
    assert found["parser"].startswith(str(SITE)) and "aarch64" in found["parser"]


async def _erased(home: Path) -> list[str]:
    at = ("--home", home)
    asked = [("erase", "--silent", "--yes"), ("receipts", "--json"), ("tables", "--json")]
    return await ARM64.plain(*(("peer", *words, *at) for words in asked))
