"""All that the packets of a window are made from, beside the answers, and what a child is told of it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from attrs import evolve, field

from anon.credential import Credential, pseudonym
from anon.protocols.contract import DocumentArrived
from anon.protocols.sortition import tag_context
from anon.study.manifest import Manifest, Window
from anon.values import frozen
from peer.data.evaluate import missing
from peer.data.making.content import Making, SlotRequest
from peer.protocols.contract import Correspondence, CorrespondingPart, SharingPart, part_of
from peer.release import SlotRandomness
from peer.rules.study_secrets import StudySecrets
from peer.run.plan import Slots


@frozen
class PacketInputs:
    """All that the packets of a window are made from beside the answers, and what makes them the peer's own."""

    manifest: Manifest = field(repr=False)
    secrets: StudySecrets
    credential: Credential = field(repr=False)
    seed: bytes
    slots: Slots
    documents: tuple[DocumentArrived, ...] = field(default=(), repr=False)
    known: Correspondence | None = field(default=None, repr=False)

    def drawn(self, slot: int, survey: int, answers: bytes | None = None) -> SlotRandomness:
        """The slot's random bytes, for these answers, or None for the missing answer that is made beforehand. Only
        documents that its survey needs count: others are there or not by chance. They count in the order of their
        places, so that the bytes of an earlier round come again whenever it is asked for them."""
        grounds = [self.credential.public_key, self.credential.header, self.seed, survey.to_bytes(4, "big")]
        if answers is not None:
            digests = {(document.kind, document.part): document.digest for document in self.documents}
            needed = [digests[place] for place in documents_of(self.manifest, [survey])]
            grounds += [hashlib.sha256(answers).digest(), *needed]
        return SlotRandomness(self.secrets.drawn[slot], *grounds)

    def reads(self, survey: int) -> bool:
        """False for what stands on no record. A written survey that costs nothing reads none, whatever its part says:
        no manifest has anything leave uncharged."""
        asked, known = self.manifest.survey(survey), self.known
        if asked.exact and isinstance(sharing := part_of(self.manifest), SharingPart):
            return sharing.takes_part(self.manifest, asked, self.secrets.lot)
        if not asked.pseudonymous:
            return bool(asked.epsilon) or not asked.written
        part = part_of(self.manifest)
        if not asked.epsilon or known is None or not isinstance(part, CorrespondingPart):
            return False
        return part.reads(self.manifest, asked, known.tag, known.pages)

    def by_child(self, survey: int) -> bool:
        """False for letters that stand on no record."""
        return self.manifest.survey(survey).exact or self.reads(survey)

    def begun(self, answers: bytes | None = None) -> MakingStart:
        """The random bytes of every slot that a child fills, and what it is told of them."""
        filled = [(slot, survey) for slot, survey in self.slots if self.by_child(survey)]
        draws = {slot: self.drawn(slot, survey, answers) for slot, survey in filled}
        places = tuple(self.place(slot, survey, draws[slot]) for slot, survey in filled)
        given = missing(self.manifest) if answers is None else answers
        return MakingStart(draws, self.told(places, given))

    def told(self, places: tuple[SlotRequest, ...], answers: bytes) -> Making:
        """All that is told of what these places are filled with. Where there is none, no page is sent to the child."""
        told = Making(self.manifest.to_bytes(), answers, places, self.documents if places else ())
        return told if self.known is None else evolve(told, own=self.known.own, mail=self.known.mail)

    def place(self, slot: int, survey: int, draw: SlotRandomness) -> SlotRequest:
        """The request to fill a slot."""
        asked = self.manifest.survey(survey)
        if not asked.exact and not asked.written:
            return SlotRequest(slot, survey)
        tag = pseudonym(self.credential, tag_context(self.manifest, slot))
        drawn = draw(part_of(self.manifest).random_size(self.manifest, asked))
        return SlotRequest(slot, survey, tag, drawn, self.reads(survey))


@frozen
class MakingStart:
    """A making that begins: the random bytes by slot, of which those of shares are given away, and the request."""

    draws: Mapping[int, SlotRandomness] = field(repr=False)
    told: Making


def documents_of(manifest: Manifest, surveys: Sequence[int]) -> list[tuple[str, int]]:
    """The documents (kind, part) without which one of the surveys cannot be answered; of a written one all of the board
    before."""
    needed = {place for survey in surveys for place in part_of(manifest).needs(manifest, survey)}
    if written := [survey for survey in surveys if manifest.survey(survey).written]:
        from anon.protocols.board import board_before  # late: studies without letters load nothing of them

        needed.update(place for survey in written for place in board_before(manifest, survey))
    return sorted(needed)


def letters_before(manifest: Manifest, window: Window) -> list[int]:
    """The surveys with letters of earlier windows: whoever writes works out again what it wrote there."""
    return [
        survey.survey for survey in manifest.surveys if survey.pseudonymous and survey.window.opens < window.opens
    ]
