"""A running study written out as a folder, from its store: one bucket in memory at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aggregator.audit.folder import export, export_bucket
from aggregator.study.live import LiveStudy


async def export_study(live: LiveStudy, directory: Path) -> dict[str, int]:
    """Write everything that a study has published into a new directory: how many documents there are of each kind.

    Raises `Refused` when the directory exists, and `Damaged` for a document that is not what was signed.
    """
    bodies = {signed.head.number: await live.document(signed.head.number) for signed in live.chain}
    there = {number: body for number, body in bodies.items() if body is not None}
    written = await asyncio.to_thread(export, live.manifest, live.chain, there, directory)
    for signed in live.chain:
        async for bucket, content in live.contents(signed.head):
            await asyncio.to_thread(export_bucket, directory, signed.head.number, bucket, content)
    return written
