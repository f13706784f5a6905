"""A peer of a study whose documents are in buckets: what it fetches, when, and what it checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from anon.credential import pseudonym
from anon.protocols.sortition import tag_context
from anon.route import Response
from anon.transparency import buckets
from peer.app import PeerApp
from peer.rules import schedule
from peer.rules.bucket_checks import buckets_of_tag
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.rules.study_secrets import StudySecrets
from peer.run import verify
from peer.run.context import credential_of
from peer.store.home import PeerHome
from peer.store.records import MemberStudy
from tests.support.fake_aggregator import DECLARED, PAPER, FakeAggregator, advance, peer, reopened, until_closed


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets of two in place of 256: no study can say so, and CI need not enrol four thousand."""
    monkeypatch.setattr(buckets, "THRESHOLD", 8)
    monkeypatch.setattr(buckets, "MEAN", 2)
    monkeypatch.setattr(buckets, "LEAST", 0)


async def enrolled(folder: Path, text: str = DECLARED, others: int = 15) -> tuple[FakeAggregator, PeerApp]:
    """A study of 16 in eight buckets, closed."""
    aggregator = FakeAggregator.with_study(text)
    app = peer(folder, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator, others)
    return aggregator, app


def fetched(aggregator: FakeAggregator, kind: str) -> list[int]:
    """The buckets of a kind's first document that were asked for, in order."""
    number = next(number for number, made in aggregator.made.items() if made.document.kind == kind)
    asked = [what.split("/") for what, _at in aggregator.gets if what.startswith(f"buckets/{number}/")]
    return [int(bucket) for _, _, bucket in asked]


def window_closes(aggregator: FakeAggregator) -> float:
    return float(max(survey.window.closes for survey in aggregator.manifest.surveys))


async def test_a_whole_life_in_buckets(few: None, tmp_path: Path) -> None:
    aggregator, app = await enrolled(tmp_path)
    aggregator.gets.clear()
    await advance(app, aggregator, window_closes(aggregator))
    assert len(aggregator.sent("packets")) == 1
    first = fetched(aggregator, "roster")
    assert len(set(first)) == len(first) == 3, "the own and two decoys"
    assert fetched(aggregator, "credentials") == first
    roster = next(number for number, made in aggregator.made.items() if made.document.kind == "roster")
    assert len({at for what, at in aggregator.gets if what.startswith(f"buckets/{roster}/")}) == 3, (
        "each at its own time"
    )
    assert {what.partition("/")[0] for what, _at in aggregator.gets} == {"heads", "buckets"}, "nothing whole"
    aggregator.transcribe()
    aggregator.gets.clear()
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert status.state is State.FINISHED
    assert [slot.status for slot in status.slots] == [Status.INCLUDED]
    assert len(aggregator.sent("packets")) == 1


async def test_a_single_bucket_needs_no_decoys(tmp_path: Path) -> None:
    """It stands within its document, so everybody fetches the same and no bucket."""
    aggregator, app = await enrolled(tmp_path, others=5)
    await advance(app, aggregator, window_closes(aggregator))
    aggregator.transcribe()
    assert await advance(app, aggregator) is None
    assert not [what for what, _at in aggregator.gets if what.startswith("buckets/")]
    assert app.status()[0].slots[0].status is Status.INCLUDED


def others_sent(aggregator: FakeAggregator) -> None:
    """Fifteen others sent as well."""
    for (slot, _tag), packet in list(aggregator.accepted.items()):
        for number in range(15):
            token = bytes([number]) + packet.token[1:]
            aggregator.accepted[slot, token[:48]] = evolve(packet, token=token)


def asked(aggregator: FakeAggregator, kind: str) -> list[str]:
    return [f"buckets/{number}/{bucket}" for number in numbers(aggregator, kind) for bucket in range(8)]


def numbers(aggregator: FakeAggregator, kind: str) -> list[int]:
    return [number for number, made in aggregator.made.items() if made.document.kind == kind]


async def until_asked(app: PeerApp, aggregator: FakeAggregator, kind: str, count: int) -> None:
    """Step until so many more buckets of the kind were asked for."""
    count += len(fetched(aggregator, kind))
    while len(fetched(aggregator, kind)) < count:
        due = await app.step(aggregator.study)
        assert due is not None
        aggregator.clock.seconds = max(aggregator.clock(), due)


async def test_a_retry_asks_for_the_same_buckets(few: None, tmp_path: Path) -> None:
    """Two sets with other decoys would show the own bucket as the one that both have."""
    aggregator, app = await enrolled(tmp_path)
    aggregator.deaf = {*asked(aggregator, "roster")}
    await until_asked(app, aggregator, "roster", 2)
    app.close()
    app = reopened(PeerHome(tmp_path), aggregator)
    await until_asked(app, aggregator, "roster", 2)
    aggregator.deaf = {*asked(aggregator, "credentials")[3:]}
    app.close()
    app = reopened(PeerHome(tmp_path), aggregator)
    await until_asked(app, aggregator, "credentials", 3)
    aggregator.deaf.clear()
    await advance(app, aggregator, window_closes(aggregator))
    assert len(aggregator.sent("packets")) == 1
    assert set(fetched(aggregator, "roster")) == set(fetched(aggregator, "credentials"))
    assert len(set(fetched(aggregator, "roster"))) == 3
    app.close()


async def test_digests_come_one_by_one_at_times_of_their_own_and_after_a_restart_the_same(
    few: None, tmp_path: Path
) -> None:
    aggregator, app = await enrolled(tmp_path)
    await advance(app, aggregator, window_closes(aggregator))
    others_sent(aggregator)
    aggregator.transcribe()
    study = app.store.study(aggregator.study)
    assert isinstance(study, MemberStudy)
    secrets = StudySecrets.from_bytes(study.secrets[1:])
    tag = pseudonym(credential_of(study, secrets), tag_context(aggregator.manifest, 0))
    (number,) = numbers(aggregator, "transcript")
    document = aggregator.made[number].document
    aggregator.gets.clear()
    await until_asked(app, aggregator, "transcript", 2)
    app.close()
    app = reopened(PeerHome(tmp_path), aggregator)
    assert await advance(app, aggregator) is None
    times = [at for what, at in aggregator.gets if what.startswith(f"buckets/{number}/")]
    assert len(set(times)) == len(times) == 5, "two before the restart, and all three again"
    assert set(fetched(aggregator, "transcript")) == set(buckets_of_tag(document, tag, secrets))
    assert len(set(fetched(aggregator, "transcript"))) == 3 and document.buckets == 8
    assert app.status()[0].slots[0].status is Status.INCLUDED
    sizes = {len(aggregator.bucket(number, bucket).body) for bucket in range(8)}
    assert len(sizes) == 1 and len(set(aggregator.made[number].entries)) > 1, "the length tells no bucket"
    app.close()


async def test_a_packet_that_was_left_out_is_missed(few: None, tmp_path: Path) -> None:
    aggregator, app = await enrolled(tmp_path)
    await advance(app, aggregator, window_closes(aggregator))
    aggregator.accepted.clear()
    aggregator.transcribe()
    assert await advance(app, aggregator) is None
    assert app.status()[0].slots[0].status is Status.NOT_INCLUDED


async def test_the_few_packets_of_several_slots_come_with_their_documents(few: None, tmp_path: Path) -> None:
    text = PAPER.replace("bins = 2", "cuts = [50]")
    aggregator, app = await enrolled(tmp_path, text)
    await advance(app, aggregator, window_closes(aggregator))
    aggregator.transcribe()
    aggregator.gets.clear()
    assert await advance(app, aggregator) is None
    assert len(numbers(aggregator, "transcript")) == aggregator.manifest.packets == len(aggregator.accepted)
    assert not [what for what, _at in aggregator.gets if what.startswith("buckets/")], "one packet is one bucket"
    assert {slot.status for slot in app.status()[0].slots} == {Status.INCLUDED}


async def test_a_machine_that_slept_draws_the_times_of_its_buckets_anew(few: None, tmp_path: Path) -> None:
    """All three at one instant would tell whose they are."""
    aggregator, app = await enrolled(tmp_path)
    while not (numbers(aggregator, "roster") and any(what == "heads/closing" for what, _at in aggregator.gets)):
        aggregator.clock.seconds = max(aggregator.clock(), await app.step(aggregator.study) or 0)
    opening = app._following.runner(aggregator.study)._run.memory.opening
    assert opening is not None
    aggregator.clock.seconds = slept = opening.begins - 2.0
    await advance(app, aggregator, opening.begins - 1e-3)
    times = [at for what, at in aggregator.gets if what in asked(aggregator, "roster")]
    assert len(set(times)) == len(times) == 3 and all(at > slept for at in times)
    await advance(app, aggregator, window_closes(aggregator))
    others_sent(aggregator)
    aggregator.transcribe()
    (number,) = numbers(aggregator, "transcript")
    closes, ends = window_closes(aggregator), aggregator.manifest.timetable.ends
    while not app._following.runner(aggregator.study)._run.memory.digests:
        aggregator.clock.seconds = max(aggregator.clock(), await app.step(aggregator.study) or ends)
    aggregator.clock.seconds = slept = closes + 0.9 * (ends - closes)
    assert await advance(app, aggregator) is None
    times = [at for what, at in aggregator.gets if what.startswith(f"buckets/{number}/")]
    assert len(set(times)) == len(times) == 3 and all(at > slept for at in times)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 7.0, 70.0, 300.0])
async def test_no_answer_moves_the_instant_at_which_a_peer_goes_on(
    delay: float, few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was drawn before the fetches. An answer that is held until after it is one that did not come in time."""
    aggregator, app = await enrolled(tmp_path)
    drawn, went_on, honest, check = list[float](), list[float](), aggregator.bucket, verify._check

    def draw_begin(*given: Any) -> float:
        drawn.append(schedule.draw_begin(*given))
        return drawn[-1]

    def late(_self: FakeAggregator, number: int, bucket: int) -> Response:
        aggregator.clock.seconds += delay
        return honest(number, bucket)

    async def checked(*given: Any) -> None:
        went_on.append(aggregator.clock())
        await check(*given)

    monkeypatch.setattr(verify, "draw_begin", draw_begin)
    monkeypatch.setattr(verify, "_check", checked)
    monkeypatch.setattr(FakeAggregator, "bucket", late)
    await advance(app, aggregator, window_closes(aggregator))
    assert went_on == drawn[-1:] and len(aggregator.sent("packets")) == 1
