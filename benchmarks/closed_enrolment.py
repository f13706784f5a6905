"""The members of a study in this process, once its enrolment is closed, each with its credential."""

from __future__ import annotations

from aggregator.study.live import LiveStudy
from anon.transparency.documents import find
from anon.wire.messages import RosterEntry, parse_credentials, parse_roster


async def members_of(live: LiveStudy) -> list[tuple[RosterEntry, bytes]]:
    """In the order of the roster's buckets. Raises `RuntimeError` before there are credentials."""
    roster, credentials = find(live.chain, "roster"), find(live.chain, "credentials")
    if roster is None or credentials is None:
        raise RuntimeError("no credentials")
    found, issued = list[tuple[RosterEntry, bytes]](), live.contents(credentials)
    async for _bucket, content in live.contents(roster):
        entries = parse_roster(content, live.study)
        signatures = parse_credentials((await anext(issued))[1], live.study, len(entries))
        found += zip(entries, signatures, strict=True)
    return found
