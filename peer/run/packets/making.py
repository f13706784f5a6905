"""Making packets: those that wait for no document when the features are evaluated, the others when theirs are there.

Each window's are made in the same steps. No step but the fourth takes a time that may depend on the data.

1. The declared missing answer is made: what each packet says if nothing else is ready.
2. Send times and cover are drawn from the deadline on, a fixed time after this start (`peer.rules.schedule`).
3. All of this is journalled as begun. The data was not opened yet.
4. Children evaluate the queries, and make what the packets say of the answers, in messages of fixed size.
5. At the deadline the message is taken up. If it is not there, the missing answer is what the packets say.
   Letters that stand on no record are made without a child: no deadline can change them (`peer.run.packets.letters`).
6. Every packet is finished (`peer.release`) and journalled with its charge. It leaves at its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import ModuleType

from attrs import evolve, field

from anon.errors import Conflict, Malformed, RejectedProof
from anon.protocols.contract import DocumentArrived
from anon.protocols.outgoing import CutVector, Outgoing, Writing
from anon.protocols.sortition import has_board, has_letters
from anon.study.manifest import Manifest, Window
from anon.text.sentences import say
from anon.transparency.documents import find
from anon.values import frozen
from peer.data.evaluate import answers_of, missing
from peer.data.making.content import made, read_made
from peer.data.making.work import work_of
from peer.protocols.contract import part_of
from peer.release import SlotRandomness, release
from peer.rules.lifecycle import Event
from peer.rules.schedule import QUERYING, in_time, making_allowance
from peer.run.context import StudyRun, credential_of
from peer.run.exchanges import Exchanges
from peer.run.packets.inputs import MakingStart, PacketInputs, documents_of, letters_before
from peer.run.plan import is_settled, undecided
from peer.store.outbox import Covering, ScheduledPacket
from peer.store.records import AnsweringStudy, EvaluatingStudy, Evaluation, MemberStudy
from peer.threads import off_loop

SendTimes = Mapping[int, float | None]
"""By slot; None where the window had passed."""


@frozen
class MissingAnswer:
    """The declared missing answer of a window, made beforehand: its random bytes, and what each packet says."""

    draws: Mapping[int, SlotRandomness] = field(repr=False)
    message: bytes = field(repr=False)


def without_answers(inputs: PacketInputs) -> MissingAnswer:
    """The content of the packets if nothing else is ready. Raises `Malformed` and `RejectedProof` on account of
    documents, and for texts of other lengths than the study says: they are written once beforehand, and not kept."""
    if has_board(inputs.manifest):
        _letters().unread_letters(evolve(inputs, secrets=inputs.secrets.fixed(b"")))
    begun = inputs.begun()
    return MissingAnswer(begun.draws, made(begun.told, inputs.manifest))


def taken_up(
    inputs: PacketInputs, message: bytes, begun: MakingStart, otherwise: MissingAnswer
) -> tuple[Sequence[Outgoing], Mapping[int, SlotRandomness]]:
    """The content of the packets, and the random bytes that finish them: the same work whatever the message holds."""
    # Another length is no message: the child was late, or it died.
    if len(message) == len(otherwise.message):
        with suppress(Malformed, ValueError, KeyError):  # no child of ours writes such a message
            return read_made(inputs.manifest, inputs.slots, message), begun.draws
    return read_made(inputs.manifest, inputs.slots, otherwise.message), otherwise.draws


def released(
    inputs: PacketInputs, wishes: Sequence[Outgoing], draws: Mapping[int, SlotRandomness], send_times: SendTimes
) -> tuple[list[ScheduledPacket], list[int]]:
    """Finished packets with their times, and the slots whose window had passed."""
    packets, missed = list[ScheduledPacket](), list[int]()
    for wish in wishes:
        send_at = send_times[wish.slot]
        if send_at is None:
            missed.append(wish.slot)
            continue
        ready = _letters().seated(inputs, wish) if isinstance(wish, Writing) else wish
        if isinstance(ready, CutVector):
            ready = evolve(ready, read=inputs.reads(ready.survey))
        made_of = release(inputs.manifest.study_id, inputs.manifest, ready, inputs.credential, draws[wish.slot])
        packets.append(ScheduledPacket(made_of, send_at))
    return packets, missed


async def make_by_deadline(
    run: StudyRun, inputs: PacketInputs, otherwise: MissingAnswer, evaluation: Evaluation, known: bytes | None
) -> None:
    """Make and store the packets of a window whose evaluation was journalled. `known`: the answers, where an earlier
    window or a backup fixed them; else the queries are evaluated first."""
    manifest, answers = inputs.manifest, known
    if answers is None:
        querying = QUERYING * max(0.0, evaluation.due - run.now())
        seed = inputs.secrets.records_seed if manifest.records else b""
        answers = await answers_of(run.tools.evaluate, manifest, run.tools.data_path, querying, seed)
    begun = await off_loop(inputs.begun, answers)
    # A board may be long: encoded on the loop, it would hold up the packets of other studies.
    work = await off_loop(work_of, begun.told, manifest, len(otherwise.message))
    message = await run.tools.evaluate(work, max(0.0, evaluation.due - run.now()))
    wishes, draws = taken_up(inputs, message, begun, otherwise)
    if has_board(manifest):
        inputs = evolve(inputs, secrets=inputs.secrets.fixed(answers))
        letters, drawn = await off_loop(_letters().unread_letters, inputs)
        wishes, draws = [*wishes, *letters], {**draws, **drawn}
    await _store_made(run, inputs, answers, wishes, draws, evaluation.send_times)


async def _store_made(
    run: StudyRun,
    inputs: PacketInputs,
    answers: bytes,
    wishes: Sequence[Outgoing],
    draws: Mapping[int, SlotRandomness],
    send_times: SendTimes,
) -> None:
    study = inputs.manifest.study_id
    packets, missed = await off_loop(released, inputs, wishes, draws, send_times)
    missed += [slot for slot, _survey in inputs.slots if slot not in {wish.slot for wish in wishes}]
    closed = run.tools.vault.close(inputs.secrets.to_bytes()) if has_letters(inputs.manifest) else None
    run.store.record_evaluated(study, answers, packets, missed, closed)
    settle_if_done(run, study)


async def go_on_without(run: StudyRun, study: EvaluatingStudy) -> None:
    """Making the packets of a window was begun, and this process or machine came down before its end: they say that the
    answer is missing. Nothing else is different, but that letters are not written: this member is away from then on. A
    study that a restore barred sends nothing. A study whose missing answer fits no packet ends: no later try would fit
    it."""
    manifest, secrets, evaluation = study.manifest, run.secrets(study), study.evaluation
    slots = [(slot, study.draws[slot]) for slot in evaluation.send_times]
    inputs = PacketInputs(manifest, secrets, credential_of(study, secrets), study.seed, slots)
    answers = missing(manifest) if study.snapshot is None else study.snapshot
    begun = await off_loop(inputs.begun)
    times = dict.fromkeys(evaluation.send_times) if study.barred else evaluation.send_times
    wishes = [
        wish
        for wish in read_made(manifest, slots, evaluation.missing)
        if not manifest.survey(wish.survey).pseudonymous
    ]
    fixed = evolve(inputs, secrets=secrets.fixed(answers))
    try:
        await _store_made(run, fixed, answers, wishes, begun.draws, times)
    except (Malformed, RejectedProof) as fault:
        run.store.end(study.study, Event.CHECK_FAILED, str(fault))


def demand_sound(manifest: Manifest, documents: Sequence[DocumentArrived]) -> None:
    """Have the protocol read every document. Raises `RejectedProof`, and `Malformed` whatever else its reader raises: a
    document that it cannot even read ends the study as a bad one does."""
    try:
        part_of(manifest).check_documents(manifest, documents)
    except (Malformed, RejectedProof):
        raise
    except Exception:  # a part is any author's
        raise Malformed(say("a document of this study cannot be read; nothing more is sent")) from None


async def answer(run: StudyRun, exchanges: Exchanges, study: MemberStudy, window: Window) -> None:
    """Fetch what any survey of the window needs, whatever was drawn, and make its packets and what fills it up."""
    manifest, slots = study.manifest, undecided(study, run.store.outbox_entries(study.study), window)
    if slots and not isinstance(study, AnsweringStudy):
        raise Conflict(say(
            "the evaluated features of this study are erased, and a slot is not decided; nothing is sent",
        ))
    chain = await exchanges.chain(study)
    if has_board(manifest) and find(chain, "unsummed") is not None:  # too few wrote: nobody reads a letter any more
        return await miss(run, study, window)
    asked = documents_of(manifest, [*surveys_in(manifest, window), *letters_before(manifest, window)])
    documents = tuple([await exchanges.document(study, chain, kind, part) for kind, part in asked])
    secrets = run.secrets(study)
    inputs = PacketInputs(manifest, secrets, credential_of(study, secrets), study.seed, slots, documents)
    try:
        await off_loop(demand_sound, manifest, documents)
        if has_board(manifest):
            members = _letters().most_members(manifest, chain)
            inputs = await off_loop(
                _letters().with_board, inputs, study.roster_digest, members, run.tools.random_bytes
            )
            if silent := _letters().silenced(inputs, run.store.outbox(study.study)):
                return run.store.journal(study.study, (), silent)
        otherwise = await off_loop(without_answers, inputs)
    except (Malformed, RejectedProof) as fault:
        return run.store.end(study.study, Event.CHECK_FAILED, str(fault))
    ready = run.now() + making_allowance(manifest, window)
    if not in_time(manifest, window, ready):
        return await miss(run, study, window)
    run.memory = evolve(run.memory, ready=ready)
    departure_times = run.departure_times(manifest, ready)
    evaluation = Evaluation(ready, departure_times.times(slots), otherwise.message)
    run.store.record_answering(study.study, evaluation, departure_times.cover(window, study.draws))
    known = study.snapshot if isinstance(study, AnsweringStudy) else missing(manifest)
    await make_by_deadline(run, inputs, otherwise, evaluation, known)


async def miss(run: StudyRun, study: MemberStudy, window: Window) -> None:
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


def surveys_in(manifest: Manifest, window: Window) -> list[int]:
    """All surveys of a window, whoever draws them."""
    return [survey.survey for survey in manifest.surveys if survey.window == window]


def _letters() -> ModuleType:
    """Loaded where members write to each other, and in no other study."""
    from peer.run.packets import letters

    return letters
