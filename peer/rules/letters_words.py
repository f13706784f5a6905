"""The sentences of consent about a study whose members write: who reads it, and what ties it to its writer."""

from __future__ import annotations

from anon.protocols.contract import MOST_BOARD
from anon.protocols.registry import protocol_of
from anon.protocols.sizes import longest_board
from anon.protocols.sortition import pseudonymous_slot
from anon.study.manifest import Manifest
from anon.text.sentences import Sentence, say, say_many

SHARED = 5
"""Members of the example: so many were away in one round."""


def too_long_board(manifest: Manifest) -> tuple[Sentence, ...]:
    """The objection to a study whose pages are more than a member's machine holds at once."""
    if (held := longest_board(manifest)) <= MOST_BOARD:
        return ()
    return (
        say(
            "up to {people} may take part, and to read what they write your machine would hold {held} MiB at once, "
            "more than {most}; decline, or ask staff for a smaller cohort",
            people=manifest.cohort.maximum,
            held=held >> 20,
            most=MOST_BOARD >> 20,
        ),
    )


def about_letters(manifest: Manifest) -> tuple[Sentence, ...]:
    """All that a member should know before it writes; nothing where nobody writes."""
    written = [survey for survey in manifest.surveys if survey.written]
    if not written:
        return ()
    lines = [
        say(
            "You write open texts. All members, the aggregator and everybody with the study's link can read them, and "
            "may keep them for ever."
        )
    ]
    if not all(survey.pseudonymous for survey in written):
        lines.append(
            say("A posted text stands under a tag that is used once. The tag ties it to nothing else of yours.")
        )
    return (*lines, *_pseudonym(manifest)) if pseudonymous_slot(manifest) >= 0 else tuple(lines)


def _pseudonym(manifest: Manifest) -> tuple[Sentence, ...]:
    windows = {survey.window for survey in manifest.surveys if survey.pseudonymous}
    turns = [turn for turn in protocol_of(manifest).rounds(manifest) if turn.window in windows]
    rounds, sessions = len(turns), len({turn.session for turn in turns})
    return (
        say(
            "You also write sealed letters. Only the reader that a letter is sealed to, a member or the aggregator, "
            "can open it. The sealed letters are public, and anybody may keep them for ever."
        ),
        say(
            "Your letters, and the texts that go with them, stand under one pseudonym for the whole study. Everybody "
            "sees that they belong together."
        ),
        say(
            "Somebody who knows that you stopped, or were away in a round, can find your pseudonym by it. With it goes "
            "everything that the pseudonym wrote. An absence that {shared} members share leaves {shared} pseudonyms to "
            "choose from; one that is yours alone leaves one.",
            shared=SHARED,
        ),
        say(
            "There are {rounds}, and your machine must be awake in each. If it misses one, it writes no letters from "
            "then on.",
            rounds=say_many("{count} round of letters", "{count} rounds of letters", rounds),
        )
        if sessions == 1
        else say(
            "There are {rounds} in {sessions} sessions, and your machine must be awake in each round of a session. If "
            "it misses one, it writes no letters until the next session.",
            rounds=say_many("{count} round of letters", "{count} rounds of letters", rounds),
            sessions=sessions,
        ),
        say("If you stop between rounds, you fall silent. Nothing that you wrote is taken back."),
    )
