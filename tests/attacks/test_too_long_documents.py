"""No document is signed that no reader takes, and a home in which an earlier version did so opens again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import aggregator.study.live
from aggregator.opening import trouble
from aggregator.rules.lengths import TooLong, largest_cohort
from aggregator.rules.lifecycle import Phase
from anon.errors import Refused
from anon.study import parse_proposal
from anon.transparency.documents import MAX_BODY
from tests.support.clock import Clock
from tests.support.world import begin, has, in_memory, make_app, study_text


async def test_a_study_whose_documents_would_not_fit_is_refused_while_nobody_has_joined(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(tmp_path / "home", clock) as app:
        with pytest.raises(Refused, match=r"64\.0 MiB") as refused:
            await app.create_study(parse_proposal(study_text(maximum=1_000_000)))
        assert not app.studies() and not await app._tools.studies.all()
        fits = int(re.search(r"cohort\.maximum = (\d+) or lower", str(refused.value))[1])  # type: ignore[index]
        with pytest.raises(Refused):
            await app.create_study(parse_proposal(study_text(maximum=fits + 1)))
        manifest = await app.create_study(parse_proposal(study_text(maximum=fits)))
        assert largest_cohort(manifest) == fits > 100_000


async def test_a_document_that_is_too_long_is_not_signed_and_is_tried_once(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text()) as running:
        with pytest.raises(TooLong, match="not signed"):
            await running.live.publish("roster", 0, bytes(MAX_BODY + 1))
        with pytest.raises(TooLong, match="not signed"):  # far less than 64 MiB, and more than this cohort needs
            await running.live.publish("roster", 0, bytes(200_000))
        assert not has(running.live, "roster") and len(await running.app._tools.studies.chain(running.live.study)) == 1


async def test_a_home_with_a_document_that_no_reader_takes_opens_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with in_memory(tmp_path / "home", study_text()) as broken:
        await broken.close_enrolment(await broken.enrol(2))
        with monkeypatch.context() as earlier:
            earlier.setattr(aggregator.study.live, "demand_signable", lambda *_: None)
            await broken.live.publish("transcript", 0, bytes(MAX_BODY + 1))
        whole = await begin(broken.app, broken.clock, study_text())
    async with make_app(tmp_path / "home", broken.clock) as app:
        (status,) = [one for one in await app.status() if one.study == broken.live.study]
        assert str(MAX_BODY + 1) in status.fault and "cannot go on" in status.fault and "can be exported" in status.fault
        assert any("cohort.maximum" in line for line in trouble([status]))
        live = app.study(broken.live.study)
        assert (await live.document(0)) is not None and live.phase is not Phase.LEARNING
        broken.clock.seconds = whole.live.manifest.timetable.enrol_closes
        await app.tick()
        assert app.study(whole.live.study).phase is Phase.ABANDONED
        phase = live.phase
        broken.clock.seconds = live.manifest.timetable.ends
        await app.tick()
        assert live.phase is phase
        broken.clock.seconds = live.manifest.timetable.ends + live.manifest.release.retention
        await app.tick()
        assert live.phase is Phase.ERASED
