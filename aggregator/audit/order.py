"""Step 3 of an audit: which documents there are, in which order, and what each rests on. Read from heads alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain as chained

from anon.protocols.contract import Place
from anon.protocols.kinds import Stage, rows_of
from anon.protocols.registry import protocol_of
from anon.study.manifest import Manifest
from anon.transparency.closing import CLOSING
from anon.transparency.documents import SignedHead

Fault = tuple[str, str]
"""The name of a document, and its fault."""
_ENDING: Place = "unsummed", 0


def order_faults(manifest: Manifest, rounds: Sequence[Place], chain: Sequence[SignedHead]) -> Iterator[Fault]:
    """Documents out of order, missing, or of another study. `rounds`: the documents of the rounds, in order."""
    places = [(signed.head.kind, signed.head.part) for signed in chain]
    yield from _out_of_order(manifest, rounds, places)
    yield from _missing(manifest, rounds, {kind for kind, _ in places})
    yield from _left_out(protocol_of(manifest).results(manifest), places)
    known = {*rounds, *_parts(manifest, *Stage)}
    for kind, part in places:
        if (kind, part) not in known:
            yield f"{kind} {part}", "no such document belongs to the study"


def ending_faults(
    manifest: Manifest, ended: int, summed: Sequence[Place], chain: Sequence[SignedHead]
) -> Iterator[str]:
    """Documents that cannot be beside an end without the sum of round `ended`. `summed`: those of the rounds."""
    places = {(signed.head.kind, signed.head.part) for signed in chain}
    if not 0 <= ended < len(summed):
        yield f"names round {ended}, and the study has {len(summed)}"
    # Where members write, the page of the last round is there: it shows that too few wrote.
    shown = ended + any(survey.written for survey in manifest.surveys)
    never = {*_parts(manifest, Stage.AFTER), *summed[shown:]} - {_ENDING}
    if later := [f"{kind} {part}" for kind, part in places & never]:
        yield f"says that round {ended} has no sum, and there is {min(later)}"
    if earlier := [f"{kind} {part}" for kind, part in summed[:ended] if (kind, part) not in places]:
        yield f"says that round {ended} has no sum, and {earlier[0]} was never published"


def _out_of_order(manifest: Manifest, rounds: Sequence[Place], places: Sequence[Place]) -> Iterator[Fault]:
    first = _parts(manifest, Stage.FIRST)
    if [place for place in places if place not in first] == _parts(manifest, Stage.INSTEAD):
        return
    expected = [*first, *_parts(manifest, Stage.BEFORE), *rounds, *_parts(manifest, Stage.AFTER)]
    remaining = iter(expected)
    for kind, part in places:
        if (kind, part) in expected and (kind, part) not in remaining:  # which takes from it all up to the place
            yield f"{kind} {part}", "published out of order"
            return


def _missing(manifest: Manifest, rounds: Sequence[Place], kinds: set[str]) -> Iterator[Fault]:
    """Whatever was learned rests on a roster and on every transcript."""
    of_rounds = CLOSING if kinds & {kind for kind, _ in rounds} else ()
    needed = chained(of_rounds, (below for row in rows_of(manifest) if row.kind in kinds for below in row.rests_on))
    for kind in dict.fromkeys(needed):
        if kind not in kinds:
            yield kind, "was never published, but what rests on it was"


def _left_out(results: Iterable[Place], places: Sequence[Place]) -> Iterator[Fault]:
    """A result that is not there though a later one, or the report on all of them, is."""
    ordered = [*results, ("report", 0)]
    there = [number for number, place in enumerate(ordered) if place in places]
    for kind, part in ordered[: max(there, default=0)]:
        if (kind, part) not in places:
            yield f"{kind} {part}", "was never published, but what rests on it was"


def _parts(manifest: Manifest, *stages: Stage) -> list[Place]:
    return [(row.kind, part) for row in rows_of(manifest) if row.stage in stages for part in row.parts(manifest)]
