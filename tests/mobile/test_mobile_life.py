"""A peer's whole life with what a phone has: no native curve library, no libsodium, nothing compiled but what has
wheels for phones. Two such peers and an ordinary one, against a real aggregator in a process of its own that uses the
native ones.

The study's documents are in two buckets. `make soak` runs the same with one."""

from __future__ import annotations

import asyncio
import os
import time
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from tests.mobile.phone import needs_site, on_a_phone
from tests.support.command_line import ENVIRONMENT, Serving, anonml, plain
from tests.support.studies import course_of_three

pytestmark = [pytest.mark.process, needs_site]
STUDY = course_of_three("A phone's study")
PHONES, PEOPLE = 2, 3
BUCKETS = 2
FEW = f"""
from anon.transparency import buckets
buckets.THRESHOLD, buckets.MEAN, buckets.LEAST = {PEOPLE}, 1, 0
"""
"""Run first in every process: a roster of three is in two buckets."""
WITH_WHEELS = ("aiohttp", "markupsafe")


@define
class Seen:
    """The output of the commands, by kind."""

    receipts: list[Any] = field(factory=list)
    statuses: list[Any] = field(factory=list)
    predictions: list[Any] = field(factory=list)
    underneath: list[dict[str, Any]] = field(factory=list)
    audit: dict[str, Any] = field(factory=dict)
    buckets: int = 0

    @property
    def missed(self) -> bool:
        """True if the window of a packet was over before it came through."""
        return any(one["status"] == "missed" for mine in self.receipts for one in mine)


async def settle_in(folder: Path, number: int) -> None:
    home, file = folder / f"peer-{number}", folder / f"{number}.csv"
    file.write_text(f"age,income\n{25 + 20 * number},{('low', 'high')[number % 2]}\n")
    imported = ("peer", "import", file, "--table", "person", "--home", home)
    budget = ("peer", "budget", "--lifetime", "8", "--minimum-cohort", "3", "--home", home)
    if number < PHONES:
        await on_a_phone(imported, budget)
    else:
        await plain(*imported)
        await plain(*budget)


async def take_part(folder: Path, number: int, link: str, seen: Seen) -> None:
    home = folder / f"peer-{number}"
    join = ("peer", "join", link, "--yes", "--home", home)
    run = ("peer", "run", "--once", "--max-seconds", "300", "--home", home)
    if number < PHONES:
        seen.underneath.append((await on_a_phone(join, run, first=FEW))[1])
    else:
        await plain(*join)
        await plain(*run)


async def look_back(folder: Path, number: int, link: str, seen: Seen) -> None:
    home = ("--home", folder / f"peer-{number}")
    asked = [(*words, *home) for words in [("peer", "receipts"), ("peer", "status"), ("peer", "predict", link)]]
    if number < PHONES:
        (receipts, status, predicted), below = await on_a_phone(*((*words, "--json") for words in asked))
        seen.statuses.append(status)
        seen.predictions.append(predicted)
        seen.underneath.append(below)
    else:
        receipts = await anonml(*asked[0])
    seen.receipts.append(receipts)


async def play(folder: Path, patience: int = 1) -> Seen:
    """The whole life. `patience`: by how much windows are longer than the start of the programs tells."""
    folder.mkdir()
    seen, staff = Seen(), folder / "staff"
    serving = Serving(staff)
    await serving.start()
    try:
        began = time.monotonic()
        await asyncio.gather(*(settle_in(folder, number) for number in range(PEOPLE)))
        took = patience * (time.monotonic() - began)
        file = folder / "study.toml"
        file.write_text(STUDY.format(enrol=ceil(10 + 2 * took), settle=ceil(4 + took), collect=ceil(10 + 2 * took)))
        published = await anonml("study", "publish", file, "--home", staff)
        words = ("--address", serving.address, "--study", published["study"], "--home", staff)
        links = await anonml("aggregator", "invite", "--count", str(PEOPLE), *words)
        await asyncio.gather(*(take_part(folder, number, links[number], seen) for number in range(PEOPLE)))
        await serving.ended(published["study"])
        await asyncio.gather(*(look_back(folder, number, links[number], seen) for number in range(PEOPLE)))
        exported = ("aggregator", "export", folder / "published", "--study", published["study"], "--home", staff)
        await anonml(*exported)
        seen.buckets = len([*(folder / "published").glob("contents/1/*")])
        key = links[0].split("key=")[1].split("&")[0]
        seen.audit = await anonml("aggregator", "audit", folder / "published", "--key", key)
    finally:
        await serving.stop()
    return seen


@pytest.fixture(scope="module", params=[BUCKETS, pytest.param(1, marks=pytest.mark.soak)], ids=["two", "one"])
def buckets(request: pytest.FixtureRequest) -> int:
    """How many buckets the roster has."""
    return int(request.param)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, buckets: int) -> Seen:
    """Where a packet missed its window, once more with longer ones: a machine became slower meanwhile."""
    folder = tmp_path_factory.mktemp("phone")
    with pytest.MonkeyPatch.context() as patch:
        if buckets > 1:
            (folder / "sitecustomize.py").write_text(FEW)
            patch.setitem(ENVIRONMENT, "PYTHONPATH", os.pathsep.join([str(folder), ENVIRONMENT.get("PYTHONPATH", "")]))
        found = _played(folder / "first")
        return asyncio.run(play(folder / "again", patience=3)) if found is None or found.missed else found


def _played(folder: Path) -> Seen | None:
    """None where enrolment had closed before somebody joined."""
    try:
        return asyncio.run(play(folder))
    except AssertionError as late:
        if "enrolment ended" not in str(late):
            raise
        return None


def test_every_packet_of_a_phone_and_a_desktop_is_accepted_and_found_again(seen: Seen) -> None:
    assert [[(one["status"], one["word"]) for one in mine] for mine in seen.receipts] == [
        [("included", "accepted")]
    ] * PEOPLE
    assert [[one["state"] for one in mine] for mine in seen.statuses] == [["finished"]] * PHONES


def test_anybody_can_verify_the_phones_tokens_among_the_others(seen: Seen, buckets: int) -> None:
    assert seen.audit["verdict"] == "all-checked" and seen.audit["packets"] == seen.audit["enrolled"] == PEOPLE
    assert seen.buckets == buckets


def test_a_phone_predicts_for_its_owner(seen: Seen) -> None:
    assert len(seen.predictions) == PHONES
    for (mine,) in seen.predictions:
        assert mine["who"] == "you" and 0 <= mine["probability"] <= 1


def test_nothing_native_was_underneath(seen: Seen) -> None:
    assert len(seen.underneath) == 2 * PHONES
    for below in seen.underneath:
        assert below["curve"] == ["pure", "anon.crypto.pure.curve.g1"]
        assert below["sodium"] == ["pure", "anon.crypto.pure.nacl.signing"]
        assert below["sponge"] == ["pure", "anon.crypto.pure.turboshake"]
        assert below["sealing"] == ["pure", *["anon.crypto.pure.sealing.hpke"] * 2]
        assert below["elsewhere"] == below["present"] == []
        assert all(name.startswith(WITH_WHEELS) for name in below["compiled"]), below["compiled"]
        assert {"nacl", "py_arkworks_bls12381", "cryptography", "Crypto"} <= set(below["asked"])
