"""Bytes that were signed once stay what they are: four studies that this program ran and published.

`make_golden` wrote them. Each document is read, encoded again, and must be the same bytes; the audit recomputes the
rest.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aggregator.audit import audit
from anon.protocols.models.tables import from_json
from anon.study.manifest import Manifest
from anon.transparency.buckets import document_over, parse_bucket_document
from anon.transparency.documents import encode_chain, parse_chain
from anon.transparency.merkle import leaf_hash
from anon.transparency.transcript import digest_list, parse_digest_list, parse_transcript, transcript_body
from anon.wire.cbor import decode
from anon.wire.invite import parse_invite
from anon.wire.messages import (
    encode_credentials,
    encode_roster,
    encode_seed,
    parse_credentials,
    parse_enrolment,
    parse_roster,
    parse_seed,
    seed_commitment,
)
from tests.support.packets import opened, packet_in
from tests.support.protocols import parse_manifest

PACKETS = {"cuts": 12, "quantile": 12, "bits": 12, "median": 36}


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    with zipfile.ZipFile(Path(__file__).parent / "studies.zip") as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(params=PACKETS)
def study(studies: Path, request: pytest.FixtureRequest) -> Path:
    return studies / str(request.param)


def _manifest(study: Path) -> Manifest:
    return parse_manifest((study / "documents" / "0").read_bytes())


def _documents(study: Path) -> Iterator[tuple[str, bytes]]:
    manifest = _manifest(study)
    for signed in parse_chain((study / "heads").read_bytes(), manifest.aggregator_key, manifest.study_id):
        yield signed.head.kind, (study / "documents" / str(signed.head.number)).read_bytes()


def _seed(manifest: Manifest, body: bytes) -> bytes:
    value = decode(body, "seed")[2]
    return encode_seed(manifest.study_id, parse_seed(body, manifest.study_id, seed_commitment(value)))


def _document(
    manifest: Manifest, kind: str, part: int, body: bytes, again: Callable[[bytes, bytes, int], bytes]
) -> bytes:
    """The document over the one bucket, which is read and written again."""
    document = parse_bucket_document(body, manifest.study_id, kind, part)
    written = again(document.body, manifest.study_id, part)
    return document_over(manifest.study_id, kind, part, document.count, [leaf_hash(written)], written).to_bytes()


def _roster(body: bytes, study: bytes, _part: int) -> bytes:
    return encode_roster(study, parse_roster(body, study))


def _credentials(body: bytes, study: bytes, _part: int) -> bytes:
    return encode_credentials(study, parse_credentials(body, study, 12))


def _digests(body: bytes, study: bytes, slot: int) -> bytes:
    return digest_list(study, slot, parse_digest_list(body, study, slot))


AGAIN: dict[str, Callable[[Manifest, bytes], bytes]] = {
    "manifest": lambda manifest, body: parse_manifest(body).to_bytes(),
    "roster": lambda manifest, body: _document(manifest, "roster", 0, body, _roster),
    "seed": _seed,
    "credentials": lambda manifest, body: _document(manifest, "credentials", 0, body, _credentials),
    "transcript": lambda manifest, body: _document(manifest, "transcript", decode(body)[3], body, _digests),
    "model": lambda manifest, body: from_json(body.decode()).to_json().encode(),
}


def test_every_document_is_read_and_written_as_it_was(study: Path) -> None:
    manifest = _manifest(study)
    kinds = set()
    for kind, body in _documents(study):
        if kind in AGAIN:
            assert AGAIN[kind](manifest, body) == body, kind
            kinds.add(kind)
    assert kinds == set(AGAIN)


def test_every_transcript_is_read_and_written_as_it_was(study: Path) -> None:
    manifest, packets = _manifest(study), 0
    heads = parse_chain((study / "heads").read_bytes(), manifest.aggregator_key, manifest.study_id)
    for head in (signed.head for signed in heads if signed.head.kind == "transcript"):
        content = (study / "contents" / str(head.number) / "0").read_bytes()
        slot, listed = parse_transcript(content, manifest.study_id)
        assert transcript_body(manifest.study_id, slot, listed) == content and slot == head.part
        packets += len(listed)
    assert packets == PACKETS[study.name]


def test_the_chain_is_written_as_it_was(study: Path) -> None:
    manifest, heads = _manifest(study), (study / "heads").read_bytes()
    assert encode_chain(parse_chain(heads, manifest.aggregator_key, manifest.study_id)) == heads


@pytest.mark.slow
def test_the_audit_recomputes_counts_and_model(study: Path) -> None:
    result = audit(study)
    assert result.ok and result.model_checked, result.lines()
    assert (result.enrolled, result.packets) == (12, PACKETS[study.name])


def test_sealed_messages_open_to_the_same_plaintext(study: Path) -> None:
    manifest = _manifest(study)
    sealing_key = decode((study / "keys").read_bytes(), "keys")[1]
    plain = (study / "packet").read_bytes()
    assert opened(manifest, sealing_key, "packets", (study / "sealed-packet").read_bytes()) == plain
    assert packet_in(manifest, plain).to_bytes() == plain
    enrolment = (study / "enrolment").read_bytes()
    assert opened(manifest, sealing_key, "enrol", (study / "sealed-enrolment").read_bytes()) == enrolment
    assert parse_enrolment(enrolment, manifest.study_id, manifest.packets).body() == decode(enrolment, "enrolment")[0]


def test_the_link_names_the_same_study(study: Path) -> None:
    facts = json.loads((study / "facts.json").read_text(encoding="utf-8"))
    invite = parse_invite(facts["link"])
    assert invite.link() == facts["link"] and invite.study.hex() == facts["study"] == _manifest(study).study_id.hex()
