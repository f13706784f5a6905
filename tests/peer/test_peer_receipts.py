"""What a peer's receipts say a study cost: from signed heads alone, before and after the transcripts."""

from __future__ import annotations

from pathlib import Path

from test_peer_backup import closed, joined
from village import Village, advance

from anon.accounting import ACCEPTED, ENROLLED, Batch, account, in_words


async def test_the_receipt_counts_the_enrolled_and_then_the_accepted(tmp_path: Path) -> None:
    village = Village.found()
    app = await joined(tmp_path, village)
    assert app.accounting(village.study) is None
    await closed(app, village)
    await advance(app, village, min(survey.window.opens for survey in village.manifest.surveys))
    enrolled = len(village.enrolments)
    known = app.accounting(village.study)
    assert known is not None and known.batch == Batch((enrolled,), ENROLLED)
    manifest = village.manifest
    await advance(app, village, max(survey.window.closes for survey in manifest.surveys))
    village.transcribe()
    await advance(app, village)
    found = app.accounting(village.study)
    assert found == account(manifest, Batch((len(village.accepted),), ACCEPTED))
    assert found is not None and found.record == app.receipts()[0].epsilon
    assert any("1 accepted packets" in line for line in in_words(found))
