"""Looking for the own packets in the published transcripts, by downloading whole surveys."""

from __future__ import annotations

from anon import labels
from anon.encoding import decode, sha256
from anon.errors import AnonmlError
from peer.errands import Errands, Tools
from peer.records import Status, Study
from peer.schedule import (
    draw_fetch_time,
)


class Inclusion(Errands):
    """The errand after the last window."""

    def __init__(self, study: bytes, tools: Tools) -> None:
        super().__init__(study, tools)
        self._listed: dict[int, frozenset[bytes]] = {}

    def _inclusion_time(self, study: Study) -> float:
        manifest = study.manifest
        closed = max(survey.window.closes for survey in manifest.surveys)
        ends = manifest.timetable.ends
        return self._drawn(
            "include", lambda: draw_fetch_time(closed, ends, self._tools.now(), self._tools.random_bytes)
        )

    async def _include(self, study: Study) -> None:
        """Look for the own packets in the published transcripts, by downloading whole surveys: with cover traffic all
        of them, because which one a peer fetches would say which it answered."""
        manifest = study.manifest
        delivered = [one for one in self._tools.store.outbox(self._study) if one.status is Status.DELIVERED]
        covered = range(len(manifest.surveys)) if manifest.cover.connections else ()
        asked = sorted({*covered, *(one.survey for one in delivered)})
        deadline = manifest.timetable.ends + self._tools.settings.inclusion_patience
        if not asked:
            return self._tools.store.inclusion(self._study, {}, "nothing was delivered")
        if self._tools.now() >= deadline:
            return self._tools.store.inclusion(self._study, {}, "the transcript was not published in time")
        chain = await self._chain(study)
        for survey in asked:
            if survey not in self._listed:
                document = await self._document(study, chain, "transcript", survey)
                self._listed[survey] = transcript_digests(document.body, study.study, survey)
        found = {
            one.slot: Status.INCLUDED if one.digest in self._listed[one.survey] else Status.NOT_INCLUDED
            for one in delivered
        }
        return self._tools.store.inclusion(self._study, found, "")


def transcript_digests(body_untrusted: bytes, study: bytes, survey: int) -> frozenset[bytes]:
    """Digests of the packets in a transcript; empty for a body that is none, which then includes nothing."""
    try:
        body = decode(body_untrusted, "transcript")
        version, named, asked, packets = body
        fits = (version, named, asked) == (1, study, survey) and all(type(one) is bytes for one in packets)
    except (AnonmlError, TypeError, ValueError):
        return frozenset()
    return frozenset(sha256(labels.PACKET_DIGEST, one) for one in packets) if fits else frozenset()
