"""A whole study of a declared rule in memory, with real tellers: published, exported, repeated by the audit to the
byte."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

import pytest

from aggregator.audit import audit
from aggregator.audit.exporting import export_study
from aggregator.rules.lifecycle import Phase
from anon.protocols.models.tables import Model
from tests.support.protocols import read_model
from tests.support.study_with_tellers import TELLERS, a_study, all_sent, short
from tests.support.sums import RULE, sum_study

pytestmark = pytest.mark.slow
STUDY = short(sum_study(RULE, TELLERS, minimum=3))


async def test_a_rule_is_calibrated_corrected_published_and_made_again_by_the_audit(tmp_path: Path) -> None:
    async with a_study(tmp_path, text=STUDY) as study:
        await all_sent(study)
        await study.until(Phase.PUBLISHED)
        bodies = await study.published()
        assert [name for name in bodies if name[0] == "sums"] == [("sums", 0), ("sums", 1), ("sums", 2)]
        model = read_model(bodies["model", 0].decode())
        assert isinstance(model, Model) and model.belief and model.belief.features == 2
        assert not model.belief.contradicted and model.belief.members < model.belief.enough
        assert [len(table.log_odds) for table in model.tables] == [4, 3, 4]
        older, younger = model.tables[0].log_odds[2], model.tables[0].log_odds[0]
        assert older > younger, "so few members leave what staff expect of age"
        result = await study.audited()
        assert result.ok and result.model_checked, result.lines()
        await export_study(study.live, tmp_path / "out")
        assert audit(tmp_path / "out").not_checked == result.not_checked
        report = bodies["report", 0].decode()
        first = report[report.index("<h2>") : report.index("How sure we are")]
        declared, heard = map(escape, model.belief.shares)
        shares = f"{declared} follow from what staff declared beforehand of 2 features, and {heard}"
        assert f"Of the differences that this model sees between people, {shares}" in first
        assert "cannot show that what was declared is wrong as a whole: about" in first
        assert f"{declared} is as staff declared it, and {heard} is from answers" in report
        assert "<figcaption><bdi>age</bdi>: mostly what was declared" in report, "of cups nothing was declared"
        assert "<bdi>cups</bdi>: mostly" not in report and "where answers say little" not in report
        forged = json.loads(bodies["model", 0])
        forged["belief"]["heard"] = 1.0
        spelled = json.dumps(forged, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        lied = await study.audited({("model", 0): spelled})
        assert [(one.document, one.fault) for one in lied.findings] == [("model 0", "is not what the transcripts give")]
