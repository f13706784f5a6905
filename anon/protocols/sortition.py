"""The draw: the survey of a slot's table that a tag must answer (design section 3, step 4).

1. The manifest has a table for each slot: surveys and their weights (`anon.study.slots.Slot`). It is signed before
   anyone enrols.
2. The seed is SHA-256(label, manifest, roster body, value) (`anon.wire.messages.study_seed`). The manifest commits to
   the value, and it is revealed once the roster is frozen. From then on nobody can choose the seed.
3. The tag is the peer's pseudonym in the slot's context (`tag_context`, `anon.credential.pseudonym`). The aggregator
   cannot know it before the packet arrives. So it aims a question at nobody.
4. `draw` takes SHA-256(label, seed, slot, tag) and finds the row by its weight.
5. A peer draws for its own tags after the roster's check (`drawn_surveys`, called in `peer.run.verify`).
6. Every packet carries its tag, and `aggregator.rules.acceptance.check_report` draws again. `aggregator.audit` does so
   too.

`in_score_cohort` is another draw, from a seed that is revealed after collection: which reports score and do not train.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from anon.crypto import labels
from anon.errors import Malformed
from anon.study.manifest import Manifest
from anon.study.slots import Slot
from anon.wire.cbor import sha256
from anon.wire.packets import Occasion


def draw(slot: Slot, seed: bytes, tag: bytes) -> int:
    """The survey id that SHA-256(label, seed, slot, tag) draws from the slot's weighted table.

    The first 16 bytes are an integer scaled to the sum of weights; the bias is below 2**-100 for tables under 2**28.
    """
    digest = sha256(labels.DRAW, seed, slot.slot.to_bytes(2, "big"), tag)
    point = int.from_bytes(digest[:16], "big") * slot.total >> 128
    for row in slot.rows:
        if point < row.weight:
            return row.survey
        point -= row.weight
    raise AssertionError("a point below the total always meets a row")


def drawn_surveys(manifest: Manifest, seed: bytes, tags: Sequence[bytes]) -> tuple[int, ...]:
    """The survey that each slot's tag draws, in the order of slots. The peer alone can compute it beforehand."""
    return tuple(draw(slot, seed, tag) for slot, tag in zip(manifest.slots, tags, strict=True))


def in_score_cohort(score_seed: bytes, tag: bytes, share: float) -> bool:
    """True if a report scores instead of trains: drawn by SHA-256("score", seed, tag), disjoint by construction.

    The seed is revealed only after closing, so nobody can choose a cohort.
    """
    point = int.from_bytes(sha256(labels.SCORE, score_seed, tag)[:8], "big")
    return point < int(share * 2**64)


def occasion_of(manifest: Manifest, slot: int) -> Occasion:
    """A slot with its round. Raises `Malformed` for a slot that the study does not have."""
    if not 0 <= slot < len(manifest.slots):
        raise Malformed(f"slot: expected 0 to {len(manifest.slots) - 1}, got {slot}")
    return Occasion(manifest.study_id, manifest.round_of(manifest.slots[slot]), slot)


def tag_context(manifest: Manifest, slot: int) -> bytes:
    """The pseudonym context of a slot; of every slot with letters that of the first such. So all that a member writes
    to others has one tag. Raises `Malformed` for an unknown slot."""
    occasion = occasion_of(manifest, slot)
    first = pseudonymous_slot(manifest) if manifest.survey(manifest.slots[slot].rows[0].survey).pseudonymous else slot
    return occasion.tag_context() if first == slot else occasion_of(manifest, first).tag_context()


def has_letters(manifest: Manifest) -> bool:
    """True if members of the study write to one another."""
    return pseudonymous_slot(manifest) >= 0


@lru_cache(maxsize=64)
def pseudonymous_slot(manifest: Manifest) -> int:
    """The first slot with letters: its packets tell the members' sealing keys. -1 where nobody writes to others."""
    return next(
        (slot.slot for slot in manifest.slots if manifest.survey(slot.rows[0].survey).pseudonymous), -1
    )


def keys_survey(study: Manifest) -> int:
    """The survey whose texts begin with the members' sealing keys; -1 where nobody writes letters."""
    slot = pseudonymous_slot(study)
    return slot if slot < 0 else study.slots[slot].rows[0].survey


def has_board(manifest: Manifest) -> bool:
    """True if members of the study read what others wrote."""
    return any(survey.written for survey in manifest.surveys)
