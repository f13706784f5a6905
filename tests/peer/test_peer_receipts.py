"""A peer's receipts state a study's cost from signed heads alone, before and after the transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.accounting.statement import ACCEPTED, ENROLLED, Batch, account, for_owner, in_words
from tests.peer.test_peer_backup import closed, joined
from tests.support.fake_aggregator import FakeAggregator, advance


async def test_the_receipt_counts_the_enrolled_and_then_the_accepted(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await joined(tmp_path, aggregator)
    assert app.accounting(aggregator.study) is None
    await closed(app, aggregator)
    await advance(app, aggregator, min(survey.window.opens for survey in aggregator.manifest.surveys))
    enrolled = len(aggregator.enrolments)
    known = app.accounting(aggregator.study)
    assert known is not None and known.batch == Batch((enrolled,), ENROLLED)
    manifest = aggregator.manifest
    await advance(app, aggregator, max(survey.window.closes for survey in manifest.surveys))
    aggregator.transcribe()
    await advance(app, aggregator)
    found = app.accounting(aggregator.study)
    assert found == account(manifest, Batch((len(aggregator.accepted),), ACCEPTED))
    assert found is not None and found.record == app.receipts()[0].cost.amount
    assert any("1 accepted packets" in line for line in in_words(found))


@pytest.mark.slow
def test_figures_that_all_are_the_local_epsilon_are_one_sentence_for_the_owner() -> None:
    manifest = FakeAggregator.with_study().manifest
    few = for_owner(account(manifest, Batch((1,), ACCEPTED)))
    assert "Hiding among the others adds nothing here" in few[-1] and not any("honest" in line for line in few)
    many = account(manifest, Batch((100_000,), ACCEPTED))
    assert for_owner(many) == in_words(many) and "half of them honest" in "\n".join(in_words(many))
