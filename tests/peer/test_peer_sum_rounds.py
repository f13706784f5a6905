"""A peer in several rounds of sums: each document is fetched once, a round is charged once and by the peer's role,
copies make the same shares."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from anon.protocols.charge import Measure
from anon.protocols.sum.design import roles
from anon.protocols.sum.standing import arrangement_of
from anon.sharing.round_document import UnsummedRound, Why
from anon.study.manifest import Manifest
from anon.vdaf.binding import sharing_nonce
from anon.wire.packets import Dummy, Packet, share_info
from peer.app import PeerApp
from peer.data.importing import import_rows
from peer.rules.packet_lifecycle import Status
from peer.rules.study_secrets import StudySecrets
from peer.run import exchanges
from peer.store.home import PeerHome
from tests.support.fake_aggregator import FakeAggregator, advance, peer, reopened, until_closed
from tests.support.packets import packet_in
from tests.support.sums import GRADIENT, TABLES, countersigned, document, opener, sum_study

TRAINS, CHECKS = bytes([255] * 32), bytes(32)


@pytest.fixture(autouse=True)
def lot(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The role that a peer draws: it trains, if the test asks for no other."""
    monkeypatch.setattr(StudySecrets, "lot", getattr(request, "param", TRAINS))


async def collecting(folder: Path) -> tuple[FakeAggregator, PeerApp]:
    """A peer whose enrolment is closed, in a study of three rounds of gradients and one that checks."""
    aggregator = FakeAggregator.with_study(sum_study(GRADIENT))
    aggregator.publish("tellers", countersigned(aggregator.manifest))
    app = peer(folder, aggregator)
    import_rows(folder / "data.sqlite", "person", ("age", "sleep", "cups", "tired"), [(30, 8, "many", 1)])
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    return aggregator, app


async def fetched(aggregator: FakeAggregator, app: PeerApp) -> list[int]:
    """How often the sums of each round were fetched until the last window closed."""
    study = aggregator.manifest
    for survey in study.surveys:
        await advance(app, aggregator, survey.window.closes)
        aggregator.clock.seconds = max(aggregator.clock(), survey.window.closes)
        aggregator.publish("sums", document(study, survey.round, [survey.round] * survey.m, 5), survey.round)
    assert len(aggregator.accepted) == len(study.surveys)
    asked, kinds = Counter(what for what, _at in aggregator.gets), [one.head.kind for one in aggregator.chain]
    return [asked[f"documents/{place}"] for place, kind in enumerate(kinds) if kind == "sums"]


@pytest.mark.slow
async def test_the_sums_of_each_round_are_fetched_once(tmp_path: Path) -> None:
    assert await fetched(*await collecting(tmp_path)) == [1, 1, 1, 0]


@pytest.mark.slow
async def test_documents_beyond_what_is_kept_are_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "MOST_KEPT", 100)
    assert await fetched(*await collecting(tmp_path)) == [3, 2, 1, 0]


def spent(app: PeerApp) -> tuple[int, int]:
    """Spent and reserved of the study's budget."""
    (entry,) = app.budget().entries
    assert entry.measure == Measure.ZCDP
    return entry.spent, entry.reserved


@pytest.mark.slow
@pytest.mark.parametrize(("lot", "role"), [(TRAINS, 0), (CHECKS, 1)], indirect=["lot"], ids=["trains", "checks"])
async def test_a_round_is_charged_once_whenever_the_peer_begins_anew(tmp_path: Path, role: int) -> None:
    """After each step that changed something another process begins. Each packet that is made is spent: at its cost if
    it is of the peer's role; all others are zeros, of the same size."""
    aggregator, app = await collecting(tmp_path)
    study = aggregator.manifest
    own = roles(study.surveys)[role]
    costs = [survey.epsilon if survey.survey in own else 0 for survey in study.surveys]
    for number, survey in enumerate(study.surveys):
        known: tuple[object, ...] = ()
        while (due := await app.step(study.study_id)) is not None and due <= survey.window.closes:
            aggregator.clock.seconds = max(aggregator.clock(), due)
            made = app.store.outbox_entries(study.study_id)
            paid, reserved = spent(app)
            assert paid == sum(costs[: len(made)]) and (paid + reserved == study.epsilon or len(made) == len(costs))
            if (app.store.state(study.study_id), *made) != known:
                known = (app.store.state(study.study_id), *made)
                app.close()
                app = reopened(app._home, aggregator)
        aggregator.clock.seconds = max(aggregator.clock(), survey.window.closes)
        aggregator.publish("sums", document(study, survey.round, [0] * survey.m, 5), survey.round)
        assert len(aggregator.accepted) == number + 1 and len(set(aggregator.sent("packets"))) == number + 1
    await advance(app, aggregator, study.timetable.ends)
    assert spent(app) == (sum(costs), 0) and study.epsilon - 2 < sum(costs) <= study.epsilon
    packets = [aggregator.opened("packets", packet) for packet in aggregator.sent("packets")]
    assert len({*map(len, packets)}) == 1
    vectors = [added(study, packet_in(study, packet)) for packet in packets]
    assert [at for at, vector in enumerate(vectors) if any(vector)] == own


@pytest.mark.slow
async def test_rounds_that_never_come_cost_nothing(tmp_path: Path) -> None:
    """The tellers made no second sum: what was sent stays spent, and the rest comes back."""
    aggregator, app = await collecting(tmp_path)
    study = aggregator.manifest
    first, second = study.surveys[:2]
    await advance(app, aggregator, first.window.closes)
    aggregator.publish("sums", document(study, 0, [0] * first.m, 5), 0)
    await advance(app, aggregator, second.window.closes)
    aggregator.clock.seconds = max(aggregator.clock(), second.window.closes)
    aggregator.publish("unsummed", UnsummedRound(study.study_id, 1, Why.TOO_FEW).to_bytes())
    assert spent(app) == (2 * first.epsilon, study.epsilon - 2 * first.epsilon)
    for survey in study.surveys[2:]:
        await advance(app, aggregator, survey.window.closes + 1)
    assert spent(app) == (2 * first.epsilon, 0) and len(aggregator.accepted) == 2
    assert [one.status for one in app.status()[0].slots][2:] == [Status.MISSED] * 2, (
        "no round is waited for without end"
    )


def added(study: Manifest, packet: Packet | Dummy) -> list[int]:
    """The vector of a packet, as both tellers together would see it."""
    assert isinstance(packet, Packet)
    arrangement, occasion = arrangement_of(study), packet.occasion
    prio3, context = arrangement.prio3(arrangement.sum_of(occasion)), arrangement.context(occasion)
    opened = [opener(at).open(share, share_info(occasion, packet.tag, at)) for at, share in enumerate(packet.shares)]
    started = [
        prio3.verify_init(bytes(32), context, at, sharing_nonce(packet.tag), packet.report, share)
        for at, share in enumerate(opened)
    ]
    message = prio3.verifier_shares_to_message(context, [share for _, share in started])
    return list(prio3.unshard([prio3.aggregate([prio3.verify_next(state, message)]) for state, _ in started]))


async def two_copies(folder: Path, other_data: bool) -> list[list[bytes]]:
    """The public share and the opened shares of what the peer and a copy of its home send; the copy is made at the end
    of enrolment."""
    aggregator = FakeAggregator.with_study(sum_study(TABLES))
    aggregator.publish("tellers", countersigned(aggregator.manifest))
    study = aggregator.manifest
    (folder / "one").mkdir()
    app = peer(folder / "one", aggregator)
    import_rows(folder / "one" / "data.sqlite", "person", ("age", "sleep", "cups", "tired"), [(30, 8, "many", 1)])
    await app.join(aggregator.invite, study.epsilon)
    await until_closed(app, aggregator)
    app.close()
    shutil.copytree(folder / "one", folder / "two")
    began, made = aggregator.clock(), []
    for number, name in enumerate(("one", "two")):
        aggregator.clock.seconds = began
        home = PeerHome(folder / name)
        if other_data and number:
            import_rows(home.data_path, "person", ("age", "sleep", "cups", "tired"), [(70, 2, "none", 0)])
        copy = reopened(home, aggregator)
        await advance(copy, aggregator, study.surveys[0].window.closes)
        copy.close()
        packet = packet_in(study, aggregator.opened("packets", aggregator.sent("packets")[-1]))
        assert isinstance(packet, Packet)
        infos = [
            share_info(packet.occasion, packet.tag, teller) for teller in range(len(arrangement_of(study).tellers))
        ]
        opened = [opener(teller).open(share, infos[teller]) for teller, share in enumerate(packet.shares)]
        made.append([packet.tag, packet.report, *opened, packet.token, *packet.shares])
    assert len(aggregator.accepted) == 1, "the second one's tag is spent"
    return made


async def test_copies_of_a_home_make_the_same_shares_under_seals_of_their_own(tmp_path: Path) -> None:
    """So they show no more than one of them, but that there are two. Their tokens have proofs of their own: both
    answers to one drawn number would show the secret."""
    one, other = await two_copies(tmp_path, other_data=False)
    assert one[:4] == other[:4]
    assert all(a != b for a, b in zip(one[4:], other[4:], strict=True)) and len(one[4]) == len(other[4])
    points = [{token[at : at + 48] for at in range(96, 4 * 96, 96)} for token in (one[4], other[4])]
    assert len(points[0]) == 3 and not points[0] & points[1], (
        "the proofs' scalars are drawn for the packet, seals included"
    )


async def test_copies_with_other_data_share_no_randomness(tmp_path: Path) -> None:
    """Else one teller's shares of both would show the difference of two exact vectors."""
    one, other = await two_copies(tmp_path, other_data=True)
    assert one[0] == other[0]
    for a, b in zip(one[1:4], other[1:4], strict=True):
        assert not {a[at : at + 16] for at in range(0, len(a), 16)} & {b[at : at + 16] for at in range(0, len(b), 16)}
