"""The kinds of documents that every study can publish: their parts, their longest bodies, and who checks them.

`KINDS` has them in the order of publication:

* `manifest`: everything that can ever be asked (`anon.study.manifest`).
* `tellers`: where a study has tellers, each one's word that it serves this study (`anon.sharing.statements`).
  It is published with the manifest.
* `given`: the public documents that staff give to everybody, published with the manifest (`anon.study.given`).
* `abandoned`: how many enrolled, where that was too few. Nothing follows it.
* `roster`: each enrolment's key, contribution and commitment; never a name or an invite (`anon.wire.messages`).
* `seed`: the random value that the manifest committed to. With the roster it decides who draws which survey.
* `credentials`: one signature for each entry of the roster.
* Here come the documents of the protocol's rounds, which have no row: `SharedPart.documents` names them. The
  histogram's are `thresholds` and `edges`.
* `unsummed`: why a round has no sum, with evidence if its tellers signed two lists (`anon.sharing.round_document`). The
  study ends with it.
* `transcript`: the accepted packets of one survey, one document for each survey (`anon.transparency.transcript`).
* `seed`, part 1: the value that draws which reports only score.
* Here come the protocol's results, which have no row either: `SharedPart.results` names them. The usual one is `model`.
* `report`: a page for people.

Each document comes under a signed head (`anon.transparency.documents`).

A transcript's bound counts who can have drawn its survey. Tags draw independently, so more than the mean and
sqrt(28 n) of n members happen with probability below 2**-80 (Hoeffding 1963, theorem 1: exp(-2 * 28)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache, partial
from math import isqrt
from typing import Final

from attrs import frozen

from anon.credential import SIGNATURE_SIZE
from anon.protocols.contract import Place
from anon.protocols.posts import recipients
from anon.protocols.registry import protocol_of
from anon.protocols.tellers import tellers_of
from anon.study.manifest import Manifest, Survey
from anon.transparency.buckets import LONGEST_DOCUMENT, MOST, BucketDocument, wire_bytes
from anon.transparency.closing import CLOSING
from anon.transparency.documents import MAX_BODY, Head
from anon.transparency.transcript import digests_length, empty_length, entry_length
from anon.wire.lists import list_length
from anon.wire.messages import (
    COMMITMENT_POINT_BYTES,
    CONTRIBUTION_BYTES,
    KEY_BYTES,
    RosterEntry,
    encode_abandoned,
    encode_credentials,
    encode_roster,
    encode_seed,
)

LONGEST_MANIFEST = 1024 * 1024
"""Bytes. The most that a study file can describe, 4,000 surveys, takes some 700 kB."""
LONGEST_REPORT = MAX_BODY
"""Bytes. Text and pictures follow from no manifest; no peer fetches it unasked."""


class Stage(StrEnum):
    """When a document is published."""

    FIRST = "with the manifest"
    BEFORE = "before the rounds"
    INSTEAD = "instead of everything but the manifest"
    AFTER = "after the rounds"


@frozen
class DocumentKind:
    """A kind of document. `parts`: the numbers it has in a study; `longest`: bytes of the longest body of a part.

    `bucket`: bytes of the longest body of a bucket with so many entries; None for a kind that is never in buckets.
    `checked_by`: the code that reads a published one and stops, or reports, at a fault. `rests_on`: the kinds without
    which it cannot be. `file`: its own name in an export.
    """

    kind: str
    stage: Stage
    parts: Callable[[Manifest], Sequence[int]]
    longest: Callable[[Manifest, int], int]
    checked_by: tuple[str, ...]
    rests_on: tuple[str, ...] = ()
    file: str = ""
    bucket: Callable[[int], int] | None = None


def _only(part: int) -> Callable[[Manifest], Sequence[int]]:
    return lambda _manifest: (part,)


def _with_tellers(manifest: Manifest) -> Sequence[int]:
    return (0,) if tellers_of(manifest) is not None else ()


def _surveys(manifest: Manifest) -> Sequence[int]:
    return range(len(manifest.surveys))


def _manifest(_study: Manifest, _part: int) -> int:
    return LONGEST_MANIFEST


def _countersignatures(study: Manifest, _part: int) -> int:
    arrangement = tellers_of(study)
    if arrangement is None:
        return 0
    from anon.sharing.statements import longest_countersignatures  # with tellers alone: it loads all about shares

    return longest_countersignatures(len(arrangement.tellers))


def _numbered(manifest: Manifest) -> Sequence[int]:
    return range(len(manifest.given))


def _content(study: Manifest, part: int) -> int:
    return study.given[part].length


def _no_sum(_study: Manifest, _part: int) -> int:
    from anon.sharing.round_document import LONGEST_UNSUMMED

    return LONGEST_UNSUMMED


def _abandoned(study: Manifest, _part: int) -> int:
    return len(encode_abandoned(bytes(32), study.cohort.maximum))


def _roster(study: Manifest, _part: int) -> int:
    return _at_least_in_buckets(study, _rosters(most_whole(study)))


def _rosters(count: int) -> int:
    entry = RosterEntry(bytes(KEY_BYTES), bytes(CONTRIBUTION_BYTES), bytes(COMMITMENT_POINT_BYTES))
    empty, single = (len(encode_roster(bytes(32), entries)) for entries in ([], [entry]))
    return empty - 1 + list_length(count, single - empty)


def _seed(_study: Manifest, _part: int) -> int:
    return len(encode_seed(bytes(32), bytes(32)))


def _credentials(study: Manifest, _part: int) -> int:
    return _at_least_in_buckets(study, _credential_lists(most_whole(study)))


def _credential_lists(count: int) -> int:
    empty, single = (len(encode_credentials(bytes(32), issued)) for issued in ([], [bytes(SIGNATURE_SIZE)]))
    return empty - 1 + list_length(count, single - empty)


def _transcript(study: Manifest, part: int) -> int:
    survey = study.surveys[part]
    empty = empty_length(bytes(32), survey.survey)
    whole = empty - 1 + list_length(most_drawn(study, survey), entry_length(study, survey, recipients(study)))
    return _at_least_in_buckets(study, whole)


def _at_least_in_buckets(study: Manifest, whole: int) -> int:
    return max(whole, LONGEST_DOCUMENT) if study.bucketed_from else whole


def most_whole(manifest: Manifest) -> int:
    """The most members whose documents are whole: with more they are in buckets, if the study says so."""
    maximum, threshold = manifest.cohort.maximum, manifest.bucketed_from
    return min(maximum, threshold - 1) if threshold else maximum


def longest_bucket(manifest: Manifest, kind: str) -> int:
    """Bytes of the longest body of a bucket that peers fetch. 0 for a document that is never in buckets."""
    row = row_of(manifest, kind, 0)
    return 0 if row is None or row.bucket is None or not manifest.bucketed_from else row.bucket(MOST)


def can_be_in_buckets(kind: str) -> bool:
    """True if documents of this kind are in buckets where a study's are."""
    return any(row.kind == kind and row.bucket is not None for row in KINDS)


def padded_length(document: BucketDocument, most: int) -> int:
    """Bytes of a bucket on the wire, where the fullest has `most` entries. All buckets of a transcript are equally
    long: who watches a member's line must not see which one it was. Others are as long as they are (0)."""
    return wire_bytes(digests_length(most), document.bits) if document.kind == "transcript" else 0


def _report(_study: Manifest, _part: int) -> int:
    return LONGEST_REPORT


def most_drawn(manifest: Manifest, survey: Survey) -> int:
    """How many members can have drawn the survey: all of them, or the mean and a tail below 2**-80. Of a study in
    buckets, those of a whole transcript."""
    everybody = most_whole(manifest)
    for slot in manifest.slots:
        for row in slot.rows:
            if row.survey == survey.survey:
                mean = -(-everybody * row.weight // slot.total)
                return min(everybody, mean + isqrt(28 * everybody) + 1)
    return 0


_JOINING = ("peer.rules.tellers.check_tellers", "aggregator.audit.audit")
_COUNTED = (*CLOSING, "transcript")
_MEMBERS, _AUDIT = ("peer.rules.checks.check_membership", "aggregator.audit.audit"), "aggregator.audit.audit"
KINDS: Final = (
    DocumentKind("manifest", Stage.FIRST, _only(0), _manifest, ("anon.protocols.registry.check_study",)),
    DocumentKind("tellers", Stage.FIRST, _with_tellers, _countersignatures, _JOINING),
    DocumentKind("given", Stage.FIRST, _numbered, _content, ("peer.rules.checks.check_sizes", _AUDIT)),
    DocumentKind("abandoned", Stage.INSTEAD, _only(0), _abandoned, ()),
    DocumentKind("roster", Stage.BEFORE, _only(0), _roster, _MEMBERS, bucket=_rosters),
    DocumentKind("seed", Stage.BEFORE, _only(0), _seed, _MEMBERS),
    DocumentKind("credentials", Stage.BEFORE, _only(0), _credentials, _MEMBERS, bucket=_credential_lists),
    DocumentKind("unsummed", Stage.AFTER, _with_tellers, _no_sum, (_AUDIT,), CLOSING),
    DocumentKind(
        "transcript", Stage.AFTER, _surveys, _transcript, ("peer.run.inclusion", _AUDIT), CLOSING, bucket=digests_length
    ),
    DocumentKind("seed", Stage.AFTER, _only(1), _seed, (_AUDIT,)),
    DocumentKind("report", Stage.AFTER, _only(0), _report, (), _COUNTED, "report.html"),
)
"""In the order of publication. The second seed draws the score cohort. The audit makes a report again
and names one of other words as not checked."""


def is_given(manifest: Manifest, head: Head) -> bool:
    """False for a head of a given document that is not the one that the manifest names."""
    return head.kind != "given" or (head.part < len(manifest.given) and head.digest == manifest.given[head.part].digest)


@lru_cache(maxsize=64)
def rows_of(manifest: Manifest) -> tuple[DocumentKind, ...]:
    """The kinds that a study can have, in the order of publication: its protocol's results come before the report."""
    *before, report = KINDS
    return (*before, *_results(manifest), report)


def _results(manifest: Manifest) -> Iterator[DocumentKind]:
    longest = protocol_of(manifest).results(manifest)
    for kind in dict.fromkeys(kind for kind, _ in longest):
        parts = tuple(part for named, part in longest if named == kind)
        bounds = {part: longest[kind, part] for part in parts}
        yield DocumentKind(
            kind, Stage.AFTER, partial(_these, parts), partial(_bound, bounds), ("peer.predict", _AUDIT), _COUNTED
        )


def _these(parts: Sequence[int], _study: Manifest) -> Sequence[int]:
    return parts


def _bound(bounds: Mapping[int, int], _study: Manifest, part: int) -> int:
    return bounds[part]


def files_of(manifest: Manifest) -> dict[Place, str]:
    """The names of the files that an export has besides the numbered documents: each result, and the report."""
    results = protocol_of(manifest).results(manifest)
    named = {(kind, part): f"{kind}-{part}.json" if part else f"{kind}.json" for kind, part in results}
    return named | {(row.kind, 0): row.file for row in KINDS if row.file}


def kinds_of(*stages: Stage) -> tuple[str, ...]:
    """The kinds of these stages, in the order of publication."""
    return tuple(row.kind for row in KINDS if row.stage in stages)


def row_of(manifest: Manifest, kind: str, part: int) -> DocumentKind | None:
    """The row of a document; None for one of a round, and for one that the study cannot have."""
    return next((row for row in rows_of(manifest) if row.kind == kind and part in row.parts(manifest)), None)
