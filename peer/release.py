"""The only exit. All that leaves this machine about its owner's data is made here and nowhere else.

    RawCategory --mechanism.perturb--> PerturbedReport --token, padding, seal--> SealedPacket --journal--> outbox
    OpenShares  --each sealed--> SealedShares          --token, padding, seal--> SealedPacket --journal--> outbox
    Writing     --each letter sealed--> WrittenReport  --token, padding, seal--> SealedPacket --journal--> outbox

The second line is for studies alone whose charge is not local: an exact vector leaves in shares, one to each of several
recipients (`anon.protocols.outgoing`). It was cut away from every key (`peer.data.making`). The third is for written
surveys: an open text, and letters to the seats of a circle (`anon.protocols.board`). All that is done here takes the
same work, whatever category, shares or letters hold.

This may leave for an aggregator. Packets alone hold anything of the data:

1. A packet (`release`): study, slot, survey, perturbed report or sealed shares, and token. It is padded to one size,
   and sealed.
2. Cover traffic, where the study has it (`dummy`): of the same size, made from the study alone.
3. The enrolment (`peer.run.enrol.sealed_enrolment`): a fresh key, a random contribution, a blind commitment, and a hash
   of the invite code.
4. A withdrawal, signed by that key (`peer.run.leaving`).
5. Requests for published documents (`peer.network.client`): they depend neither on the data nor on what was drawn.

A packet leaves only after these steps:

1. The owner consented to the study's epsilon (`peer.rules.consent`).
2. Roster and credentials were checked (`peer.rules.bucket_checks.check_membership`, called in `peer.run.verify`).
3. The features were evaluated once, and the protocol's part made categories or the shares of vectors of them, by a
   deadline (`peer.data.making`); what was not made by then is the missing answer.
4. `release` perturbed the category of a slot, or sealed the shares of its vector, and finished its packet. The
   mechanism is the survey's.
5. `peer.store.outbox` committed charge and finished packet together. Retries send the same bytes. A slot that is in the
   outbox is never perturbed again.
6. Its random time came, and the signed heads were looked at once more (`peer.run.plan`, `peer.run.send`).

Types hold the order. `release` has a `PerturbedReport` from a mechanism alone, and `SealedShares` from seals alone. The
client's `submit` takes a `SealedPacket` alone. The owner's page for a paired phone goes to no aggregator
(`peer.pairing`).

The random bytes of every slot are drawn once, when the owner joins (`random_sizes`, `SlotRandomness`), and are stored
with the study's secrets. So copies of a home, which cannot know of each other, make the same packet of the same answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import final

from attrs import evolve, field

from anon.credential import Credential, present, pseudonym
from anon.credential.issuance import SEED_SIZE
from anon.crypto import labels
from anon.crypto.sealing import SECRET_SIZE, seal
from anon.ldp import NanoEpsilon, PerturbedReport
from anon.protocols.charge import Measure
from anon.protocols.outgoing import (
    CutVector,
    OpenShares,
    Outgoing,
    SealedShares,
    SurveyAnswer,
    Writing,
    WrittenReport,
    written,
)
from anon.protocols.posts import sealed_dummy, sealed_packet
from anon.protocols.registry import charge_of
from anon.protocols.sortition import occasion_of, pseudonymous_slot, tag_context
from anon.study.manifest import Manifest, Survey, Window
from anon.values import frozen
from anon.wire.cbor import encode, sha256
from anon.wire.packets import Dummy, Packet, SealedPacket
from peer.protocols.contract import CorrespondingPart, PerturbingPart, SharingPart, part_of

RandomBytes = Callable[[int], bytes]
MASK_KEY_SIZE = 32


def random_sizes(manifest: Manifest) -> tuple[int, ...]:
    """The bytes to draw for every slot: what its dearest row and its token need, and a key for `SlotRandomness`. Of the
    first slot with letters a sealing secret too.

    They do not depend on which row the slot will draw, which nobody knows yet.
    """
    part = part_of(manifest)
    asked = [[manifest.survey(row.survey) for row in slot.rows] for slot in manifest.slots]
    most = [max(part.random_size(manifest, survey) for survey in surveys) for surveys in asked]
    sealing = [SECRET_SIZE if slot.slot == pseudonymous_slot(manifest) else 0 for slot in manifest.slots]
    return tuple(size + secret + SEED_SIZE + MASK_KEY_SIZE for size, secret in zip(most, sealing, strict=True))


@final
class SlotRandomness:
    """The random bytes of one slot, drawn by the operating system when the owner joined: gives each byte once.

    `stored` is what was drawn, a key at its end; `grounds` is all that the packet is made from: seed, roster, answers,
    documents. The missing answer holds nothing of the data; its grounds are seed and roster alone. The given bytes are
    the drawn bytes plus (xor) a mask that SHAKE-256 makes of key and grounds.

    * One packet: the drawn bytes are uniform and in no relation to the mask, so their sum is uniform whatever the mask
      is. The mechanism's promise rests on the operating system alone, never on SHAKE-256.
    * Two copies of a home and the same grounds: the same packet under its seal, byte for byte. Nothing is
      perturbed a second time. Of an exact vector the shares are the same, each under a seal of its own.
    * Two copies and other grounds (the aggregator told each another story, or the data of one were changed): as if
      drawn anew, as long as SHAKE-256 is a pseudorandom function. Without the mask both answers would be moved by the
      same noise, and their difference would be plain. `peer.store.backup.archive` keeps the answers of copies equal.

    The same grounds give the same bytes, and other grounds others; no byte is given twice:

    >>> from os import urandom
    >>> stored = urandom(8 + MASK_KEY_SIZE)
    >>> SlotRandomness(stored, b"answer 1")(8) == SlotRandomness(stored, b"answer 1")(8)
    True
    >>> SlotRandomness(stored, b"answer 1")(8) == SlotRandomness(stored, b"answer 2")(8)
    False
    """

    def __init__(self, stored: bytes, *grounds: bytes) -> None:
        drawn, key = stored[:-MASK_KEY_SIZE], stored[-MASK_KEY_SIZE:]
        # Canonical CBOR keeps the grounds apart: no two lists of them have the same bytes.
        mask = hashlib.shake_256(encode([labels.RELEASE_MASK, key, *grounds])).digest(len(drawn))
        self._left = bytes(byte ^ masked for byte, masked in zip(drawn, mask, strict=True))

    def __call__(self, size: int) -> bytes:
        """The next `size` bytes. Raises `ValueError` when fewer are left: none is ever given twice."""
        if size > len(self._left):
            raise ValueError(f"expected to be asked for at most {len(self._left)} random bytes, got {size}")
        given, self._left = self._left[:size], self._left[size:]
        return given


@frozen
class ReleasedPacket:
    """A finished packet and what it costs (1e-9). `digest` is of its published form, to find it in the transcript."""

    slot: int
    survey: int
    epsilon: NanoEpsilon
    sealed: SealedPacket
    digest: bytes = field(repr=False)
    round: int = 0


def release(
    study: bytes, manifest: Manifest, outgoing: Outgoing, credential: Credential, random_bytes: RandomBytes
) -> ReleasedPacket:
    """Protect the value that is to leave, and finish its packet. `study` is the manifest's id; `random_bytes` its
    slot's.

    Nothing has left yet: give the result to `Store.journal`. Raises `ValueError` for a value of another survey, and for
    an exact one where the study may not have it.
    """
    survey = manifest.survey(outgoing.survey)
    report = _protected(manifest, survey, outgoing, credential, random_bytes)
    packet = _signed(study, manifest, outgoing, report, credential, random_bytes)
    free = isinstance(outgoing, CutVector | Writing) and not outgoing.read
    return ReleasedPacket(
        outgoing.slot,
        outgoing.survey,
        NanoEpsilon(0 if free else survey.epsilon),
        sealed_packet(manifest, packet),
        packet_digest(packet),
        survey.round,
    )


def dummy(study: bytes, manifest: Manifest, window: Window) -> SealedPacket:
    """Cover traffic for a window: made from the study alone, of a packet's size. It says nothing about the owner."""
    return sealed_dummy(manifest, Dummy(study, window.opens, window.closes))


def packet_digest(packet: Packet) -> bytes:
    """The digest of a packet as its transcript will have it, 32 bytes."""
    return sha256(labels.PACKET_DIGEST, packet.published().to_bytes())


def _protected(
    manifest: Manifest, survey: Survey, outgoing: Outgoing, credential: Credential, random_bytes: RandomBytes
) -> PerturbedReport | SealedShares | WrittenReport:
    """The one place at which a raw value becomes one that may leave."""
    part = part_of(manifest)
    match outgoing:
        case SurveyAnswer(category=category) if isinstance(part, PerturbingPart) and not survey.exact:
            return part.perturb(survey, category, random_bytes)
        case CutVector(slot=slot, shares=shares) if isinstance(part, SharingPart) and survey.exact:
            return _shared(part, manifest, survey, slot, shares, credential)
        case Writing() if isinstance(part, CorrespondingPart) and survey.written:
            return _written(manifest, survey, outgoing, pseudonym(credential, tag_context(manifest, outgoing.slot)))
    raise ValueError("this study has no form in which such a value may leave; nothing is sent")


def _shared(
    part: SharingPart, manifest: Manifest, survey: Survey, slot: int, shares: OpenShares, credential: Credential
) -> SealedShares:
    if charge_of(manifest).measure is Measure.LOCAL:
        raise ValueError("only a study whose charge is not local adds up exact vectors; nothing is sent")
    return part.seal(manifest, survey, slot, shares, pseudonym(credential, tag_context(manifest, slot)))


def _written(manifest: Manifest, survey: Survey, writing: Writing, tag: bytes) -> WrittenReport:
    from anon.wire.letters import letter_info  # late: studies without letters load nothing of them

    study = manifest.study_id
    seals = [
        None if key is None else partial(seal, public_key=key, info=letter_info(study, survey.survey, tag, seat))
        for seat, key in writing.seats
    ]
    return written(writing.open, seals, survey.m, survey.letter_size)


def _signed(
    study: bytes,
    manifest: Manifest,
    outgoing: Outgoing,
    report: PerturbedReport | SealedShares | WrittenReport,
    credential: Credential,
    random_bytes: RandomBytes,
) -> Packet:
    slot, survey = outgoing.slot, outgoing.survey
    public, shares = _parts(report)
    unsigned = Packet(occasion_of(manifest, slot), survey, public, shares, b"")
    # The token comes last, because its header is a digest of all the rest.
    context, header = tag_context(manifest, slot), unsigned.presentation_header()
    return evolve(unsigned, token=present(credential, context, header, random_bytes))


def _parts(report: PerturbedReport | SealedShares | WrittenReport) -> tuple[bytes, tuple[bytes, ...]]:
    if isinstance(report, SealedShares):
        return report.public, report.shares
    if isinstance(report, WrittenReport):
        return report.report, ()
    return bytes(report), ()
