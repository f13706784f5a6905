"""A published study as a folder: written by an aggregator, checked by anyone, file by file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve

from aggregator.audit.buckets import Contents, bucket_places
from aggregator.audit.documents import audit_documents
from aggregator.audit.result import AuditResult, Finding
from aggregator.compute import HERE, Compute
from aggregator.protocols.installed import PROTOCOLS
from anon.errors import Malformed, Refused, because
from anon.protocols.kinds import files_of
from anon.protocols.models import rows
from anon.protocols.registry import Protocols
from anon.study.manifest import Manifest
from anon.transparency.documents import SignedHead, encode_chain, parse_chain
from anon.transparency.exported_chain import FINGERPRINTS, content_of
from anon.transparency.fingerprint import listing

HEADS = "heads"
DOCUMENTS = "documents"
CONTENTS = "contents"
_NUMBER = re.compile("0|[1-9][0-9]{0,5}")


def export(
    manifest: Manifest, chain: Sequence[SignedHead], bodies: Mapping[int, bytes], directory: Path
) -> dict[str, int]:
    """Write chain and bodies under the names they have over HTTP (`heads`, `documents/K`), and the fingerprint of every
    head as text. Results and report get names of their own too, such as `model.json` (`files_of`). Returns how many
    documents there are of each kind.

    Raises `Refused` when the directory exists.
    """
    if directory.exists():
        raise Refused(f"{directory}: already exists; name a new directory")
    (directory / DOCUMENTS).mkdir(parents=True)
    (directory / HEADS).write_bytes(encode_chain(chain))
    (directory / FINGERPRINTS).write_text(listing(chain[0].head.study, chain), encoding="utf-8")
    written, files = Counter[str](), files_of(manifest)
    for signed in chain:
        body = bodies.get(signed.head.number)
        if body is not None:
            (directory / DOCUMENTS / str(signed.head.number)).write_bytes(body)
            written[signed.head.kind] += 1
            if name := files.get((signed.head.kind, signed.head.part)):
                (directory / name).write_bytes(body)
                for table, text in _tables(name, body).items():
                    (directory / table).write_bytes(text)
    return dict(written)


def _tables(name: str, body_untrusted: bytes) -> dict[str, bytes]:
    """Published rows as comma-separated values too; nothing of another result."""
    try:
        return {f"{Path(name).stem}.csv": rows.from_json(body_untrusted.decode()).to_csv().encode()}
    except (Malformed, UnicodeDecodeError):
        return {}


def export_bucket(directory: Path, number: int, bucket: int, content: bytes) -> None:
    """Write one bucket of a document under the name that it has over HTTP (`contents/K/BUCKET`)."""
    folder = directory / CONTENTS / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(bucket)).write_bytes(content)


def _contents(directory: Path) -> Contents:
    def content(number: int, bucket: int) -> bytes | None:
        path = directory / CONTENTS / str(number) / str(bucket)
        return content_of(path) if path.is_file() else None

    return content


def audit(
    directory: Path | str, key: bytes | None = None, compute: Compute = HERE, protocols: Protocols = PROTOCOLS
) -> AuditResult:
    """`audit_documents` of what `export` wrote, or of the same files fetched from the aggregator.

    `key` is the aggregator's, 32 bytes, where it is known from elsewhere; `compute` as there. Copies of documents under
    other names must be the same bytes. Other files are named as not checked.
    """
    directory = Path(directory)
    try:
        chain = content_of(directory / HEADS)
        numbered = {path.name: path for path in (directory / DOCUMENTS).iterdir() if _NUMBER.fullmatch(path.name)}
        bodies = {int(name): content_of(path) for name, path in numbered.items()}
        beside = sorted(path for path in directory.rglob("*") if not path.is_dir())
        files = {path.relative_to(directory).as_posix(): path for path in beside}
        result = audit_documents(chain, bodies, key, compute, _contents(directory), protocols)
        manifest = protocols.manifest(bodies[0])
        heads = parse_chain(chain, manifest.aggregator_key, manifest.study_id)
        copies = _copies(manifest, heads, bodies)
        findings = [
            Finding(name, "is not what was signed; do not open it, and ask for the folder anew")
            for name, content in copies.items()
            if name in files and content_of(files[name]) not in content
        ]
    except OSError as error:
        raise Malformed(f"{directory}: not an exported study{because(error)}; {_meant(directory)}") from None
    known = {HEADS, *copies, *(f"{DOCUMENTS}/{signed.head.number}" for signed in heads)}
    known |= {f"{CONTENTS}/{number}/{bucket}" for number, bucket in bucket_places(manifest, heads, bodies)}
    others = tuple(name for name in files if name not in known)
    return evolve(result, findings=(*result.findings, *findings), not_checked=(*result.not_checked, *others))


def _meant(directory: Path) -> str:
    inside = directory / "published"
    return f"did you mean {inside}?" if (inside / HEADS).is_file() else "export it again, or ask for it anew"


def _copies(
    manifest: Manifest, chain: Sequence[SignedHead], bodies: Mapping[int, bytes]
) -> dict[str, tuple[bytes, ...]]:
    """The files that an export has beside the documents, each with the contents it may have: nothing else."""
    files = files_of(manifest)
    found: dict[str, tuple[bytes, ...]] = dict.fromkeys(files.values(), ())
    for signed in chain:
        name = files.get((signed.head.kind, signed.head.part))
        if name and signed.head.number in bodies:
            found[name] = (bodies[signed.head.number],)
            found |= {table: (text,) for table, text in _tables(name, bodies[signed.head.number]).items()}
    return found | {FINGERPRINTS: (listing(manifest.study_id, chain).encode(),)}
