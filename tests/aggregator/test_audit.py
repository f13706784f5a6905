"""The audit finds nothing in an honest study and finds each tampering."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from nacl.signing import SigningKey
from typer.testing import CliRunner

from aggregator.audit import AuditResult, Verdict, audit, audit_documents, export, export_bucket
from aggregator.cli.main import app
from aggregator.compute import Compute
from anon.crypto.labels import PACKET_DIGEST
from anon.errors import Malformed, Refused, RejectedProof
from anon.study.manifest import Manifest
from anon.transparency.buckets import document_over
from anon.transparency.closing import CLOSING
from anon.transparency.documents import SignedHead, encode_chain, sign_head
from anon.transparency.merkle import leaf_hash
from anon.transparency.transcript import digest_list
from anon.wire.cbor import decode, encode, sha256
from anon.wire.packets import PublishedPacket, parse_published
from tests.support.packets import FIELDS
from tests.support.protocols import parse_manifest
from tests.support.world import directed, in_memory, sealed, study_text

Place = tuple[str, int]


@frozen
class Published:
    """A finished study as the public sees it, and the aggregator's key to lie with. `contents`: the one bucket of each
    document that has buckets."""

    key: SigningKey
    chain: tuple[SignedHead, ...]
    bodies: dict[Place, bytes]
    contents: dict[Place, bytes]

    @property
    def manifest(self) -> Manifest:
        return parse_manifest(self.bodies["manifest", 0])

    def audited(self, changes: dict[Place, bytes]) -> AuditResult:
        """Audit the study as if the aggregator had published other bodies, all properly signed. Of what has buckets the
        other content of the one is given."""
        chain: list[SignedHead] = []
        numbered, contents = {}, self.contents | changes
        for one in self.chain:
            head = one.head
            place = head.kind, head.part
            body = changes.get(place, self.bodies[place])
            if place in changes and place in self.contents:
                body = document_of(head.study, place, body)
            numbered[head.number] = body
            chain.append(sign_head(self.key, head.study, chain, head.kind, head.part, body))
        places = [(one.head.kind, one.head.part) for one in self.chain]
        return audit_documents(encode_chain(chain), numbered, contents=lambda number, _bucket: contents[places[number]])

    def content(self, number: int, bucket: int) -> bytes | None:
        """As `audit_documents` asks for it."""
        head = self.chain[number].head
        return None if bucket else self.contents.get((head.kind, head.part))


def document_of(study: bytes, place: Place, content: bytes) -> bytes:
    """The document over one bucket, whatever is in it."""
    entries = decode(content)[-1]
    packets = [sha256(PACKET_DIGEST, packet) for packet in entries] if place[0] == "transcript" else []
    body = digest_list(study, place[1], packets) if place[0] == "transcript" else content
    return document_over(study, *place, len(entries), [leaf_hash(body)], body).to_bytes()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A study with privately found cuts, from end to end."""
    return asyncio.run(_finish(tmp_path_factory.mktemp("audit") / "home"))


@pytest.mark.slow
def test_a_study_of_one_bit_packets_is_recomputed(tmp_path: Path) -> None:
    published = asyncio.run(_finish(tmp_path / "home", study_text("bits")))
    result = published.audited({})
    assert result.findings == () and result.ok and result.model_checked
    model = published.bodies["model", 0]
    lied = published.audited({("model", 0): model.replace(b'"base_rate":0.', b'"base_rate":0.1', 1)})
    assert not lied.ok


@pytest.mark.slow
def test_what_a_rule_says_of_itself_is_recomputed_and_an_altered_part_is_found(tmp_path: Path) -> None:
    """An aggregator that signs another result than the packets give."""
    published = asyncio.run(_finish(tmp_path / "home", directed("rule")))
    result = published.audited({})
    assert result.findings == () and result.ok and result.model_checked and result.report_checked
    model = json.loads(published.bodies["model", 0])
    belief = model["belief"]
    assert belief["members"] == 12 and belief["features"] == 2
    for altered in (
        belief | {"contradicted": not belief["contradicted"]},
        belief | {"against": 0.001},
        belief | {"enough": 10},
        None,
    ):
        found = published.audited({("model", 0): json.dumps(model | {"belief": altered}).encode()}).findings
        assert found, altered
    without = {key: value for key, value in model.items() if key != "belief"}
    assert not published.audited({("model", 0): json.dumps(without).encode()}).ok


async def _finish(home: Path, text: str = study_text("quantile")) -> Published:
    async with in_memory(home, text) as running:
        live = running.live
        peers = await running.enrol(12)
        await running.close_enrolment(peers)
        sent = [peer.packet(category=number % 2) for number, peer in enumerate(peers)]
        for window in [one.window for one in live.rounds]:
            await running.go_to(window.opens)
            for packet in sent:
                if live.manifest.surveys[packet.survey].window == window:
                    assert await live.submit(sealed(live, packet)) == "accepted"
            await running.go_to(window.closes)
        bodies = {(one.head.kind, one.head.part): await live.body_of(one.head) for one in live.chain}
        contents = {
            (one.head.kind, one.head.part): content
            for one in live.chain
            async for _bucket, content in live.contents(one.head)
        }
        return Published(running.app.home.signing_key, live.chain, bodies, contents)


def _numbered(published: Published) -> dict[int, bytes]:
    return {one.head.number: published.bodies[one.head.kind, one.head.part] for one in published.chain}


def test_an_honest_study_has_no_findings(finished: Published) -> None:
    result = finished.audited({})
    assert result.findings == () and result.ok and result.model_checked
    assert (result.enrolled, result.packets) == (12, 12)


def test_each_packet_is_decoded_once(finished: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding was a tenth of an audit when each check did it for itself."""
    read: list[bytes] = []

    def counted(plaintext: bytes) -> PublishedPacket:
        read.append(plaintext)
        return parse_published(plaintext)

    monkeypatch.setattr("anon.transparency.bucketed.parse_published", counted)
    assert finished.audited({}).packets == len(read) == len(set(read)) > 0


def test_what_is_exported_is_what_is_audited(finished: Published, tmp_path: Path) -> None:
    written = export(finished.manifest, finished.chain, _numbered(finished), tmp_path / "out")
    assert audit(tmp_path / "out").findings, "the documents alone are not all"
    _with_buckets(finished, tmp_path / "out")
    assert written["transcript"] == 1 and (tmp_path / "out" / "report.html").exists()
    assert audit(tmp_path / "out", bytes(finished.key.verify_key)).ok
    with pytest.raises(Refused, match="already exists"):
        export(finished.manifest, finished.chain, _numbered(finished), tmp_path / "out")
    with pytest.raises(RejectedProof):
        audit(tmp_path / "out", bytes(32))
    with pytest.raises(Malformed, match="export it again, or ask for it anew"):
        audit(tmp_path / "nowhere")
    (tmp_path / "out").rename(tmp_path / "published")
    with pytest.raises(Malformed, match=r"did you mean .*published\?"):
        audit(tmp_path)


def _packets(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Published], dict[Place, bytes]]:
    def tamper(published: Published) -> dict[Place, bytes]:
        fields = decode(published.contents["transcript", 0])
        return {("transcript", 0): encode([*fields[:3], change(fields[3])])}

    return tamper


def _edited(name: str, value: object) -> Callable[[list[bytes]], list[bytes]]:
    def change(packets: list[bytes]) -> list[bytes]:
        fields = decode(packets[0])
        place = FIELDS.index(name)
        fields[place] = value(fields[place]) if callable(value) else value
        return [encode(fields), *packets[1:]]

    return change


def _edges(published: Published) -> dict[Place, bytes]:
    fields = decode(published.bodies["edges", 0])
    n, counts = fields[2]["age"]
    fields[2]["age"] = [n + 1, [counts[0] + 1, *counts[1:]]]
    return {("edges", 0): encode(fields)}


def _model(published: Published) -> dict[Place, bytes]:
    model = json.loads(published.bodies["model", 0])
    model["tables"][0]["log_odds"][0] += 0.01
    return {("model", 0): json.dumps(model).encode()}


TAMPERED: dict[str, tuple[str, Callable[[Published], dict[Place, bytes]]]] = {
    "a packet left in twice": ("strictly sorted", _packets(lambda packets: [packets[0], *packets])),
    "packets out of order": ("strictly sorted", _packets(lambda packets: packets[::-1])),
    "a report changed": ("1 token does not verify", _packets(_edited("report", lambda report: _other(report)))),
    "a token changed": ("1 token does not verify", _packets(_edited("token", lambda token: _other(token)))),
    "a packet of another study": ("wrong-study", _packets(_edited("study", bytes(32)))),
    "a packet of another survey": ("wrong-draw", _packets(_edited("survey", lambda survey: (survey + 1) % 3))),
    "a packet with a share": ("malformed", _packets(_edited("shares", [bytes(32)]))),
    "a packet of another round": ("unknown-slot", _packets(_edited("round", 7))),
    "a packet that is no packet": ("expected version", _packets(lambda packets: [b"\0", *packets])),
    "packets left out": ("not what the transcripts give", _packets(lambda packets: [])),
    "another slot's transcript": (
        "another slot",
        lambda p: {("transcript", 0): encode([1, p.manifest.study_id, 1, decode(p.contents["transcript", 0])[3]])},
    ),
    "counts aimed at other cuts": ("not those of the transcripts", _edges),
    "a model of the aggregator's own": ("not what the transcripts give", _model),
    "a seed that does not open the commitment": (
        "does not open",
        lambda p: {("seed", 0): encode([1, decode(p.bodies["seed", 0])[1], bytes(32)])},
    ),
    "a score value chosen afterwards": (
        "does not open",
        lambda p: {("seed", 1): encode([1, decode(p.bodies["seed", 1])[1], bytes(32)])},
    ),
    "a roster with fewer people": (
        "expected 11",
        lambda p: {
            ("roster", 0): encode([*decode(p.contents["roster", 0])[:2], decode(p.contents["roster", 0])[2][1:]])
        },
    ),
}


def _other(report: bytes) -> bytes:
    return report[:-1] + bytes([report[-1] ^ 1])


@pytest.mark.parametrize("name", TAMPERED)
def test_each_tampering_is_found(finished: Published, name: str) -> None:
    text, tamper = TAMPERED[name]
    result = finished.audited(tamper(finished))
    assert any(text in finding.fault for finding in result.findings), result.findings


def test_a_body_that_is_not_its_heads_is_found(finished: Published) -> None:
    bodies = _numbered(finished)
    last = max(bodies)
    damaged = audit_documents(
        encode_chain(finished.chain), bodies | {last: bodies[last] + b" "}, contents=finished.content
    )
    assert [finding.document for finding in damaged.findings] == ["report 0"]
    there = {number: body for number, body in bodies.items() if number != last}
    missing = audit_documents(encode_chain(finished.chain), there, contents=finished.content)
    assert "missing" in missing.findings[0].fault


def test_a_chain_under_another_key_is_refused(finished: Published) -> None:
    other = SigningKey(bytes(32))
    chain: list[SignedHead] = []
    for one in finished.chain:
        body = finished.bodies[one.head.kind, one.head.part]
        chain.append(sign_head(other, one.head.study, chain, one.head.kind, one.head.part, body))
    with pytest.raises(RejectedProof):
        audit_documents(encode_chain(chain), _numbered(finished))


def _republished(published: Published, places: list[Place], bodies: dict[Place, bytes]) -> AuditResult:
    """Audit a chain of other documents, each properly signed."""
    chain: list[SignedHead] = []
    for kind, part in places:
        study = published.chain[0].head.study
        chain.append(sign_head(published.key, study, chain, kind, part, bodies[kind, part]))
    numbered = {number: bodies[place] for number, place in enumerate(places)}
    return audit_documents(
        encode_chain(chain), numbered, contents=lambda number, _bucket: published.contents.get(places[number])
    )


@pytest.mark.parametrize("kind", ["roster", "seed", "credentials", "transcript"])
def test_a_model_that_rests_on_nothing_published_is_found(finished: Published, kind: str) -> None:
    places = [(one.head.kind, one.head.part) for one in finished.chain if one.head.kind != kind]
    result = _republished(finished, places, finished.bodies)
    assert any(finding.document == kind and "never published" in finding.fault for finding in result.findings)


@pytest.mark.parametrize("last", ["edges", "transcript", "model", "report"])
def test_each_document_alone_names_what_it_rests_on(finished: Published, last: str) -> None:
    """Of each row of the kinds that rests on others, and of a document of a round."""
    places = [("manifest", 0), next((one.head.kind, one.head.part) for one in finished.chain if one.head.kind == last)]
    result = _republished(finished, places, finished.bodies)
    missing = [finding.document for finding in result.findings if "never published" in finding.fault]
    rests_on = {"model": ["transcript"], "report": ["transcript", "model 0"]}
    assert missing == [*CLOSING, *rests_on.get(last, [])]


def test_a_second_model_beside_the_checked_one_is_found(finished: Published) -> None:
    places = [(one.head.kind, one.head.part) for one in finished.chain]
    places.insert(places.index(("model", 0)) + 1, ("model", 1))
    result = _republished(finished, places, finished.bodies | {("model", 1): b"{}"})
    assert [(finding.document, "no such document" in finding.fault) for finding in result.findings] == [
        ("model 1", True)
    ]


def test_a_model_that_names_a_key_twice_is_found(finished: Published) -> None:
    model = b'{"study": "another",' + finished.bodies["model", 0].lstrip()[1:]
    assert not finished.audited({("model", 0): model}).ok


def _exported(published: Published, tmp_path: Path) -> Path:
    export(published.manifest, published.chain, _numbered(published), tmp_path / "out")
    return _with_buckets(published, tmp_path / "out")


def _with_buckets(published: Published, folder: Path) -> Path:
    for one in published.chain:
        content = published.content(one.head.number, 0)
        if content is not None:
            export_bucket(folder, one.head.number, 0, content)
    return folder


def test_the_report_is_made_again_and_the_limits_are_said(finished: Published, tmp_path: Path) -> None:
    folder = _exported(finished, tmp_path)
    result = audit(folder)
    assert result.verdict is Verdict.ALL_CHECKED and result.report_checked and result.not_checked == ()
    assert result.report == (folder / "report.html").read_text("utf-8")
    said = "\n".join(result.lines())
    assert (
        "report made again" in said
        and "public place" in said
        and "left out" in said
        and "invented" in said
        and "--key" in said
    )
    known = audit(folder, bytes(finished.key.verify_key))
    assert "--key" not in "\n".join(known.lines()) and known.figures()["key_checked"] is True


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.json", "report.html", "fingerprints.txt"])
def test_a_copy_that_people_open_is_the_signed_one(finished: Published, tmp_path: Path, name: str) -> None:
    folder = _exported(finished, tmp_path)
    copy = folder / name
    copy.write_bytes(copy.read_bytes().replace(b"0.", b"0.9", 1) + b" ")
    result = audit(folder)
    assert [finding.document for finding in result.findings] == [name]
    assert result.lines()[-1] == "1 fault" and result.verdict is Verdict.FINDINGS
    copy.unlink()
    assert audit(folder).ok, "the documents alone are whole"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["heads", "documents/1", "contents/1/0", "model.json"])
@pytest.mark.parametrize("made", ["pipe", "device", "long"])
def test_a_folder_that_would_be_read_for_ever_is_refused(
    finished: Published, tmp_path: Path, name: str, made: str
) -> None:
    """Archives of strangers may have all three; the long one takes no room on the disk."""
    file = _exported(finished, tmp_path) / name
    file.unlink()
    match made:
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case _:
            file.touch()
            os.truncate(file, 2**40)
    if name == "contents/1/0":
        assert not audit(tmp_path / "out").ok, "a bucket that cannot be read is a missing one"
        return
    with pytest.raises(Malformed, match="not an exported study"):
        audit(tmp_path / "out")


def test_a_copy_of_nothing_published_is_found(finished: Published, tmp_path: Path) -> None:
    """A study that has no model yet: the file beside its documents is somebody's own."""
    places = [one for one in finished.chain if one.head.kind not in {"model", "report"}]
    export(finished.manifest, places, _numbered(finished), tmp_path / "out")
    _with_buckets(finished, tmp_path / "out")
    (tmp_path / "out" / "model.json").write_bytes(finished.bodies["model", 0])
    assert [finding.document for finding in audit(tmp_path / "out").findings] == ["model.json"]


def test_files_that_nobody_signed_are_named(finished: Published, tmp_path: Path) -> None:
    folder = _exported(finished, tmp_path)
    for name in ("notes.txt", "documents/999", "documents/readme", "documents/01"):
        (folder / name).write_text("x")
    result = audit(folder)
    assert result.ok and result.not_checked == ("documents/01", "documents/999", "documents/readme", "notes.txt")
    assert "not checked: notes.txt" in result.lines() and result.verdict is Verdict.NOT_ALL_CHECKED
    said = "\n".join(result.lines())
    assert "no fault in what was checked; 4 things were not checked" in said and "everything published" not in said


def test_a_report_in_other_words_is_named_as_not_checked(finished: Published) -> None:
    """An aggregator's own words, properly signed: an older version's report looks the same to the audit."""
    said = finished.audited(
        {("report", 0): finished.bodies["report", 0].replace(b"What we found", b"What was proved", 1)}
    )
    assert (
        not said.report_checked
        and said.verdict is Verdict.NOT_ALL_CHECKED
        and any(line.startswith("not checked: report.html") for line in said.lines())
    )
    refused = b'<tr><th>refused: duplicate</th><td class="n">3</td></tr>\n</table>'
    page = finished.bodies["report", 0].replace(
        b"</table>\n<p>If the aggregator", refused + b"\n<p>If the aggregator", 1
    )
    counted = finished.audited({("report", 0): page})
    assert page != finished.bodies["report", 0] and counted.report_checked, "refusals stand in no document"
    assert any("aggregator's word" in line for line in counted.lines())


@pytest.mark.slow
def test_the_command_ends_with_the_level_of_the_verdict(finished: Published, tmp_path: Path) -> None:
    """And `--json` says its word."""
    folder = _exported(finished, tmp_path)
    runner, said = CliRunner(), []
    for change in (
        lambda: None,
        lambda: (folder / "notes.txt").write_text("x"),
        lambda: (folder / "model.json").write_text("x"),
    ):
        change()
        plain, told = (runner.invoke(app, ["audit", str(folder), *more]) for more in ([], ["--json"]))
        assert plain.exit_code == told.exit_code
        said.append((told.exit_code, json.loads(told.output)["verdict"]))
    assert said == [(0, "all-checked"), (9, "not-all-checked"), (1, "findings")]


ABOUT_PACKETS = (
    "a packet left in twice",
    "a token changed",
    "a packet of another survey",
    "a packet that is no packet",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, *ABOUT_PACKETS])
def test_an_audit_elsewhere_is_given_public_bytes_and_finds_the_same(
    finished: Published, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each bucket is checked behind a pickle, as in another process or on a cluster."""
    changes = TAMPERED[name][1](finished) if name else {}
    here = finished.audited(changes)
    sent: list[bytes] = []

    def stream(_: Compute, work: Callable[[Any], Any], given: Iterator[Any]) -> Iterator[Any]:
        for one in given:
            sent.append(pickle.dumps((work, one)))
            again, taken = pickle.loads(sent[-1])
            yield again(taken)

    monkeypatch.setattr(Compute, "stream", stream)
    assert finished.audited(changes) == here
    assert len(sent) == 2 and here.ok is (name is None)
