"""The only exit. What leaves this machine about its owner's data is made here and nowhere else.

    RawCategory --mechanism.perturb--> PerturbedReport --token, padding, seal--> SealedPacket --journal--> outbox

Each arrow takes one type and gives the next: a packet can only be built from a `PerturbedReport`, which only a
mechanism makes, and the client only takes a `SealedPacket`. The order of events is kept by `peer.store`: charge and
finished packet are committed together before the first byte leaves, retries send the same bytes, and a slot that is in
the outbox is never perturbed again.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, frozen

from anon import labels
from anon.credential import Credential, present, token_size
from anon.encoding import sha256
from anon.ldp import NanoEpsilon, PerturbedReport
from anon.messages import Packet, SealedPacket, packet_size, pad, presentation_header, seal
from anon.protocols.contract import Answering
from anon.protocols.histogram.tables import slot_context
from anon.study.manifest import Manifest

RandomBytes = Callable[[int], bytes]


@frozen
class Released:
    """A finished packet and what it costs (1e-9). `digest` is of its plaintext, to find it in the transcript."""

    slot: int
    survey: int
    epsilon: NanoEpsilon
    sealed: SealedPacket
    digest: bytes = field(repr=False)


def release(
    study: bytes, manifest: Manifest, answering: Answering, credential: Credential, random_bytes: RandomBytes
) -> Released:
    """Perturb the answer and finish its packet. `study` is the manifest's id; `random_bytes` the operating system's.

    Nothing has left yet: give the result to `Store.journal`. Raises `ValueError` for a category of another survey.
    """
    survey = manifest.survey(answering.survey)
    report = survey.build().perturb(answering.category, random_bytes)
    packet = _signed(study, answering, report, credential, random_bytes)
    return Released(
        answering.slot, answering.survey, NanoEpsilon(survey.epsilon), _sealed(manifest, packet), packet_digest(packet)
    )


def packet_digest(packet: Packet) -> bytes:
    """The digest of a packet's canonical plaintext, 32 bytes."""
    return sha256(labels.PACKET_DIGEST, packet.to_bytes())


def _signed(
    study: bytes, answering: Answering, report: PerturbedReport, credential: Credential, random_bytes: RandomBytes
) -> Packet:
    slot, survey = answering.slot, answering.survey
    header = presentation_header(study, slot, survey, bytes(report))
    token = present(credential, slot_context(study, slot), header, random_bytes)
    return Packet(study, slot, survey, bytes(report), token)


def _sealed(manifest: Manifest, packet: Packet) -> SealedPacket:
    size = packet_size(manifest.report_size, token_size(manifest.packets))
    return SealedPacket(seal(pad(packet.to_bytes(), size), manifest.sealing_key))
