"""One story to a victim, another to everybody else: no fetch shows it, comparing fingerprints does, and proves it."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.transparency.equivocation import compare_chains, parse_evidence
from anon.transparency.exported_chain import write_exported_chain
from anon.transparency.fingerprint import head_prints, listing
from peer.run.equivocations import seen_chain
from peer.store.store import Store
from tests.support.stories import signed
from tests.support.victims import scene


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["roster", "credentials", "thresholds", "edges"])
def test_a_consistent_lie_about_any_document_shows_in_the_words(kind: str, tmp_path: Path, command) -> None:
    with scene(kind, tmp_path) as stage, stage.another_home("victim") as home:
        aggregator = stage.aggregator
        fate = stage.told(home)
        assert fate.left
        assert not fate.caught  # nothing that it fetched contradicted anything
        victim = seen_chain(Store(home.store_path, bytes), aggregator.study)
        public, heard = head_prints(aggregator.chain), head_prints(victim.chain)
        first = [one.head.kind for one in aggregator.chain].index(kind)
        agree = [one == other for one, other in zip(public, heard, strict=True)]
        assert agree == [True] * first + [False] * (len(public) - first)
        _by_hand(stage, home.path, tmp_path, command, first)


def _by_hand(stage, home: Path, tmp_path: Path, command, first: int) -> None:
    """The commands that the victim, the public and a third party type."""
    aggregator = stage.aggregator
    shown = command.anonml("peer", "fingerprint", "--home", home, "--export", tmp_path / "mine", "--json").json
    assert [one["words"] for one in shown["heads"]][first:] != [one.words for one in head_prints(aggregator.chain)][
        first:
    ]
    write_exported_chain(tmp_path / "public", aggregator.manifest.to_bytes(), tuple(aggregator.chain))
    assert (tmp_path / "public/fingerprints.txt").read_text() == listing(aggregator.study, aggregator.chain)
    proof = tmp_path / "proof"
    assert command.anonml("evidence", "compare", tmp_path / "mine", tmp_path / "public", "--output", proof).code == 1
    assert parse_evidence(proof.read_bytes(), bytes(aggregator.key.verify_key)).number == first
    third = command.anonml("evidence", "check", proof, "--invite", aggregator.invite.link())
    assert third.code == 0
    assert aggregator.study.hex()[:16] in third.out


def test_one_story_has_the_same_words_everywhere(tmp_path: Path) -> None:
    with scene("roster", tmp_path) as stage, stage.another_home("member") as home:
        again = signed(stage.aggregator, stage.aggregator.bodies)[0]
        assert head_prints(again) == head_prints(stage.aggregator.chain)
        assert not seen_chain(Store(home.store_path, bytes), stage.aggregator.study).chain[1:]
        assert (
            compare_chains(
                stage.aggregator.manifest,
                *[seen_chain(Store(home.store_path, bytes), stage.aggregator.study).heads] * 2,
            )
            is None
        )


def test_the_words_of_different_heads_differ(tmp_path: Path) -> None:
    with scene("edges", tmp_path) as stage:
        every = [one.words for chain in (stage.honest[0], stage.lying[0]) for one in head_prints(chain)]
        shared = sum(
            one == other for one, other in zip(*map(head_prints, (stage.honest[0], stage.lying[0])), strict=True)
        )
        assert len(set(every)) == len(every) - shared
        assert all(len(one.split("-")) == 12 for one in every)


def test_what_a_peer_kept_reaches_a_third_party(tmp_path: Path, command) -> None:
    """Caught, listed, exported, checked."""
    import asyncio
    import random

    from attrs import evolve

    from peer.app import PeerApp
    from peer.data.evaluate import at_once
    from tests.support.clock import Clock
    from tests.support.victims import Liar, until_it_left

    with scene("roster", tmp_path) as stage, stage.another_home("victim") as home:
        home.write_settings(evolve(home.settings(), head_checks=5))
        assert command.anonml("peer", "evidence", "--home", home.path).out.strip() == "none"
        assert command.anonml("peer", "evidence", "--home", home.path, "--export", tmp_path / "x").code == 4
        liar = Liar(stage.aggregator.manifest, stage.honest, stage.lying, 0.5, random.Random(3))
        clock = Clock(stage.now)
        app = PeerApp(home, lambda: liar, clock, random.Random(4).randbytes, sleep=clock.sleep, evaluate=at_once)
        asyncio.run(until_it_left(app, liar, clock, stage.aggregator.study))
        assert not liar.left
        assert stage.aggregator.study.hex()[:16] in command.anonml("peer", "evidence", "--home", home.path).out
        done = command.anonml("peer", "evidence", "--home", home.path, "--export", tmp_path)
        assert done.code == 0
        (file,) = tmp_path.glob("*.evidence")
        assert command.anonml("evidence", "check", file).code == 0
        assert command.anonml("peer", "evidence", "--home", home.path, "--export", tmp_path).code == 4
        listed = command.anonml("peer", "evidence", "--home", home.path, "--json").json
        assert bytes.fromhex(listed[0]["proof"]) == file.read_bytes()
