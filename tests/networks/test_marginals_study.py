"""A whole study whose rows are drawn from the tellers' sum, in memory: published, exported, repeated by the audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aggregator.audit import audit
from aggregator.audit.exporting import export_study
from aggregator.rules.lifecycle import Phase
from anon.protocols.models.rows import PublishedRows
from tests.support.protocols import PROTOCOLS, read_model
from tests.support.study_with_tellers import TELLERS, a_study, all_sent, short
from tests.support.sums import MARGINALS, sum_study

pytestmark = pytest.mark.slow
STUDY = short(sum_study(MARGINALS + "\nrows = 40", TELLERS, minimum=3))


async def test_rows_are_published_exported_and_made_again_by_the_audit(tmp_path: Path) -> None:
    async with a_study(tmp_path, text=STUDY) as study:
        await all_sent(study)
        await study.until(Phase.PUBLISHED)
        bodies = await study.published()
        assert [*bodies][-3:] == [("model", 0), ("rows", 0), ("report", 0)]
        rows, model = PROTOCOLS.result(bodies["rows", 0]), read_model(bodies["model", 0].decode())
        assert isinstance(rows, PublishedRows) and len(rows.rows) == 40 and rows.study == model.study
        result = await study.audited()
        assert result.ok and result.model_checked, result.lines()
        await export_study(study.live, tmp_path / "out")
        assert (tmp_path / "out/rows.csv").read_text("utf-8") == rows.to_csv()
        assert audit(tmp_path / "out").not_checked == result.not_checked
        assert b"Rows that are nobody&#39;s" in bodies["report", 0] or b"Rows that are nobody" in bodies["report", 0]
        forged = json.loads(bodies["rows", 0])
        forged["rows"][0] = [*forged["rows"][0][:-1], "1" if forged["rows"][0][-1] == "0" else "0"]
        spelled = json.dumps(forged, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        lied = await study.audited({("rows", 0): spelled})
        assert [(one.document, one.fault) for one in lied.findings] == [("rows 0", "is not what the transcripts give")]
        (tmp_path / "out/rows.csv").write_text("another")
        assert [one.document for one in audit(tmp_path / "out").findings] == ["rows.csv"]
