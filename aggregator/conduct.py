"""Carries a study from phase to phase: asks `session` what is due and performs its effects, each of them idempotent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aggregator.counters import Traffic
from aggregator.enrol import roster_entry
from aggregator.protocols.histogram import binning
from aggregator.session import Effect, Phase, collection, due, rounds, step, turn_after
from aggregator.study import LiveStudy
from aggregator.transcript import reports, transcript_body
from aggregator.work import issue
from anon.credential import signer_nym_entropy
from anon.documents import find
from anon.encoding import encode
from anon.fingerprint import head_prints
from anon.messages import (
    VERSION,
    credential_header,
    encode_credentials,
    encode_roster,
    encode_seed,
)
from anon.protocols.histogram import cuts
from anon.study.manifest import Survey

_ISSUED_AT_ONCE = 64


async def advance(study: LiveStudy) -> bool:
    """Perform the next due transition, if any. True when there was one."""
    if study.phase is Phase.ENROLLING and study.tools.now() >= study.manifest.timetable.enrol_closes:
        await study.registry.close()  # whoever came in time is counted, also while their proofs are being checked
    enrolled = await study.tools.enrolments.count(study.study)
    event = due(study.manifest, study.phase, study.turn, enrolled, study.tools.now())
    if event is None:
        return False
    phase, effects = step(study.phase, event)
    for effect in effects:
        await _EFFECTS[effect](study)
    turn = turn_after(study.turn, event)
    await study.tools.studies.move(study.study, phase, turn)
    study.phase, study.turn = phase, turn
    return True


async def publish_abandoned(study: LiveStudy) -> None:
    """Too few enrolled: say so; nothing else happens."""
    await study.registry.close()
    enrolled = await study.tools.enrolments.count(study.study)
    await study.publish("abandoned", 0, encode([VERSION, study.study, enrolled]))


async def publish_roster(study: LiveStudy) -> None:
    """Freeze the roster and sign its head."""
    await study.registry.close()
    entries = [roster_entry(one) for one in await study.tools.enrolments.roster(study.study)]
    await study.publish("roster", 0, encode_roster(study.study, entries))
    study.open_door(await _body(study, "roster"))


async def reveal_seed(study: LiveStudy) -> None:
    """Open the manifest's commitment. The roster's head is durable by now, so nobody could choose it by the seed."""
    await study.publish("seed", 0, encode_seed(study.study, study.secrets.seed_value))


async def issue_credentials(study: LiveStudy) -> None:
    """Issue one credential per roster entry, in the roster's order. Deterministic."""
    issued, manifest = study.door.issued, study.manifest
    if issued is None:
        raise AssertionError("credentials before the roster")
    header = credential_header(study.study, issued.roster_digest)
    roster = await study.tools.enrolments.roster(study.study)
    work = [(one.commitment, signer_nym_entropy(issued.seed, one.key)) for one in roster]
    parts = await asyncio.gather(
        *(
            study.tools.workers.run(
                issue,
                study.secrets.credential_key,
                manifest.credential_key,
                header,
                manifest.packets,
                work[start : start + _ISSUED_AT_ONCE],
            )
            for start in range(0, len(work), _ISSUED_AT_ONCE)
        )
    )
    signatures = [signature for part in parts for signature in part]
    await study.publish("credentials", 0, encode_credentials(study.study, signatures))


async def freeze_round(study: LiveStudy) -> None:
    """No packet of the round is accepted any more."""
    await _freeze(study, rounds(study.manifest)[study.turn].closes)


async def publish_answers(study: LiveStudy) -> None:
    """The round's counts, from which everyone computes the next thresholds, or after the last round the cuts."""
    surveys = cuts.surveys_of_round(study.manifest, study.turn)
    answers = {one.survey: await asyncio.to_thread(_count, one, await _packets(study, one)) for one in surveys}
    kind, part = cuts.place_of(study.manifest, study.turn)
    await study.publish(kind, part, cuts.body(study.manifest, study.turn, answers))


async def freeze_collection(study: LiveStudy) -> None:
    """No packet is accepted any more; the file is rewritten in key order."""
    window = collection(study.manifest)
    await _freeze(study, window.closes if window else study.manifest.timetable.ends)
    await study.tools.packets.compact()


async def publish_transcripts(study: LiveStudy) -> None:
    """Every accepted packet, per survey."""
    for survey in study.manifest.surveys:
        plaintexts = await _packets(study, survey)
        await study.publish("transcript", survey.survey, transcript_body(study.study, survey.survey, plaintexts))


async def reveal_score_value(study: LiveStudy) -> None:
    """Open what the seed value commits to: it draws the score cohort, and nobody could aim at it before."""
    await study.publish("seed", 1, encode_seed(study.study, study.secrets.score_value))


async def publish_model(study: LiveStudy) -> None:
    """Learn from the published documents and nothing else; publish the model and its report."""
    from aggregator.learning import learn_from_bytes  # late: a server starts and serves without scikit-learn

    if find(study.chain, "model") and find(study.chain, "report"):
        return
    thresholds = [await _body(study, "thresholds", turn) for turn in range(1, len(rounds(study.manifest)))]
    edges = await _body(study, "edges") if rounds(study.manifest) else None
    transcripts = [await _body(study, "transcript", one.survey) for one in study.manifest.surveys]
    traffic = Traffic(
        await study.tools.enrolments.count(study.study),
        study.enrolment_answers.exact(),
        study.packet_answers.exact(),
        tuple(one for one in head_prints(study.chain) if one.kind != "transcript"),
    )
    model, report = await study.tools.workers.run(
        learn_from_bytes, study.manifest_bytes, thresholds, edges, study.secrets.score_value, transcripts, traffic
    )
    await study.publish("model", 0, model)
    await study.publish("report", 0, report)


async def erase(study: LiveStudy) -> None:
    """The retention is over: packets, enrolments and transcripts go; heads, model and report stay."""
    await study.tools.packets.erase(study.study)
    await study.tools.enrolments.erase(study.study)
    await study.tools.studies.erase_bodies(study.study, "transcript")
    study.forget_bodies()
    await study.tools.packets.compact()


async def _freeze(study: LiveStudy, closes: int) -> None:
    await study.door.drain()
    await study.tools.studies.freeze(study.study, closes)
    study.door.frozen_until = max(study.door.frozen_until, closes)
    await study.door.drain()


async def _body(study: LiveStudy, kind: str, part: int = 0) -> bytes:
    head = find(study.chain, kind, part)
    if head is None:
        raise AssertionError(f"{kind} {part}: not published yet")
    return await study.body_of(head)


async def _packets(study: LiveStudy, survey: Survey) -> tuple[bytes, ...]:
    slot = next(s.slot for s in study.manifest.slots if any(row.survey == survey.survey for row in s.rows))
    return await study.tools.packets.of_survey(study.study, slot, survey.survey)


def _count(survey: Survey, plaintexts: tuple[bytes, ...]) -> cuts.Answers:
    return binning.count(survey, reports(plaintexts))


_EFFECTS: dict[Effect, Callable[[LiveStudy], Awaitable[None]]] = {
    Effect.PUBLISH_ABANDONED: publish_abandoned,
    Effect.PUBLISH_ROSTER: publish_roster,
    Effect.REVEAL_SEED: reveal_seed,
    Effect.ISSUE_CREDENTIALS: issue_credentials,
    Effect.FREEZE_ROUND: freeze_round,
    Effect.PUBLISH_THRESHOLDS: publish_answers,
    Effect.PUBLISH_EDGES: publish_answers,
    Effect.FREEZE_COLLECTION: freeze_collection,
    Effect.PUBLISH_TRANSCRIPTS: publish_transcripts,
    Effect.REVEAL_SCORE_VALUE: reveal_score_value,
    Effect.PUBLISH_MODEL: publish_model,
    Effect.ERASE: erase,
}
