"""Making packets: those that wait for no document when the features are evaluated, the others when theirs are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from anon.credential import Credential
from anon.errors import Conflict, Malformed, RejectedProof
from anon.protocols.contract import DocumentArrived
from anon.protocols.outgoing import Outgoing
from anon.study.manifest import Manifest, Window
from anon.text.sentences import say
from peer.data.evaluate import missing, stored
from peer.data.snapshot import Snapshot
from peer.protocols.registry import part_of
from peer.release import SlotRandomness, release
from peer.rules.lifecycle import Event
from peer.rules.study_secrets import StudySecrets
from peer.run.context import StudyRun, credential_of
from peer.run.exchanges import Exchanges
from peer.run.plan import Slots, is_settled, undecided
from peer.store.outbox import Covering, Scheduled
from peer.store.records import Answering, Evaluating, Member
from peer.threads import off_loop

SendTimes = Mapping[int, float | None]
"""By slot; None where the window had passed."""


@frozen
class PacketInputs:
    """All that the packets of a study are made from: what they answer, and what makes them the peer's own."""

    manifest: Manifest = field(repr=False)
    secrets: StudySecrets
    credential: Credential = field(repr=False)
    seed: bytes
    snapshot: Snapshot
    documents: tuple[DocumentArrived, ...] = field(default=(), repr=False)

    def answers(self, slots: Slots) -> tuple[Outgoing, ...]:
        """One answer for each of the slots (slot, survey) whose documents are there. Raises `Malformed`."""
        return part_of(self.manifest).answers(self.manifest, self.snapshot.record, slots, self.documents)

    def drawn(self, slot: int, survey: int) -> SlotRandomness:
        """The slot's random bytes. Only documents that its survey needs count: others are there or not by chance."""
        needed = part_of(self.manifest).needs(self.manifest, survey)
        bodies = [document.body for document in self.documents if (document.kind, document.part) in needed]
        return SlotRandomness(
            self.secrets.drawn[slot],
            self.credential.public_key,
            self.credential.header,
            self.seed,
            survey.to_bytes(4, "big"),
            self.snapshot.to_bytes(),
            *bodies,
        )


def released(inputs: PacketInputs, slots: Slots, send_times: SendTimes) -> tuple[list[Scheduled], list[int]]:
    """Finished packets of the slots that can be answered, with their times, and those whose window had passed."""
    packets, missed = list[Scheduled](), list[int]()
    for answer in inputs.answers(slots):
        send_at = send_times[answer.slot]
        if send_at is None:
            missed.append(answer.slot)
            continue
        drawn = inputs.drawn(answer.slot, answer.survey)
        made = release(inputs.manifest.study_id, inputs.manifest, answer, inputs.credential, drawn)
        packets.append(Scheduled(made, send_at))
    return packets, missed


async def make_first(run: StudyRun, inputs: PacketInputs, draws: Sequence[int], send_times: SendTimes) -> None:
    """Make and store the packets that wait for no document."""
    study = inputs.manifest.study_id
    try:
        packets, missed = await off_loop(released, inputs, asked_at_first(inputs.manifest, draws), send_times)
    except (Malformed, RejectedProof) as fault:
        return run.store.end(study, Event.CHECK_FAILED, str(fault))
    run.store.record_evaluated(study, stored(inputs.manifest, inputs.snapshot), packets, missed)
    return settle_if_done(run, study)


async def go_on_without(run: StudyRun, study: Evaluating) -> None:
    """Evaluating was begun and this process or machine came down before its end: every value counts as missing, but
    for those that a backup fixed before. Nothing else is different. A study that a restore barred sends nothing."""
    manifest, secrets = study.manifest, run.secrets(study)
    snapshot = Snapshot.from_bytes(study.snapshot) if study.snapshot is not None else missing(manifest)
    inputs = PacketInputs(manifest, secrets, credential_of(study, secrets), study.seed, snapshot)
    send_times = study.evaluation.send_times
    await make_first(run, inputs, study.draws, dict.fromkeys(send_times) if study.barred else send_times)


async def answer(run: StudyRun, exchanges: Exchanges, study: Member, window: Window) -> None:
    """Fetch what any survey of the window needs, whatever was drawn, and journal packets and what fills it up."""
    manifest, slots = study.manifest, undecided(study, run.store.outbox_entries(study.study), window)
    chain = await exchanges.chain(study)
    asked = documents_of(manifest, surveys_in(manifest, window))
    documents = [await exchanges.document(study, chain, kind, part) for kind, part in asked]
    departure_times = run.departure_times(manifest)
    try:
        await off_loop(part_of(manifest).check_documents, manifest, documents)
        send_times = departure_times.times(slots)
        made = await off_loop(_packets_of, run, study, slots, documents, send_times) if slots else ([], [])
    except (Malformed, RejectedProof) as fault:
        return run.store.end(study.study, Event.CHECK_FAILED, str(fault))
    run.store.journal(study.study, *made, cover=departure_times.cover(window, study.draws))
    settle_if_done(run, study.study)


def _packets_of(
    run: StudyRun, study: Member, slots: Slots, documents: Sequence[DocumentArrived], send_times: SendTimes
) -> tuple[list[Scheduled], list[int]]:
    if not isinstance(study, Answering):
        raise Conflict(say(
            "the evaluated features of this study are erased, and a slot is not decided; nothing is sent",
        ))
    snapshot, secrets = Snapshot.from_bytes(study.snapshot), run.secrets(study)
    inputs = PacketInputs(
        study.manifest, secrets, credential_of(study, secrets), study.seed, snapshot, tuple(documents)
    )
    return released(inputs, slots, send_times)


async def miss(run: StudyRun, study: Member, window: Window) -> None:
    """Journal the slots of a window that passed."""
    slots = undecided(study, run.store.outbox_entries(study.study), window)
    run.store.journal(study.study, (), [slot for slot, _survey in slots])
    settle_if_done(run, study.study)


def settle_if_done(run: StudyRun, study: bytes) -> None:
    """Move the study on when every slot is decided and nothing is queued."""
    if is_settled(run.store.study(study), run.store.outbox_entries(study), run.now()):
        run.store.settle(study, run.settled_events())


def first_cover(run: StudyRun, manifest: Manifest, draws: Sequence[int], since: float) -> list[Covering]:
    """The cover beside the packets of every window that waits for no document."""
    departure_times = run.departure_times(manifest, since)
    return [
        covering
        for window in manifest.windows
        if not documents_of(manifest, surveys_in(manifest, window))
        for covering in departure_times.cover(window, draws)
    ]


def asked_at_first(manifest: Manifest, draws: Sequence[int]) -> list[tuple[int, int]]:
    """The slots (slot, survey) that can be answered without any document: a window is filled all at once, when the
    documents that anybody needs in it are there."""
    return [
        (slot, survey)
        for slot, survey in enumerate(draws)
        if not documents_of(manifest, surveys_in(manifest, manifest.survey(survey).window))
    ]


def documents_of(manifest: Manifest, surveys: Sequence[int]) -> list[tuple[str, int]]:
    """The documents (kind, part) without which one of the surveys cannot be answered."""
    return sorted({needed for survey in surveys for needed in part_of(manifest).needs(manifest, survey)})


def surveys_in(manifest: Manifest, window: Window) -> list[int]:
    """All surveys of a window, whoever draws them."""
    return [survey.survey for survey in manifest.surveys if survey.window == window]
