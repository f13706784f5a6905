"""Carries a study from phase to phase: asks `aggregator.rules.lifecycle` what is due and performs its
effects, each of them idempotent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from aggregator.protocols.contract import EndingPart
from aggregator.rules.faults import NoSum
from aggregator.rules.lifecycle import Effect, Event, Phase, due, due_though_stuck, step, turn_after
from aggregator.store.home import ERASED
from aggregator.store.packets import in_words, slot_of
from aggregator.store.studies import Progress
from aggregator.study.bucketing import credentials_buckets, publish_in_buckets, roster_buckets, transcript_buckets
from aggregator.study.learn import counted, learn_from_counts, too_few_wrote
from aggregator.study.live import LiveStudy, Tools
from aggregator.study.sums import ROUND_ENDS, meeting_tellers, publish_no_sum, publish_sums
from anon.protocols.registry import protocol_of
from anon.sharing.round_document import Why
from anon.study.manifest import Survey
from anon.transparency.documents import find
from anon.wire.messages import encode_abandoned, encode_seed

_NAMED = 20
"""Damaged packets that one line of the log names; the desk and the report name all."""
_LOG = logging.getLogger(__name__)


async def advance(study: LiveStudy) -> bool:
    """Perform the next due transition, if any. True when there was one."""
    enrolled = 0
    if study.phase is Phase.ENROLLING and study.tools.now() >= study.manifest.timetable.enrol_closes:
        # Enrolments that came in time count, also while their proofs are being checked.
        await study.enrolment_intake.close()
        await study.tools.studies.freeze(study.study, study.manifest.timetable.enrol_closes)
        enrolled = await study.tools.enrolments.count(study.study)
    windows = [study_round.window for study_round in study.rounds]
    event = due(study.manifest, windows, study.phase, study.turn, enrolled, study.tools.now())
    event = await meeting_tellers(study, event, lambda: _fix_packets(study))
    event = await _meeting_board(study, event)
    if event is None:
        return False
    await _perform(study, event)
    return True


async def _meeting_board(study: LiveStudy, event: Event | None) -> Event | None:
    """The same event; the study's end where too few wrote in the round that is over."""
    part = study.protocol_part
    if event not in ROUND_ENDS or not isinstance(part, EndingPart):
        return event
    await freeze_round(study)
    await publish_counts(study)
    documents = await study.round_documents()
    asked = study.manifest_bytes, study.tools.protocols, study.turn, documents
    if not await study.tools.workers.run(too_few_wrote, *asked):
        return event
    study.no_sum = NoSum(study.turn, Why.TOO_FEW)
    return Event.NO_SUM


async def erase_stuck(study: LiveStudy) -> bool:
    """Erase a study that cannot go on, once its retention has passed. True when that was due."""
    event = due_though_stuck(study.manifest, study.phase, study.tools.now())
    if event is None:
        return False
    await _perform(study, event)
    return True


async def erase_unread(tools: Tools, progress: Progress) -> bool:
    """The same for a study that cannot be loaded, such as one whose keys are lost. Raises where its manifest or its
    signed heads cannot be read: those say when it is due, and which documents show packets."""
    manifest = await tools.studies.body(progress.study, 0)
    if manifest is None:
        return False
    study = LiveStudy(tools, progress, manifest, ERASED)
    try:
        await study.refresh()
        return await erase_stuck(study)
    finally:
        await study.stop()


async def _perform(study: LiveStudy, event: Event) -> None:
    phase, effects = step(study.phase, event)
    for effect in effects:
        await _EFFECTS[effect](study)
    await study.reach(phase, turn_after(study.turn, event))
    if phase is Phase.ERASED:  # last, since a study that is not erased is loaded with its keys
        study.tools.home.erase_secrets(study.study)


async def publish_abandoned(study: LiveStudy) -> None:
    """Too few enrolled: say so; nothing else happens."""
    await study.enrolment_intake.close()
    enrolled = await study.tools.enrolments.count(study.study)
    await study.publish("abandoned", 0, encode_abandoned(study.study, enrolled))


async def publish_roster(study: LiveStudy) -> None:
    """Freeze the roster and sign its head."""
    await study.enrolment_intake.close()
    keys = await study.tools.enrolments.keys(study.study)
    if keys.damaged:
        _LOG.error(
            "study %s: %d stored enrolments are damaged and not in the roster (keys %s). The study goes on without "
            "them. Check this machine's disk and memory, and keep backups elsewhere",
            study.study.hex()[:8],
            len(keys.damaged),
            ", ".join(f"{key[:4].hex()}…" for key in keys.damaged[:_NAMED]),
        )
    await publish_in_buckets(study, "roster", 0, roster_buckets(study, keys.sound))
    study.open_packet_intake(await _body(study, "roster"))
    await study.count_rostered()


async def reveal_seed(study: LiveStudy) -> None:
    """Open the manifest's commitment. The roster's head is durable by now, so nobody could choose it by the seed."""
    await study.publish("seed", 0, encode_seed(study.study, study.secrets.seed_value))


async def issue_credentials(study: LiveStudy) -> None:
    """Issue one credential per roster entry, in the roster's order. Deterministic."""
    issued = study.packet_intake.issued
    if issued is None:
        raise AssertionError("credentials before the roster")
    await publish_in_buckets(study, "credentials", 0, credentials_buckets(study, issued))


async def freeze_round(study: LiveStudy) -> None:
    """No packet of the round is accepted any more."""
    await _freeze(study, study.rounds[study.turn].window.closes)


async def publish_counts(study: LiveStudy) -> None:
    """The protocol's document after the round, if it has one."""
    if study.tellers is not None:
        return await publish_sums(study, study.tellers)
    closed = study.rounds[study.turn]
    if closed.document is None:
        return
    surveys = [study.manifest.survey(number) for number in closed.surveys]
    await _leave_out(study, surveys)
    if any(survey.written for survey in surveys):
        return await publish_page(study, surveys)
    tallies = {survey.survey: await study.tally_of(survey.survey) for survey in surveys}
    body = await asyncio.to_thread(counted, study.protocol_part, study.manifest, study.turn, tallies)
    await study.publish(*closed.document, body)
    await study.tools.packets.erase_shares(study.study, [slot_of(study.manifest, number) for number in closed.surveys])


async def publish_page(study: LiveStudy, surveys: Sequence[Survey]) -> None:
    """Publish the page of the round; then the answer of the aggregator's own seat to it, if it has one."""
    from aggregator.study.seat import seat_document  # late: studies without letters load nothing of them
    from anon.protocols.board import page_body, page_of

    closed = study.rounds[study.turn]
    packets = [
        packet
        for survey in surveys
        if survey.written
        async for some in study.tools.packets.pages_of(study.study, study.slot_of(survey.survey), survey.survey)
        for packet in some
    ]
    await study.publish(*page_of(study.turn), page_body(study.study, study.turn, packets))
    if closed.seat is not None and find(study.chain, *closed.seat) is None:
        body = await asyncio.to_thread(seat_document, study, study.turn, await study.round_documents())
        await study.publish(*closed.seat, body)


async def freeze_last_round(study: LiveStudy) -> None:
    """No packet is accepted any more; its rows are rewritten in key order."""
    await freeze_round(study)
    await study.tools.packets.compact(study.study)


async def publish_transcripts(study: LiveStudy) -> None:
    """Every accepted packet, per slot. A row that is damaged by now is left out of all that follows. A signed
    transcript is the truth, whatever becomes of the rows that it was made of."""
    unpublished = [
        survey
        for survey in study.manifest.surveys
        if not find(study.chain, "transcript", study.slot_of(survey.survey))
    ]
    await _leave_out(study, unpublished)
    for slot in study.manifest.slots:
        await publish_in_buckets(study, "transcript", slot.slot, transcript_buckets(study, slot.slot))


async def reveal_score_value(study: LiveStudy) -> None:
    """Open what the seed value commits to: it draws the score cohort, and nobody could aim at it before."""
    await study.publish("seed", 1, encode_seed(study.study, study.secrets.score_value))


async def publish_model(study: LiveStudy) -> None:
    """Learn from the published documents and nothing else; publish the results and their report, which comes last."""
    if find(study.chain, "report"):
        return
    documents = await study.round_documents()
    found = await study.counted()
    if found is None:
        raise AssertionError("a model before the transcripts")  # a fault of ours: the table orders the effects
    traffic = await study.traffic()
    run, protocols = study.tools.workers.run, study.tools.protocols
    results, report = await run(learn_from_counts, study.manifest_bytes, protocols, documents, found, traffic)
    for place in protocol_of(study.manifest).results(study.manifest):
        await study.publish(*place, results[place])
    await study.publish("report", 0, report)


async def erase(study: LiveStudy) -> None:
    """The retention is over: packets, enrolments and transcripts go; heads, model and report stay."""
    await study.tools.packets.erase(study.study)
    await study.tools.enrolments.erase(study.study)
    for own in (study.study,) if study.tellers is None else study.tellers.ids:
        await study.tools.lists.erase(own)
    await study.erase_transcripts()
    await study.tools.answers.erase(study.study)
    await study.tools.packets.compact(study.study)


async def _fix_packets(study: LiveStudy) -> None:
    """Before anything is shown to a teller: no packet of the round comes any more, and no damaged one is counted."""
    await freeze_round(study)
    await _leave_out(study, [study.manifest.survey(number) for number in study.rounds[study.turn].surveys])


async def _freeze(study: LiveStudy, closes: int) -> None:
    await study.packet_intake.drain()
    await study.tools.studies.freeze(study.study, closes)
    study.packet_intake.frozen_until = max(study.packet_intake.frozen_until, closes)
    await study.packet_intake.drain()


async def _body(study: LiveStudy, kind: str, part: int = 0) -> bytes:
    head = find(study.chain, kind, part)
    if head is None:
        raise AssertionError(f"{kind} {part}: not published yet")  # a fault of ours: the table orders the effects
    return await study.body_of(head)


async def _leave_out(study: LiveStudy, surveys: Sequence[Survey]) -> None:
    unsigned = not any(signed.head.kind == "transcript" for signed in study.chain)  # a stray may be in a signed one
    numbers = [survey.survey for survey in surveys]
    fresh = await study.tools.packets.leave_out(study.study, study.manifest, numbers, strays=unsigned)
    if fresh:
        named = "; ".join(map(in_words, fresh[:_NAMED]))
        _LOG.error(
            "study %s: %d stored packets are damaged and left out of transcripts, counts and model (%s%s). The study "
            "goes on without them. Check this machine's disk and memory, and keep backups elsewhere",
            study.study.hex()[:8],
            len(fresh),
            named,
            "; …" if len(fresh) > _NAMED else "",
        )


_EFFECTS: dict[Effect, Callable[[LiveStudy], Awaitable[None]]] = {
    Effect.PUBLISH_ABANDONED: publish_abandoned,
    Effect.PUBLISH_ROSTER: publish_roster,
    Effect.REVEAL_SEED: reveal_seed,
    Effect.ISSUE_CREDENTIALS: issue_credentials,
    Effect.FREEZE_ROUND: freeze_round,
    Effect.PUBLISH_COUNTS: publish_counts,
    Effect.PUBLISH_NO_SUM: publish_no_sum,
    Effect.FREEZE_LAST_ROUND: freeze_last_round,
    Effect.PUBLISH_TRANSCRIPTS: publish_transcripts,
    Effect.REVEAL_SCORE_VALUE: reveal_score_value,
    Effect.PUBLISH_MODEL: publish_model,
    Effect.ERASE: erase,
}
