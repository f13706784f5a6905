"""A running study's packets counted a piece at a time: those of signed transcripts in worker processes, and until there
are some those of the store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping

from aggregator.intake.workers import Workers
from aggregator.protocols.contract import AggregatorPart
from aggregator.protocols.tally import Tally
from aggregator.study.learn import Counting, TranscriptCounts, count
from anon.study.manifest import Manifest, Survey
from anon.transparency.bucketed import published
from anon.wire.packets import parse_published

_BYTES = 1 << 20
"""Of transcripts in one piece of work, at least: about three buckets."""
_PIECES = 4
"""Of work under way at once."""


async def count_all(workers: Workers, asked: Counting, bodies: AsyncIterator[bytes]) -> TranscriptCounts:
    """The counts in all these buckets of transcripts. Raises `Malformed`."""
    found, waiting = count(asked, ()), list[list[bytes]]()

    async def flushed() -> TranscriptCounts:
        parts = await asyncio.gather(*(workers.run(count, asked, piece) for piece in waiting))
        waiting.clear()
        return sum(parts, start=found)

    async for body in bodies:
        if not waiting or sum(map(len, waiting[-1])) >= _BYTES:
            if len(waiting) == _PIECES:
                found = await flushed()
            waiting.append([])
        waiting[-1].append(body)
    return await flushed()


async def accepted_in(manifest: Manifest, bodies: AsyncIterator[bytes]) -> Mapping[int, int]:
    """How many packets each survey has in these buckets of transcripts. In a thread: who looks at a study starts no
    worker. Raises `Malformed`."""
    found = Counter({survey.survey: 0 for survey in manifest.surveys})
    async for body in bodies:
        found.update((await asyncio.to_thread(published, manifest, [body])).accepted)
    return found


async def tally_all(
    part: AggregatorPart, manifest: Manifest, survey: Survey, pages: AsyncIterator[tuple[bytes, ...]]
) -> Tally:
    """The tally of a survey's stored packets, before the score value is revealed."""

    def tally(plaintexts: tuple[bytes, ...]) -> Tally:
        return part.tally(manifest, survey, [parse_published(plaintext) for plaintext in plaintexts], b"")

    found = tally(())
    async for plaintexts in pages:
        found = found + await asyncio.to_thread(tally, plaintexts)
    return found
