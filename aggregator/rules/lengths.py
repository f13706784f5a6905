"""No document is signed that no reader takes: checked when a study is published, and again before each signature.

`cohort.maximum` implies how long every document can become (`anon.protocols.sizes`), so a study whose documents would
not fit is refused while nobody has joined it yet.
"""

from __future__ import annotations

from attrs import evolve

from anon.errors import Refused
from anon.protocols.contract import MOST_BOARD
from anon.protocols.kinds import rows_of
from anon.protocols.registry import protocol_of
from anon.protocols.sizes import LONGEST_UNSEEN_CHAIN, longest_board, longest_body, longest_chain
from anon.protocols.tellers import tellers_of
from anon.sharing.exchange import CALLS
from anon.study.manifest import Manifest
from anon.transparency.bucketed import BUCKETED, body_bytes
from anon.transparency.buckets import MOST
from anon.transparency.closing import CLOSING
from anon.transparency.documents import MAX_BODY

MOST_ROLL = CALLS["roll"].most_body
"""Bytes: of some 160,000 members."""


class TooLong(Refused):
    """A document that no reader takes. Repeating changes nothing."""


def demand_readable(manifest: Manifest) -> None:
    """Raises `TooLong` for a study that could have a document which no reader takes, and names the maximum that fits.
    """
    length, longest = len(manifest.to_bytes()), longest_body(manifest, "manifest")
    if length > longest:
        raise TooLong(f"the manifest has {length} bytes, and at most {longest} are read; {_FEWER}")
    if longest_chain(manifest) > LONGEST_UNSEEN_CHAIN:
        raise TooLong(f"the study would have more documents than are read; {_FEWER}")
    if (longest := _longest(manifest)) > MAX_BODY:
        raise TooLong(
            f"cohort.maximum = {manifest.cohort.maximum}: a document of this study could have {_in_mb(longest)}, and "
            f"no reader takes more than {_in_mb(MAX_BODY)}. {advice(manifest)}"
        )
    if (board := longest_board(manifest)) > MOST_BOARD:
        raise TooLong(
            f"cohort.maximum = {manifest.cohort.maximum}: members' machines would hold {_in_mb(board)} of pages at "
            f"once, and each declines more than {_in_mb(MOST_BOARD)}. {advice(manifest)}"
        )
    if (roll := _roll(manifest)) > MOST_ROLL:
        raise TooLong(
            f"cohort.maximum = {manifest.cohort.maximum}: the tellers would be handed {_in_mb(roll)} of roster and "
            f"credentials at once, and each declines more than {_in_mb(MOST_ROLL)}. {advice(manifest)}"
        )


def demand_signable(manifest: Manifest, kind: str, part: int, length: int) -> None:
    """Raises `TooLong` before a document is signed that no reader takes."""
    longest = min(longest_body(manifest, kind, part), MAX_BODY)
    if length > longest:
        raise TooLong(
            f"{kind} {part} would have {length} bytes, and no reader takes more than {longest}: it is not signed, and "
            f"the study cannot go on. What was published stands. {advice(manifest)}"
        )


def demand_buckets(manifest: Manifest, kind: str, part: int, entries: int) -> None:
    """Raises `TooLong` for a bucket of so many entries, before its document is signed: no peer fetches a longer one."""
    if entries > MOST:
        raise TooLong(
            f"{kind} {part} would have a bucket of {entries} entries, and no reader takes more than {MOST}: it is not "
            "signed, and the study cannot go on. Keys were made to fall into one bucket; admit people by invites"
        )


def advice(manifest: Manifest) -> str:
    """The maximum that would fit this design."""
    fits = largest_cohort(manifest)
    if fits < max(2, manifest.cohort.minimum):
        return f"No cohort that reaches the minimum fits; {_FEWER}"
    return f"With this design a maximum of {fits} fits: publish a study with cohort.maximum = {fits} or lower"


def largest_cohort(manifest: Manifest) -> int:
    """The largest number of members, up to `cohort.maximum`, whose documents are all read; 0 when none is."""
    least, most = 0, manifest.cohort.maximum
    if _fits(manifest):
        return most
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if _fits(_with_maximum(manifest, middle)) else (least, middle - 1)
    return least


def with_room(manifest: Manifest) -> Manifest:
    """The study with the largest maximum for which its documents have room; as it is where not even the minimum fits.
    """
    fits = largest_cohort(manifest)
    if fits < manifest.cohort.minimum:
        return manifest
    return evolve(manifest, cohort=evolve(manifest.cohort, maximum=fits))


def _fits(manifest: Manifest) -> bool:
    return (
        _longest(manifest) <= MAX_BODY and _roll(manifest) <= MOST_ROLL and longest_board(manifest) <= MOST_BOARD
    )


def _with_maximum(manifest: Manifest, maximum: int) -> Manifest:
    lower = min(manifest.cohort.minimum, max(maximum, 2))
    return evolve(manifest, cohort=evolve(manifest.cohort, minimum=lower, maximum=max(maximum, 2)))


def _longest(manifest: Manifest) -> int:
    rounds = protocol_of(manifest).documents(manifest).values()
    return max((*rounds, *(row.longest(manifest, part) for row in rows_of(manifest) for part in row.parts(manifest))))


def _roll(manifest: Manifest) -> int:
    """Bytes of the documents that each teller checks; 0 without tellers."""
    if tellers_of(manifest) is None:
        return 0
    lists = sum(body_bytes(kind, 0, manifest.cohort.maximum) for kind in CLOSING if kind in BUCKETED)
    return longest_chain(manifest) + lists + lists // 100  # of the buckets' own heads


def _in_mb(length: int) -> str:
    return f"{length / 2**20:.1f} MiB"


_FEWER = "ask fewer or smaller surveys"
