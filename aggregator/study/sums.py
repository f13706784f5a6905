"""A study with tellers: what the clockwork of `effects` waits for, and when it waits no longer.

A round is over once its sums are there. Until then the study stays in it: a teller that is away or refuses is asked
again ever more rarely. It may come back until the next round opens, and after the last round for half of the retention:
as long as that the sealed shares are kept, and members can still look at what is published.

Where the tellers have a spare, the first pair alone is asked for half of that time, and for a day at most
(`is_patient`). From then on the first pair that answers makes the sum.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from itertools import chain

from aggregator.rules.faults import NoSum, TellerAway, TellerRefuses
from aggregator.rules.lifecycle import Event, Phase
from aggregator.study.live import LiveStudy
from aggregator.tellers.study_tellers import StudyTellers
from anon.errors import AnonmlError
from anon.sharing.round_document import UnsummedRound, Why
from anon.transparency.closing import CLOSING, Bodies
from anon.transparency.documents import find

ROUND_ENDS = frozenset({Event.ROUND_CLOSED, Event.LAST_ROUND_CLOSED})
_UNDER_WAY = frozenset({Phase.SETTLING, Phase.ROUND})
_OVER = frozenset({Phase.PUBLISHED, Phase.ABANDONED, Phase.ENDED})
FixPackets = Callable[[], Awaitable[None]]
MOST_PATIENCE = 86_400.0
"""Seconds that a round waits for the first pair, where the tellers have a spare."""
_FINISH_PAUSE = 300.0
_LOG = logging.getLogger(__name__)


async def meeting_tellers(study: LiveStudy, event: Event | None, fix_packets: FixPackets) -> Event | None:
    """The event that happens now, given the one that is due by the clock; None while the tellers are waited for.

    `fix_packets`: from then on the round's packets stay as they are. Raises `TellerAway` and `TellerRefuses` while
    there is time to ask again.
    """
    tellers = study.tellers
    if tellers is None:
        return event
    if event is not None and event in ROUND_ENDS:
        return await _round_end(study, tellers, event, fix_packets)
    if event is None and study.phase in _UNDER_WAY and (tellers.job.waits or not tellers.rolled):
        await tellers.job.done("roll", lambda: _hand_roll(study, tellers))
    return event


async def _round_end(
    study: LiveStudy, tellers: StudyTellers, event: Event, fix_packets: FixPackets
) -> Event | None:
    place = study.rounds[study.turn].document
    if find(study.chain, "unsummed") is not None:
        return Event.NO_SUM
    made = study.turn in tellers.summed or (place is not None and find(study.chain, *place) is not None)
    if made and not tellers.job.waits:
        return event
    try:
        done = await tellers.job.done(f"round {study.turn}", lambda: _sum_round(study, tellers, fix_packets))
    except NoSum as ended:
        study.no_sum = ended
    except (TellerAway, TellerRefuses) as trouble:
        if study.tools.now() < patience(study):
            raise
        why = Why.AWAY if isinstance(trouble, TellerAway) else Why.REFUSED
        study.no_sum = NoSum(_round_of(study), why, said=str(trouble))
    else:
        return event if done else None
    return Event.NO_SUM


def patience(study: LiveStudy) -> float:
    """Until when the present round waits for its tellers, in unix seconds."""
    if study.turn + 1 < len(study.rounds):
        return study.rounds[study.turn + 1].window.opens
    return study.manifest.timetable.ends + study.manifest.release.retention / 2


def is_patient(study: LiveStudy) -> bool:
    """True while the present round waits for the first pair of its tellers, and asks no other."""
    closed = study.rounds[study.turn].window.closes
    return study.tools.now() < closed + min((patience(study) - closed) / 2, MOST_PATIENCE)


async def publish_no_sum(study: LiveStudy) -> None:
    """Say why there is no sum, with the evidence; nothing else follows. Sealed shares go at once."""
    if find(study.chain, "unsummed") is None:
        ended = study.no_sum
        if ended is None:
            raise AssertionError("an end without a reason")
        document = UnsummedRound(study.study, ended.round, ended.why, ended.evidence)
        await study.publish("unsummed", 0, document.to_bytes())
        _LOG.error("study %s: %s", study.study.hex()[:8], ended)
    await study.read_end()
    await study.tools.packets.erase_shares(study.study, [slot.slot for slot in study.manifest.slots])


async def publish_sums(study: LiveStudy, tellers: StudyTellers) -> None:
    """The document of the round; then its sealed shares go."""
    closed = study.rounds[study.turn]
    if closed.document is None:
        return
    if find(study.chain, *closed.document) is None:
        await study.publish(*closed.document, tellers.summed[study.turn])
    tellers.summed.pop(study.turn, None)
    await study.tools.packets.erase_shares(study.study, {study.slot_of(survey) for survey in closed.surveys})


async def finish_tellers(study: LiveStudy) -> None:
    """Once the study is over, tell its tellers. Raises nothing: one that is away is told later, and erases later."""
    tellers, now = study.tellers, study.tools.now()
    if tellers is None or study.phase not in _OVER or now < tellers.finish_again:
        return
    if tellers.finished and not tellers.job.waits:
        return
    try:
        await tellers.job.done("finish", tellers.finish)
    except AnonmlError as error:
        tellers.finish_again = now + _FINISH_PAUSE
        _LOG.warning("study %s is over: %s", study.study.hex()[:8], error)


async def _sum_round(study: LiveStudy, tellers: StudyTellers, fix_packets: FixPackets) -> None:
    await fix_packets()
    surveys = study.rounds[study.turn].surveys
    await tellers.sum_round(study.turn, surveys, study.heads(), await _closing(study), is_patient(study))


async def _hand_roll(study: LiveStudy, tellers: StudyTellers) -> None:
    if not tellers.rolled:
        await tellers.hand_roll(study.heads(), await _closing(study), patient=False)


async def _closing(study: LiveStudy) -> Bodies:
    heads = [head for kind in CLOSING if (head := find(study.chain, kind)) is not None]
    rosters, issued = [[content async for _bucket, content in study.contents(heads[place])] for place in (0, 2)]
    beside = chain.from_iterable(zip(rosters, issued, strict=True)) if len(rosters) > 1 else ()
    return Bodies(*[await study.body_of(head) for head in heads], beside=tuple(beside))


def _round_of(study: LiveStudy) -> int:
    return study.manifest.survey(study.rounds[study.turn].surveys[0]).round
