"""One story to a victim, another to everybody else: no fetch shows it, comparing fingerprints does, and proves it."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories import signed
from victims import scene

from anon.evidence import compare_chains, parse_evidence
from anon.fingerprint import head_prints, listing
from anon.story import write_story
from peer.evidence import told
from peer.store import Store


@pytest.mark.parametrize("kind", ["roster", "credentials", "thresholds", "edges"])
def test_a_consistent_lie_about_any_document_shows_in_the_words(kind: str, tmp_path: Path, command) -> None:
    with scene(kind, tmp_path) as stage, stage.another_home("victim") as home:
        village = stage.village
        fate = stage.told(home)
        assert fate.left
        assert not fate.caught  # nothing that it fetched contradicted anything
        victim = told(Store(home.store_path, bytes), village.study)
        public, heard = head_prints(village.chain), head_prints(victim.chain)
        first = [one.head.kind for one in village.chain].index(kind)
        agree = [one == other for one, other in zip(public, heard, strict=True)]
        assert agree == [True] * first + [False] * (len(public) - first)
        _by_hand(stage, home.path, tmp_path, command, first)


def _by_hand(stage, home: Path, tmp_path: Path, command, first: int) -> None:
    """What the victim, the public and a third party type."""
    village = stage.village
    shown = command.anonml("peer", "fingerprint", "--home", home, "--export", tmp_path / "mine", "--json").json
    assert [one["words"] for one in shown["heads"]][first:] != [one.words for one in head_prints(village.chain)][first:]
    write_story(tmp_path / "public", village.manifest.to_bytes(), tuple(village.chain))
    assert (tmp_path / "public/fingerprints.txt").read_text() == listing(village.study, village.chain)
    proof = tmp_path / "proof"
    assert command.anonml("evidence", "compare", tmp_path / "mine", tmp_path / "public", "--output", proof).code == 1
    assert parse_evidence(proof.read_bytes(), bytes(village.key.verify_key)).number == first
    third = command.anonml("evidence", "check", proof, "--invite", village.invite.link())
    assert third.code == 0
    assert village.study.hex()[:16] in third.out


def test_one_story_has_the_same_words_everywhere(tmp_path: Path) -> None:
    with scene("roster", tmp_path) as stage, stage.another_home("member") as home:
        again = signed(stage.village, stage.village.bodies)[0]
        assert head_prints(again) == head_prints(stage.village.chain)
        assert not told(Store(home.store_path, bytes), stage.village.study).chain[1:]
        assert compare_chains(stage.village.manifest, *[told(Store(home.store_path, bytes), stage.village.study).heads] * 2) is None


def test_the_words_of_different_heads_differ(tmp_path: Path) -> None:
    with scene("edges", tmp_path) as stage:
        every = [one.words for chain in (stage.honest[0], stage.lying[0]) for one in head_prints(chain)]
        shared = sum(one == other for one, other in zip(*map(head_prints, (stage.honest[0], stage.lying[0])), strict=True))
        assert len(set(every)) == len(every) - shared
        assert all(len(one.split("-")) == 8 for one in every)


def test_what_a_peer_kept_reaches_a_third_party(tmp_path: Path, command) -> None:
    """Caught, listed, exported, checked."""
    import asyncio
    import random

    from attrs import evolve
    from victims import Liar, until_it_left
    from village import Clock

    from peer.app import PeerApp

    with scene("roster", tmp_path) as stage, stage.another_home("victim") as home:
        home.write_settings(evolve(home.settings(), head_checks=5))
        assert command.anonml("peer", "evidence", "--home", home.path).out.strip() == "none"
        assert command.anonml("peer", "evidence", "--home", home.path, "--export", tmp_path / "x").code == 4
        liar, clock = Liar(stage.village.study, stage.honest, stage.lying, 0.5, random.Random(3)), Clock(stage.now)
        app = PeerApp(home, lambda: liar, clock, random.Random(4).randbytes, sleep=clock.sleep)
        asyncio.run(until_it_left(app, liar, clock, stage.village.study))
        assert not liar.left
        assert stage.village.study.hex()[:16] in command.anonml("peer", "evidence", "--home", home.path).out
        done = command.anonml("peer", "evidence", "--home", home.path, "--export", tmp_path)
        assert done.code == 0
        (file,) = tmp_path.glob("*.evidence")
        assert command.anonml("evidence", "check", file).code == 0
        assert command.anonml("peer", "evidence", "--home", home.path, "--export", tmp_path).code == 4
        listed = command.anonml("peer", "evidence", "--home", home.path, "--json").json
        assert bytes.fromhex(listed[0]["proof"]) == file.read_bytes()
