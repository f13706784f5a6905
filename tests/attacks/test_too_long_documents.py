"""No document is signed that no reader takes, and a home in which an earlier version did so opens again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from nacl.signing import SigningKey

import aggregator.intake.enrolments
import aggregator.rules.lengths
import aggregator.study.live
import anon.transparency.documents
from aggregator.desk.editor import lint_text
from aggregator.rules.lengths import TooLong, largest_cohort
from aggregator.rules.lifecycle import Phase
from anon.errors import Refused
from anon.transparency import buckets
from anon.transparency.documents import MAX_BODY, sign_head
from tests.support.clock import Clock
from tests.support.protocols import parse_proposal
from tests.support.world import FakePeer, begin, has, in_memory, make_app, study_text


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bucket holds all, however many there are."""
    monkeypatch.setattr(buckets, "THRESHOLD", 2**40)


async def test_a_study_whose_documents_would_not_fit_is_refused_while_nobody_has_joined(
    tmp_path: Path, whole: None
) -> None:
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


async def test_lint_and_publishing_name_the_number_to_lower(
    tmp_path: Path, whole: None
) -> None:
    text = study_text(maximum=1_000_000)
    [fault] = lint_text(text).faults
    assert fault.startswith("cohort.maximum = 1000000: a document of this study could have") and "64.0 MiB" in fault
    async with make_app(tmp_path / "home", Clock()) as app:
        with pytest.raises(TooLong) as refused:
            await app.create_study(parse_proposal(text))
        assert str(refused.value) == fault and not app.studies()
        fits = int(re.search(r"cohort\.maximum = (\d+) or lower", fault)[1])  # type: ignore[index]
        assert largest_cohort(await app.create_study(parse_proposal(study_text(maximum=fits)))) == fits > 10_000


async def test_a_study_of_an_earlier_version_admits_as_many_as_its_documents_have_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its maximum was not checked: everybody's enrolment was lost with a roster that nobody reads."""
    monkeypatch.setattr(aggregator.intake.enrolments, "largest_cohort", lambda _: 2)
    async with in_memory(tmp_path / "home", study_text()) as running:
        await running.enrol(2)
        third = FakePeer(running.live.manifest, running.invites[2].code)
        assert await running.live.enrol(third.sealed_enrolment()) == "roster-full"


@pytest.mark.slow
async def test_a_roster_that_is_too_long_ends_its_study_in_words_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is signed; the home opens again, and what was published stands."""
    allowed = aggregator.rules.lengths.longest_body
    async with in_memory(tmp_path / "home", study_text()) as long:
        await long.enrol(2)
        other = await begin(long.app, long.clock, study_text())
        study = long.live.study
        monkeypatch.setattr(
            aggregator.rules.lengths,
            "longest_body",
            lambda manifest, kind, part=0: 50 if manifest.study_id == study else allowed(manifest, kind, part),
        )
        long.clock.seconds = long.live.manifest.timetable.enrol_closes
        await long.app.tick()
        assert "not signed" in long.live.trouble and "cohort.maximum" in long.live.trouble
        assert other.live.phase is Phase.ABANDONED  # nobody joined: it went its way
        assert long.live.fault is not None and not long.live.fault.is_due(2**40, 2**40), "repeating is of no use"
    async with make_app(tmp_path / "home", long.clock) as app:
        await app.tick()
        [told] = [one for one in await app.status() if one.study == study]
        assert "roster 0 would have" in told.fault and str(told.enrolled) == "fewer than 50" and told.documents == 1
        assert [signed.head.kind for signed in app.study(study).chain] == ["manifest"]


def test_no_head_of_a_document_that_no_reader_takes_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it comes from: the one place that signs heads looks too."""
    monkeypatch.setattr(anon.transparency.documents, "MAX_BODY", 100)
    key = SigningKey(bytes(32))
    assert sign_head(key, bytes(32), [], "report", 0, bytes(100)).head.length == 100
    with pytest.raises(ValueError, match="not signed"):
        sign_head(key, bytes(32), [], "report", 0, bytes(101))


async def test_a_document_that_is_too_long_is_not_signed_and_is_tried_once(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text()) as running:
        with pytest.raises(TooLong, match="not signed"):
            await running.live.publish("roster", 0, bytes(MAX_BODY + 1))
        with pytest.raises(TooLong, match="not signed"):  # far less than 64 MiB, and more than this cohort needs
            await running.live.publish("roster", 0, bytes(200_000))
        assert not has(running.live, "roster") and len(await running.app._tools.studies.chain(running.live.study)) == 1
