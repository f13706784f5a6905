"""The letters of a window: what was read on the board before, what stands on no record, and the seats of the rest.

1. `with_board` checks the pages, opens what was written to this member, and recomputes its own random bytes.
2. `silenced`: one whose own letters are not on the board as they left writes no more of their session. It was away.
   One that finds a letter that it did not send is a copy, and writes none at all.
3. `unread_letters` makes what stands on no record, in this process: nothing in it takes a time that data could change.
4. `seated` gives a text and its letters their seats, to which `peer.release` seals them.

5. `receive` reads the whole board when the last round is over, for results that are this member's alone.

Nothing of this but those results is stored. It follows from the secrets of joining, the digest of the answers, and the
board.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from attrs import evolve

from anon.credential import pseudonym
from anon.crypto.sealing import SECRET_SIZE
from anon.crypto.sealing.opening import Opener
from anon.protocols.board import check_tokens, demand_members, key_of, mail_of, read_pages, seats_of
from anon.protocols.contract import Place
from anon.protocols.contract import documents_of as documents_of_rounds
from anon.protocols.outgoing import OpenShares, Writing
from anon.protocols.registry import protocol_of
from anon.protocols.sortition import keys_survey, pseudonymous_slot, tag_context
from anon.study.manifest import Manifest
from anon.transparency.bucketed import members_signed
from anon.transparency.documents import SignedHead
from peer.data.making.content import written_by
from peer.protocols.contract import Correspondence, CorrespondingPart, part_of
from peer.release import SlotRandomness
from peer.run.context import StudyRun, credential_of
from peer.run.exchanges import Exchanges
from peer.run.jobs import Receive
from peer.run.packets.inputs import PacketInputs, documents_of
from peer.store.records import OutboxEntry, SentStudy
from peer.threads import off_loop


def with_board(
    inputs: PacketInputs, roster_digest: bytes, members: int, random_bytes: Callable[[int], bytes]
) -> PacketInputs:
    """The same, with the board among its documents read. `members`: the most of the signed roster. Raises `Malformed`
    and `RejectedProof` for a page that no honest aggregator signs: nothing more is sent then."""
    manifest = inputs.manifest
    pages = read_pages(manifest, inputs.documents)
    demand_members(manifest, pages, members)
    check_tokens(manifest, roster_digest, list(pages.values()), random_bytes)
    if pseudonymous_slot(manifest) < 0:
        return evolve(inputs, known=Correspondence(b"", {}, {}, pages))
    tag = pseudonym(inputs.credential, tag_context(manifest, pseudonymous_slot(manifest)))
    slots = {row.survey: slot.slot for slot in manifest.slots for row in slot.rows}
    written = {
        survey: number
        for number, page in pages.items()
        for survey in page.entries
        if manifest.survey(survey).pseudonymous
    }
    draws = {survey: inputs.drawn(slots[survey], survey, inputs.secrets.letters) for survey in written}
    keys = keys_survey(manifest)
    mail = mail_of(manifest, pages, tag, Opener(draws[keys](SECRET_SIZE)).open) if keys in draws else {}
    known, part, own = Correspondence(tag, {}, mail, pages), part_of(manifest), dict[int, bytes]()
    for survey, number in written.items():
        then = {before: page for before, page in pages.items() if before < number}
        if not evolve(inputs, known=evolve(known, pages=then)).reads(survey):
            own[survey] = draws[survey](part.random_size(manifest, manifest.survey(survey)))
    return evolve(inputs, known=evolve(known, own=own))


def most_members(manifest: Manifest, chain: Sequence[SignedHead]) -> int:
    """The members by the signed roster; of one in several buckets, whose head does not say it, the study's maximum."""
    members = members_signed(chain)
    return manifest.cohort.maximum if members is None else members


def silenced(inputs: PacketInputs, outbox: Sequence[OutboxEntry]) -> list[int]:
    """The slots of letters that this member does not write, since its earlier ones are not on the board as they left.
    Where one is missing, it was away, and is out of that session. A letter that it did not send is a copy's: then, and
    without a key there, it is out of all."""
    known, manifest = inputs.known, inputs.manifest
    if known is None or pseudonymous_slot(manifest) < 0:
        return []
    left = {entry.survey: entry.digest for entry in outbox}
    seen = {
        survey: entries[known.tag].digest if known.tag in entries else None
        for page in known.pages.values()
        for survey, entries in page.entries.items()
        if manifest.survey(survey).pseudonymous
    }
    sessions = {survey: turn.session for turn in protocol_of(manifest).rounds(manifest) for survey in turn.surveys}
    missed = {sessions[survey] for survey, digest in seen.items() if digest is None}
    foreign = any(digest is not None and digest != left.get(survey) for survey, digest in seen.items())
    if foreign or (seen and seen.get(keys_survey(manifest)) is None):
        missed = set(sessions.values())
    letters = [(slot, survey) for slot, survey in inputs.slots if manifest.survey(survey).pseudonymous]
    return [slot for slot, survey in letters if sessions[survey] in missed]


def unread_letters(inputs: PacketInputs) -> tuple[list[Writing], dict[int, SlotRandomness]]:
    """The letters of a window that stand on no record, and the random bytes that finish them."""
    wishes, draws = list[Writing](), dict[int, SlotRandomness]()
    for slot, survey in inputs.slots:
        if inputs.by_child(survey):
            continue
        draw = draws[slot] = inputs.drawn(slot, survey, inputs.secrets.letters)
        first = survey == keys_survey(inputs.manifest)
        key = Opener(draw(SECRET_SIZE)).public_key if first else b""
        told = inputs.told((inputs.place(slot, survey, draw),), b"")
        text, *letters = written_by(told, inputs.manifest, None)[slot]
        wishes.append(Writing(slot, survey, OpenShares(key + text, tuple(letters)), read=False))
    return wishes, draws


def seated(inputs: PacketInputs, wish: Writing) -> Writing:
    """The wish with the seats that its letters are for."""
    manifest, known = inputs.manifest, inputs.known or Correspondence(b"", {}, {}, {})
    seats = seats_of(manifest, wish.survey, known.tag, known.pages)
    return evolve(wish, seats=tuple((tag, key_of(manifest, known.pages, tag)) for tag in seats))


async def receive(run: StudyRun, exchanges: Exchanges, study: SentStudy) -> None:
    """Keep the results for this member alone, if the protocol has such; none for one that is out of all sessions."""
    manifest, part = study.manifest, part_of(study.manifest)
    chain = await exchanges.chain(study)
    slots = [(slot, survey) for slot, survey in enumerate(study.draws) if manifest.survey(survey).pseudonymous]
    board = documents_of_rounds(protocol_of(manifest).rounds(manifest))
    places = sorted({*board, *documents_of(manifest, [survey for _slot, survey in slots])})
    documents = tuple([await exchanges.document(study, chain, kind, number) for kind, number in places])
    secrets = run.secrets(study)
    inputs = PacketInputs(manifest, secrets, credential_of(study, secrets), study.seed, slots, documents)
    results: Mapping[Place, bytes] = {}
    # A board that is bad, or that a part of any author cannot read, gives no result. Own packets are looked for still.
    with suppress(Exception):
        members = most_members(manifest, chain)
        read = await off_loop(with_board, inputs, study.roster_digest, members, run.tools.random_bytes)
        out = len(silenced(read, run.store.outbox(study.study))) == len(slots)
        if read.known is not None and isinstance(part, CorrespondingPart) and not out:
            results = await off_loop(part.received, manifest, read.known, documents)
    run.store.receive(study.study, results)
    run.memory = run.memory.with_done(Receive())
