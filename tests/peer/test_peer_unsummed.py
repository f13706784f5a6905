"""A study that ends without a sum, on the owner's machine: the reason, what became of the shares, and what it cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.errors import RejectedProof
from anon.protocols.charge import Budget, Measure, Unit
from anon.protocols.cost_words import Amount
from anon.protocols.sum.standing import arrangement_of
from anon.sharing.round_document import UnsummedRound, Why, parse_unsummed
from anon.sharing.statements import ListSignature, disagreement_of
from anon.wire.packets import Occasion
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.rules.unsummed import told
from tests.support.fake_aggregator import FakeAggregator, advance, peer, until_closed
from tests.support.sums import GRADIENT, TABLES, countersigned, signing_key, sum_study
from tests.support.visiting import Visited, visited

NEVER = "never added up"
SAID = {
    Why.TOO_FEW: "its tellers accepted too few packets",
    Why.AWAY: "a teller did not come back in time",
    Why.REFUSED: "a teller refused to go on",
    Why.DISAGREED: "two different lists of packets, and the proof of that is published",
}


def a_study(design: str = TABLES) -> FakeAggregator:
    aggregator = FakeAggregator.with_study(sum_study(design))
    aggregator.publish("tellers", countersigned(aggregator.manifest))
    return aggregator


def ends(aggregator: FakeAggregator, why: Why, number: int = 0) -> None:
    """Publish that there is no sum; of a disagreement with its evidence."""
    evidence = b""
    if why is Why.DISAGREED:
        occasion = Occasion(aggregator.study, 0, 0)
        signed = [ListSignature(occasion, at, bytes([at]) * 32).sign(signing_key(at)) for at in range(2)]
        evidence = disagreement_of(*signed, arrangement_of(aggregator.manifest)).to_bytes()
    aggregator.publish("unsummed", UnsummedRound(aggregator.study, number, why, evidence).to_bytes())


async def sent(folder: Path, aggregator: FakeAggregator, **settings: object):
    """A peer whose packet was taken, after the study's last window."""
    app = peer(folder, aggregator, **settings)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    await advance(app, aggregator, aggregator.manifest.surveys[-1].window.closes)
    return app


@pytest.mark.slow
@pytest.mark.parametrize("why", Why)
async def test_the_owner_hears_why_and_what_it_cost(why: Why, tmp_path: Path) -> None:
    aggregator = a_study()
    app = await sent(tmp_path, aggregator)
    spent = app.budget().entries[0].spent
    ends(aggregator, why)
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert status.state is State.FINISHED and [slot.status for slot in status.slots] == [Status.DELIVERED]
    assert SAID[why] in status.reason and NEVER in status.reason and "ended without a sum" in status.reason
    assert "Its cost stays spent, epsilon " in status.reason and status.spent == spent == aggregator.manifest.epsilon
    assert status.reserved == 0 and all(slot.sealed is None for slot in status.slots)
    app.close()


@pytest.mark.slow
async def test_a_later_round_leaves_the_sums_before_it(tmp_path: Path) -> None:
    """This peer never found the sums of the rounds before, so it made one packet of three."""
    aggregator = a_study(GRADIENT)
    app = await sent(tmp_path, aggregator)
    ends(aggregator, Why.AWAY, number=1)
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert "without the sum of round 2: a teller did not come back" in status.reason
    assert "The sums of the rounds before it stay published" in status.reason
    assert 0 < status.spent < aggregator.manifest.epsilon and status.reserved == 0
    app.close()


def test_nothing_sent_cost_nothing() -> None:
    budget = Budget(Measure.ZCDP, Unit.PERSON)
    words = told(UnsummedRound(bytes(32), 0, Why.TOO_FEW), Amount(budget, 0))
    assert words.endswith("No answer of yours was sent, and it cost you nothing.") and "stays spent" not in words


@pytest.mark.slow
async def test_a_document_that_proves_nothing_is_not_believed(tmp_path: Path) -> None:
    aggregator = a_study()
    app = await sent(tmp_path, aggregator)
    aggregator.publish("unsummed", UnsummedRound(aggregator.study, 0, Why.DISAGREED, b"no evidence").to_bytes())
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert "for a reason that this program cannot read" in status.reason and "two different lists" not in status.reason
    app.close()


@pytest.mark.slow
async def test_without_any_word_the_owner_is_told_whom_to_ask(tmp_path: Path) -> None:
    aggregator = a_study()
    app = await sent(tmp_path, aggregator, inclusion_patience=1000.0)
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert "ask staff if a teller is away" in status.reason and "Its cost stays spent" in status.reason
    app.close()


async def _until_sent(page: Visited) -> None:
    aggregator = page.aggregator
    await page.peer.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(page.peer, aggregator)
    await advance(page.peer, aggregator, aggregator.manifest.surveys[-1].window.closes)


@pytest.mark.slow
async def test_the_page_says_it_and_offers_no_model(tmp_path: Path) -> None:
    async with visited(tmp_path, sum_study(TABLES)) as page:
        page.aggregator.publish("tellers", countersigned(page.aggregator.manifest))
        await _until_sent(page)
        ends(page.aggregator, Why.AWAY)
        assert await advance(page.peer, page.aggregator) is None
        words = (await page.get(page.study)).words
    assert "This study ended without a sum: a teller did not come back in time" in words and NEVER in words
    assert "There is no report and no model of this study" in words
    assert "Read the report" not in words and "Prediction for me" not in words


@pytest.mark.parametrize(("study", "number"), [(bytes(32), 1), (None, 0), (None, 2)])
def test_evidence_about_another_sum_proves_nothing(study: bytes | None, number: int) -> None:
    """Two honest signatures of another study or round: a teller's key is the same in all of them."""
    aggregator = a_study(GRADIENT)
    arrangement, own = arrangement_of(aggregator.manifest), aggregator.study
    occasions = [Occasion(one, about, about) for one, about in ((own, 1), (study or own, number))]
    fitting, foreign = (
        [ListSignature(occasion, at, bytes([at]) * 32).sign(signing_key(at)) for at in range(2)]
        for occasion in occasions
    )
    evidence = disagreement_of(*fitting, arrangement).to_bytes()
    assert (
        parse_unsummed(arrangement, own, UnsummedRound(own, 1, Why.DISAGREED, evidence).to_bytes()).evidence == evidence
    )
    forged = disagreement_of(*foreign, arrangement).to_bytes()
    with pytest.raises(RejectedProof, match=r"proves? nothing"):
        parse_unsummed(arrangement, own, UnsummedRound(own, 1, Why.DISAGREED, forged).to_bytes())
    with pytest.raises(RejectedProof, match="proves nothing"):
        disagreement_of(fitting[0], foreign[1], arrangement)
