"""Faults of making packets that were planted once and went unnoticed: too late, unchecked, of answers, or barred."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from anon.errors import Conflict, Malformed, RejectedProof
from anon.ldp import NanoEpsilon
from anon.protocols.contract import DocumentArrived
from anon.study.manifest import Window
from anon.transparency.documents import SignedHead
from anon.wire.packets import SealedPacket
from peer.data.evaluate import at_once, missing
from peer.protocols.contract import part_of
from peer.release import ReleasedPacket
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.run.departures import DepartureTimes
from peer.run.packets import making
from peer.run.packets.making import (
    MissingAnswer,
    PacketInputs,
    answer,
    documents_of,
    first_cover,
    go_on_without,
    surveys_in,
    without_answers,
)
from peer.run.plan import places_in
from peer.store.records import AnsweringStudy, DecidedStudy, EvaluatingStudy, Evaluation
from tests.peer.test_peer_plan import COVERED, CUT
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator
from tests.support.stored_member import CREDENTIAL, StoredMember


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The first random bytes of each packet that is finished. A stored member has no credential to finish it with."""
    found = list[bytes]()

    def released(
        _study: object, _manifest: object, wish: Any, _credential: object, random_bytes: Any
    ) -> ReleasedPacket:
        found.append(random_bytes(16))
        return ReleasedPacket(wish.slot, wish.survey, NanoEpsilon(0), SealedPacket(b"sealed"), b"digest")

    monkeypatch.setattr(making, "credential_of", lambda _study, _secrets: CREDENTIAL)
    monkeypatch.setattr(making, "release", released)
    return found


class Documents:
    """Exchanges in which every document arrives, with this body."""

    def __init__(self, body: bytes = b"") -> None:
        self._body = body

    async def chain(self, _study: object) -> list[SignedHead]:
        return []

    async def document(self, _study: object, _chain: object, kind: str, part: int) -> DocumentArrived:
        return DocumentArrived(kind, part, self._body)


def answering(folder: Path, text: str, kind: str) -> tuple[StoredMember, Window]:
    """A member that drew a survey of this kind and has decided nothing; the study's last window, which is now."""
    aggregator = FakeAggregator.with_study(text)
    draw = next(survey.survey for survey in aggregator.manifest.surveys if survey.kind == kind)
    window = max(aggregator.manifest.windows, key=lambda one: one.opens)
    aggregator.clock.seconds = float(window.opens)
    return StoredMember.checked(folder, aggregator, (draw,)).evaluated(), window


async def asked(stored: StoredMember, window: Window, body: bytes = b"") -> None:
    exchanges: Any = Documents(body)
    await answer(stored.run, exchanges, stored.study, window)


# A later window


@pytest.mark.parametrize(("left", "begun"), [(60.5, True), (59.5, False)])
async def test_a_packet_that_would_be_ready_after_its_window_is_not_begun(
    tmp_path: Path, left: float, begun: bool
) -> None:
    """Making it takes a minute here, whatever it takes."""
    stored, window = answering(tmp_path, DECLARED, "histogram")
    stored.aggregator.clock.seconds = window.closes - stored.aggregator.manifest.timetable.margin - left
    works = list[float]()

    async def evaluate(work: Any, seconds: float) -> bytes:
        works.append(seconds)
        return await at_once(work, seconds)

    await asked(stored.working(evaluate), window)
    (packet,) = stored.packets
    assert (packet.status, len(works)) == ((Status.QUEUED, 1) if begun else (Status.MISSED, 0))
    assert (stored.run.memory.ready > 0) is begun


@pytest.mark.parametrize("kind", ["quantile", "histogram"])
async def test_a_document_that_does_not_verify_ends_the_study_whatever_was_drawn(tmp_path: Path, kind: str) -> None:
    """A peer that answers nothing in the window reads it too: to go on would tell the draw."""
    stored, window = answering(tmp_path, BINNED, kind)
    manifest = stored.aggregator.manifest
    assert documents_of(manifest, surveys_in(manifest, window)) == [("edges", 0)]
    await asked(stored, window, b"no edges")
    assert stored.store.state(manifest.study_id) is State.STOPPED
    assert [packet for packet in stored.packets if packet.sealed is not None] == []


@pytest.mark.parametrize("fault", [Malformed, RejectedProof, IndexError, TypeError])
async def test_what_a_protocol_refuses_of_its_documents_ends_the_study_before_any_answer_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    """Both protocols refuse once more when they answer: this check would hold alone."""
    stored, window = answering(tmp_path, BINNED, "histogram")
    seen = list[DocumentArrived]()

    def refuse(_part: object, _manifest: object, documents: tuple[DocumentArrived, ...]) -> None:
        seen.extend(documents)
        raise fault("no edges of ours")

    monkeypatch.setattr(type(part_of(stored.aggregator.manifest)), "check_documents", refuse)
    monkeypatch.setattr(making, "without_answers", lambda _inputs: MissingAnswer({}, b""))
    await asked(stored, window, b"edges")
    assert seen == [DocumentArrived("edges", 0, b"edges")] and stored.packets == []
    assert stored.store.state(stored.aggregator.study) is State.STOPPED


async def test_a_slot_whose_answers_are_erased_is_not_answered(tmp_path: Path) -> None:
    stored, window = answering(tmp_path, DECLARED, "histogram")
    study = stored.study
    assert isinstance(study, AnsweringStudy)
    erased = DecidedStudy(**{name: getattr(study, name) for name in attrs.fields_dict(DecidedStudy)})
    exchanges: Any = Documents()
    with pytest.raises(Conflict, match="erased"):
        await answer(stored.working(at_once).run, exchanges, erased, window)
    assert stored.packets == []


# A start that was broken off


async def broken_off(folder: Path, barred: bool = False) -> tuple[StoredMember, EvaluatingStudy]:
    """A member whose making had begun, once it went on; and the study as it was then."""
    stored = StoredMember.checked(folder, FakeAggregator.with_study(DECLARED))
    manifest = stored.aggregator.manifest
    inputs = PacketInputs(manifest, stored.secrets, CREDENTIAL, b"seed", [(0, 0)])
    evaluation = Evaluation(1.0, {0: manifest.windows[0].opens + 100.0}, without_answers(inputs).message)
    stored.evaluated().store.record_answering(manifest.study_id, evaluation)
    study = stored.study
    assert isinstance(study, EvaluatingStudy)
    await go_on_without(stored.run, attrs.evolve(study, barred=barred))
    return stored, study


async def test_after_a_crash_the_missing_answer_has_random_bytes_of_its_own(tmp_path: Path, taken: list[bytes]) -> None:
    """Those that stand on the answers are for the packet that the crash may have left of them."""
    stored, study = await broken_off(tmp_path)
    inputs = PacketInputs(study.manifest, stored.secrets, CREDENTIAL, study.seed, [(0, 0)])
    assert taken == [inputs.drawn(0, 0)(16)]
    assert study.snapshot is not None and study.snapshot != missing(study.manifest)
    for answers in (study.snapshot, missing(study.manifest)):
        assert taken != [inputs.drawn(0, 0, answers)(16)]


@pytest.mark.parametrize(("barred", "status"), [(False, Status.QUEUED), (True, Status.MISSED)])
async def test_after_a_crash_a_barred_study_sends_nothing(
    tmp_path: Path, taken: list[bytes], barred: bool, status: Status
) -> None:
    stored, _study = await broken_off(tmp_path, barred)
    assert ([packet.status for packet in stored.packets], len(taken)) == ([status], int(not barred))


# Cover


@pytest.mark.parametrize("text", [DECLARED + COVERED, PAPER + COVERED, BINNED, CUT])
def test_every_window_that_waits_for_no_document_is_filled_and_no_other(text: str) -> None:
    manifest = FakeAggregator.with_study(text).manifest
    run: Any = SimpleNamespace(
        departure_times=lambda known, since: DepartureTimes(known, since, 0.0, Random(1).randbytes)
    )
    cover = first_cover(run, manifest, (), 0.0)
    waits = {window: bool(documents_of(manifest, surveys_in(manifest, window))) for window in manifest.windows}
    filled = [manifest.survey(one.survey).window for one in cover]
    assert {window: filled.count(window) for window in waits} == {
        window: 0 if later else places_in(manifest, window) for window, later in waits.items()
    }
    assert cover and all((one.sealed is not None) is bool(manifest.cover.connections) for one in cover)
