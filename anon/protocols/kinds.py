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
  study ends with it. Where members write, too few of them wrote for anything to be opened.
* `transcript`: the digests of a slot's accepted packets, one document for each slot (`anon.transparency.transcript`).
* `seed`, part 1: the value that draws which reports only score.
* Here come the protocol's results, which have no row either: `SharedPart.results` names them. The usual one is `model`.
* `report`: a page for people.

Each document comes under a signed head (`anon.transparency.documents`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache, partial
from typing import Final

from anon.protocols.contract import Place
from anon.protocols.registry import protocol_of
from anon.protocols.tellers import tellers_of
from anon.study.manifest import Manifest
from anon.transparency import buckets
from anon.transparency.bucketed import body_bytes, whole_bytes
from anon.transparency.buckets import MOST, BucketDocument, wire_bytes
from anon.transparency.closing import CLOSING
from anon.transparency.documents import MAX_BODY, Head
from anon.values import frozen
from anon.wire.messages import encode_abandoned, encode_seed
from anon.wire.packets import MOST_SLOTS

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


def _only(part: int) -> Callable[[Manifest], Sequence[int]]:
    return lambda _manifest: (part,)


def _with_tellers(manifest: Manifest) -> Sequence[int]:
    return (0,) if tellers_of(manifest) is not None else ()


def _slots(manifest: Manifest) -> Sequence[int]:
    return range(len(manifest.slots))


def _can_end(manifest: Manifest) -> Sequence[int]:
    return (0,) if any(survey.written for survey in manifest.surveys) else _with_tellers(manifest)


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


def _seed(_study: Manifest, _part: int) -> int:
    return len(encode_seed(bytes(32), bytes(32)))


def _in_buckets(kind: str) -> Callable[[Manifest, int], int]:
    """With the most entries that one bucket holds: a document over several is shorter."""
    return lambda study, part: whole_bytes(kind, part, min(study.cohort.maximum, buckets.THRESHOLD - 1))


def longest_bucket(kind: str) -> int:
    """Bytes of the longest body of a bucket that peers fetch."""
    return body_bytes(kind, MOST_SLOTS - 1, MOST)


def padded_length(document: BucketDocument, most: int) -> int:
    """Bytes of a bucket on the wire, where the fullest has `most` entries. All buckets of a transcript are equally
    long: who watches a member's line must not see which one it was. Others are as long as they are (0)."""
    if document.kind != "transcript":
        return 0
    return wire_bytes(body_bytes(document.kind, document.part, most), document.bits)


def _report(_study: Manifest, _part: int) -> int:
    return LONGEST_REPORT


_JOINING = ("peer.rules.tellers.check_tellers", "aggregator.audit.audit")
_COUNTED = (*CLOSING, "transcript")
_MEMBERS, _AUDIT = ("peer.rules.bucket_checks.check_membership", "aggregator.audit.audit"), "aggregator.audit.audit"
KINDS: Final = (
    DocumentKind("manifest", Stage.FIRST, _only(0), _manifest, ("anon.protocols.registry.check_study",)),
    DocumentKind("tellers", Stage.FIRST, _with_tellers, _countersignatures, _JOINING),
    DocumentKind("given", Stage.FIRST, _numbered, _content, ("peer.rules.checks.check_sizes", _AUDIT)),
    DocumentKind("abandoned", Stage.INSTEAD, _only(0), _abandoned, ()),
    DocumentKind("roster", Stage.BEFORE, _only(0), _in_buckets("roster"), _MEMBERS),
    DocumentKind("seed", Stage.BEFORE, _only(0), _seed, _MEMBERS),
    DocumentKind("credentials", Stage.BEFORE, _only(0), _in_buckets("credentials"), _MEMBERS),
    DocumentKind("unsummed", Stage.AFTER, _can_end, _no_sum, (_AUDIT,), CLOSING),
    DocumentKind(
        "transcript", Stage.AFTER, _slots, _in_buckets("transcript"), ("peer.run.inclusion", _AUDIT), CLOSING
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
