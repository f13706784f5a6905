"""The consequences of deleting, for its owner to read before it is done: what goes, what stays, and what becomes of
studies."""

from __future__ import annotations

from collections.abc import Sequence

from anon.text.sentences import joined, say
from peer.rules.lifecycle import State
from peer.run.leaving import OPEN, is_early
from peer.run.taking_back import Choice
from peer.store.records import EvaluatingStudy, Study

CHOICES = {
    Choice.GO_ON: say("Go on. Answers that are worked out already are kept until their packets are made."),
    Choice.MISSING: say("Go on, but erase the answers that are worked out already: they count as missing."),
    Choice.LEAVE: (
        say(
            "Leave. Packets that were not sent are erased; what they cost stays spent. An aggregator whose "
            "enrolment is still open is told."
        )
    ),
}
GOES_ON = (
    say(
        "If you go on, what has not been worked out from this table counts as missing, and your packets leave as "
        "planned, at the same cost: whether you send never depends on your data. To send nothing, leave."
    )
)
_COPIES = say("The file that you imported it from stays where it is, and so does every backup that you made.")
OF_A_TABLE = (
    joined((say("It cannot be brought back."), _COPIES), " "),
    say("Copies of files that wait here to be imported go with it: they may hold the same rows."),
    say("Your other tables stay, and so do your receipts and what was spent of your budget."),
)
GOES = (
    say("all your tables"),
    say("answers that were worked out for studies, packets that were not sent, and each study's keys"),
    say("invite links that wait for your answer, and files that wait to be imported"),
    say("what notifications and a paired phone left here, and copies that an upgrade kept"),
)
STAYS = (
    say("what was spent of your budget, for without it the budget could be spent twice"),
    say("your receipts, your limits and settings, and proofs against aggregators"),
    say("Tor's own folder, and studies that you run yourself as an aggregator"),
)
BEYOND = (
    say(
        "Packets that were sent cannot be called back or found again. Backups, the files that you imported, and "
        "copies elsewhere are yours to delete."
    )
)
OVERWRITING = (
    say(
        "What goes is overwritten. On an SSD, and on disks with snapshots, the system may still keep old blocks: "
        "encrypt the disk."
    )
)
LEAVING = (
    say(
        "You leave them all. Nothing more is sent, what is reserved for them comes back, and what was spent stays "
        "spent."
    )
)
TELL = (
    say(
        "Tell aggregators whose enrolment is still open, so that they strike you off. That message alone is kept "
        "until it is delivered."
    )
)
SILENT = say("Tell nobody: nothing at all leaves this machine any more.")


def standing(study: Study) -> str:
    """How far a study under way is with its owner's answers."""
    if study.state in OPEN:
        return _FIXED if study.has_answers else _NOT_YET
    if isinstance(study, EvaluatingStudy) and not study.has_answers:
        return _BROKEN_OFF
    return _PARTLY if study.has_answers else _MADE


_NOT_YET = say("your answers are not worked out yet")
_FIXED = say("your answers were fixed when you made a backup; a copy of this home that you use elsewhere keeps them")
_BROKEN_OFF = say("working out your answers was broken off, so that all of them count as missing")
_PARTLY = say("your answers are worked out, and some of your packets are still to be made from them")
_MADE = say("your packets are made, and your answers are erased already")


def told(studies: Sequence[Study], now: float) -> bool:
    """True if leaving would tell any aggregator."""
    return any(is_early(study, now) or study.state is State.LEAVING for study in studies)
