"""Sending packets at their times, and the looks at the heads before them."""

from __future__ import annotations

from anon.errors import NotConnected, Unreachable
from anon.text.sentences import say
from anon.wire.replies import ACCEPTED, BUSY
from peer.rules.packet_lifecycle import PacketEvent
from peer.run.context import Later, StudyRun
from peer.run.exchanges import FETCH_FAULTS, Exchanges
from peer.run.jobs import CheckBefore, CheckHeads, Send
from peer.run.plan import PASSED, hindrance, is_settled, unanswered_checks, window_of
from peer.store.records import MemberStudy, OutboxEntry, PacketKey

BLANK = say("nothing was sent")


async def check_heads(run: StudyRun, exchanges: Exchanges, study: MemberStudy, job: CheckHeads) -> None:
    """A look between the checks and the first packet. One that was not answered is made up for."""
    await exchanges.chain(study)
    run.memory = run.memory.with_done(job)


async def check_before(run: StudyRun, exchanges: Exchanges, study: MemberStudy, job: CheckBefore) -> None:
    """The look before a packet leaves; without an answer the packet gets another time."""
    packet = _packet(run, study, job.key)
    if _hindered(run, study, packet):
        return
    try:
        await exchanges.chain(study)
    except Later:
        return _redraw(run, study, packet)
    run.memory = run.memory.with_done(job)


def put_off(run: StudyRun, study: MemberStudy, job: CheckBefore | Send) -> None:
    """Another time for a packet whose job fell due while another one was under way."""
    packet = _packet(run, study, job.key)
    if not _hindered(run, study, packet):
        _redraw(run, study, packet)


async def send(run: StudyRun, exchanges: Exchanges, study: MemberStudy, job: Send) -> None:
    """Let a packet leave: the attempt is counted, and its retry drawn, before the first byte."""
    packet = _packet(run, study, job.key)
    window, client = window_of(study.manifest, packet), run.tools.client(study)
    if _hindered(run, study, packet):
        return
    if unanswered_checks(run.memory, window):
        return _redraw(run, study, packet)
    try:
        await client.ready()
    except Unreachable:  # no byte can have left: the attempt is not one, and its time is as lost as a sleeper's
        exchanges.tell(silent=True)
        return _redraw(run, study, packet)
    if run.store.paused_until(study.study) > run.tools.now():  # meanwhile: the owner's word comes before the first byte
        return _redraw(run, study, packet)
    if _hindered(run, study, packet):  # getting ready took too long
        return
    retry_at = run.departure_times(study.manifest).again_or_end(window)
    # Up to here a blank took all steps of a packet.
    if packet.sealed is None:
        return _answered(run, study, packet, PacketEvent.ACCEPTED, BLANK)
    # Decision 5: a kill after this leaves an attempt too many, and never one too few.
    run.store.attempt(study.study, packet.key, retry_at)
    try:
        word = await exchanges.answered(client.submit(packet.sealed))
    except NotConnected:
        send_at = run.departure_times(study.manifest).again_or_end(window)
        return run.store.not_attempted(study.study, packet.key, send_at)
    # The packet may have arrived. Its retry was drawn above, and the same bytes are acknowledged again.
    except FETCH_FAULTS:
        return
    if word not in (BUSY, "window-not-open"):
        event = PacketEvent.ACCEPTED if word == ACCEPTED else PacketEvent.REFUSED
        _answered(run, study, packet, event, word)


def _packet(run: StudyRun, study: MemberStudy, key: PacketKey) -> OutboxEntry:
    return next(packet for packet in run.store.outbox_entries(study.study) if packet.key == key)


def _hindered(run: StudyRun, study: MemberStudy, packet: OutboxEntry) -> bool:
    """True if the packet may not leave at its time; it is dealt with."""
    found = hindrance(study.manifest, packet, run.now(), run.now.behind)
    if found is None:
        return False
    if found.word:
        _answered(run, study, packet, PacketEvent.GIVEN_UP, found.word)
    else:
        _redraw(run, study, packet)
    return True


def _redraw(run: StudyRun, study: MemberStudy, packet: OutboxEntry) -> None:
    send_at = run.departure_times(study.manifest).again(window_of(study.manifest, packet))
    if send_at is None:
        _answered(run, study, packet, PacketEvent.GIVEN_UP, PASSED)
    else:
        run.store.redraw(study.study, packet.key, send_at)


def _answered(run: StudyRun, study: MemberStudy, packet: OutboxEntry, event: PacketEvent, word: str) -> None:
    done = is_settled(study, run.store.outbox_entries(study.study), run.now(), but=packet.key)
    run.store.record_reply(study.study, packet.key, event, word, run.settled_events() if done else ())
