"""Looking for the own packets in the published transcripts, by downloading whole surveys."""

from __future__ import annotations

from anon import labels
from anon.encoding import decode, sha256
from anon.errors import AnonmlError
from peer.errands import Errands
from peer.records import Status, Study
from peer.schedule import (
    draw_fetch_time,
)


class Inclusion(Errands):
    """The errand after the last window."""

    def _inclusion_time(self, study: Study) -> float:
        manifest = study.manifest
        closed = max(survey.window.closes for survey in manifest.surveys)
        ends = manifest.timetable.ends
        return self._drawn(
            "include", lambda: draw_fetch_time(closed, ends, self._tools.now(), self._tools.random_bytes)
        )

    async def _include(self, study: Study) -> None:
        """Look for the own packets in the published transcripts, by downloading whole surveys."""
        delivered = [one for one in self._tools.store.outbox(self._study) if one.status is Status.DELIVERED]
        deadline = study.manifest.timetable.ends + self._tools.settings.inclusion_patience
        if not delivered:
            return self._tools.store.inclusion(self._study, {}, "nothing was delivered")
        if self._tools.now() >= deadline:
            return self._tools.store.inclusion(self._study, {}, "the transcript was not published in time")
        chain = await self._chain(study)
        found: dict[int, Status] = {}
        for packet in delivered:
            document = await self._document(study, chain, "transcript", packet.survey)
            listed = transcript_digests(document.body, study.study, packet.survey)
            found[packet.slot] = Status.INCLUDED if packet.digest in listed else Status.NOT_INCLUDED
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
