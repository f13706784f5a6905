"""A protocol with two results and a given document runs a whole study: everybody reads the same, rows are audited."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from jsonschema import Draft202012Validator

from aggregator.audit import audit, audit_documents
from aggregator.audit.exporting import export_study
from anon.errors import Malformed
from anon.protocols.contract import DocumentArrived, Record
from anon.protocols.models.rows import PublishedRows
from anon.study.given import LONGEST_GIVEN, GivenFile, read_given
from anon.study.schema import study_schema
from anon.transparency.documents import encode_chain, sign_head
from examples.testing import all_contents
from peer.protocols.contract import part_of
from peer.rules.checks import check_sizes
from peer.rules.consent import Policy, explain
from peer.rules.distrust import Distrust
from peer.rules.ledger import Ledger
from peer.rules.lifecycle import State
from tests.networks.test_second_protocol import STUDY as COUNTED
from tests.support import drawn_rows, noisy_count
from tests.support.clock import START
from tests.support.course import course, live_on
from tests.support.fake_aggregator import DECLARED
from tests.support.protocols import with_toy
from tests.support.world import in_memory, published, sealed

PROTOCOLS = with_toy(drawn_rows.PROTOCOL)
STUDY = COUNTED.replace('kind = "noisy-count"', 'kind = "rows"').replace(
    "[schedule]", '[[given]]\nname = "classes"\ndescription = "The two answers."\nfile = "classes.json"\n[schedule]'
)
CONTENT = b'["0", "1"]'
GIVEN = {"classes": CONTENT}


@pytest.mark.slow
async def test_a_whole_study_in_memory_publishes_a_model_and_rows(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", STUDY, protocols=PROTOCOLS, given=GIVEN) as running:
        live = running.live
        peers = await running.enrol(20)
        await running.close_enrolment(peers)
        await running.go_to(live.rounds[0].window.opens)
        documents = [DocumentArrived(*place, body) for place, body in (await live.round_documents()).items()]
        assert [arrived.body for arrived in documents] == [CONTENT]
        for place, peer in enumerate(peers):
            part = part_of(peer.manifest)
            (answer,) = part.answers(peer.manifest, Record({}, place % 3 // 2), [(0, 0)], documents)
            report = part.perturb(peer.manifest.survey(0), answer.category, os.urandom)
            assert await live.submit(sealed(live, peer.packet(0, 0, bytes(report)))) == "accepted"
        await running.go_to(live.rounds[0].window.closes)
        assert [signed.head.kind for signed in live.chain] == [
            "manifest", "given", "roster", "seed", "credentials", "transcript", "seed", "model", "rows", "report",
        ]
        bodies = await published(live)
        rows = PROTOCOLS.result(bodies["rows", 0])
        assert isinstance(rows, PublishedRows) and len(rows.rows) == drawn_rows.MADE_UP
        assert {text for row in rows.rows for text in row} <= {"0", "1"}
        with pytest.raises(Malformed, match="these are rows"):
            PROTOCOLS.model(bodies["rows", 0])
        numbered = {signed.head.number: await live.body_of(signed.head) for signed in live.chain}
        result = audit_documents(
            encode_chain(live.chain), numbered, contents=await all_contents(live), protocols=PROTOCOLS
        )
        assert result.ok and result.model_checked and result.packets == 20, result.lines()
        await export_study(live, tmp_path / "out")
        assert (tmp_path / "out/rows.json").read_bytes() == bodies["rows", 0]
        assert audit(tmp_path / "out", protocols=PROTOCOLS).lines() == result.lines()
        number = next(signed.head.number for signed in live.chain if signed.head.kind == "rows")
        forged: dict[str, Any] = json.loads(numbered[number])
        forged["rows"][0] = ["1" if forged["rows"][0] == ["0"] else "0"]
        lied = audit_documents(
            encode_chain(live.chain),
            numbered | {number: json.dumps(forged).encode()},
            contents=await all_contents(live),
            protocols=PROTOCOLS,
        )
        assert not lied.ok and result.report_checked
        spelled = {("rows", 0): json.dumps(forged, sort_keys=True, separators=(",", ":")).encode() + b"\n"}
        faults = {
            "rows 0: is not what the transcripts give": bodies | spelled,
            "rows 0: is not in its one spelling": bodies | {("rows", 0): bodies["rows", 0] + b" "},
            "rows 0: was never published, but what rests on it was": {
                place: body for place, body in bodies.items() if place[0] != "rows"
            },
            "model 0: was never published, but what rests on it was": {
                place: body for place, body in bodies.items() if place[0] != "model"
            },
            "given 0: is another document than the manifest names": bodies | {("given", 0): b"[" * 1000},
        }
        unreadable = _signed_again(live.tools.home.signing_key, live.study, bodies | spelled | {("model", 0): b"\xff"})
        found = audit_documents(*unreadable, contents=await all_contents(live), protocols=PROTOCOLS).findings
        assert {finding.document for finding in found} == {"model 0", "rows 0"}, "one does not hide the other"
        for fault, changed in faults.items():
            again = _signed_again(live.tools.home.signing_key, live.study, changed)
            found = audit_documents(*again, contents=await all_contents(live), protocols=PROTOCOLS)
            assert fault in [f"{finding.document}: {finding.fault}" for finding in found.findings], (
                fault,
                found.lines(),
            )


def _signed_again(key: Any, study: bytes, bodies: dict[tuple[str, int], bytes]) -> tuple[bytes, dict[int, bytes]]:
    """The same study as its aggregator could have signed it, with these bodies."""
    chain: list[Any] = []
    for (kind, part), body in bodies.items():
        chain.append(sign_head(key, study, chain, kind, part, body))
    return encode_chain(chain), dict(enumerate(bodies.values()))


@pytest.mark.slow
async def test_a_whole_study_over_loopback_reads_the_given_document(tmp_path: Path) -> None:
    async with course(tmp_path, "ada", "grace", "emmy", protocols=PROTOCOLS) as (clock, people):
        host, *guests = people
        manifest = await host.aggregator.create_study(PROTOCOLS.proposal(STUDY), given=GIVEN)
        invites = await host.aggregator.create_invites(manifest.study_id, 2, host.address)
        for guest, invite in zip(guests, invites, strict=True):
            sheet = await guest.peer.look(invite)
            assert not sheet.objections and any("“classes”: “The two answers.”" in line for line in sheet.statements)
            await guest.peer.join(invite, sheet.epsilon)
        await live_on(clock, people, manifest.timetable.ends + 8 * 86400.0)
        for guest in guests:
            (status,) = [status for status in guest.peer.status() if status.study == manifest.study_id]
            assert status.state == State.FINISHED
        assert ("rows", 0) in await published(host.aggregator.study(manifest.study_id))


async def test_another_document_than_the_manifest_names_is_not_fetched_and_is_found_by_the_audit(
    tmp_path: Path,
) -> None:
    async with in_memory(tmp_path / "home", STUDY, protocols=PROTOCOLS, given=GIVEN) as running:
        live, other = running.live, b'["1", "0"]'
        key = live.tools.home.signing_key
        forged = [live.chain[0], sign_head(key, live.study, live.chain[:1], "given", 0, other)]
        check_sizes(live.manifest, live.chain)
        with pytest.raises(Distrust, match="another public document"):
            check_sizes(live.manifest, forged)
        with pytest.raises(Distrust, match="holds back a public document"):
            check_sizes(live.manifest, live.chain[:1])
        bodies = {0: live.manifest.to_bytes(), 1: other}
        found = audit_documents(
            encode_chain(forged), bodies, contents=await all_contents(live), protocols=PROTOCOLS
        ).findings
        assert [finding.document for finding in found] == ["given 0"]


def test_a_study_is_published_with_its_documents_and_only_where_its_design_reads_them() -> None:
    proposal = PROTOCOLS.proposal(STUDY)
    with pytest.raises(Malformed, match=r"given\.classes: expected a content"):
        noisy_manifest(STUDY, {})
    assert noisy_manifest(STUDY, GIVEN).given[0].length == len(CONTENT) and proposal.given[0].file == "classes.json"
    given = STUDY[STUDY.index("[[given]]") : STUDY.index("[schedule]")]
    with pytest.raises(Malformed, match="reads no given document"):
        PROTOCOLS.proposal(DECLARED + given)
    twice = STUDY.replace(given, given + given)
    with pytest.raises(Malformed, match="different names"):
        PROTOCOLS.proposal(twice)


def test_a_study_file_names_no_file_beyond_its_own_folder(tmp_path: Path) -> None:
    """It may be a stranger's, and whatever it names is published."""
    folder = tmp_path / "study"
    folder.mkdir()
    (tmp_path / "secret").write_text("mine")
    (folder / "classes.json").write_bytes(CONTENT)
    (folder / "long").write_bytes(bytes(LONGEST_GIVEN + 9))
    (folder / "link").symlink_to(tmp_path / "secret")

    def named(file: str) -> dict[str, bytes]:
        return read_given([GivenFile("classes", "The answers.", file)], folder)

    assert named("classes.json") == GIVEN and len(named("long")["classes"]) == LONGEST_GIVEN + 1
    for file in ("../secret", str(tmp_path / "secret"), "link", ".", "gone", "a\0b", "x" * 5000):
        with pytest.raises(Malformed, match="below the study file's folder"):
            named(file)


def noisy_manifest(text: str, given: dict[str, bytes]):
    from anon.protocols.resolve import resolve
    from tests.anon.study.test_manifest import KEYS

    return resolve(PROTOCOLS.proposal(text), KEYS, 1_800_000_000, given=given)


def test_consent_and_plans_know_the_study() -> None:
    manifest = noisy_manifest(STUDY, GIVEN)
    sheet = explain(manifest, Policy(minimum_cohort=2), Ledger(10**10), START)
    assert sheet.objections == () and sheet.odds and evolve(manifest, given=()).given == ()


@pytest.mark.parametrize(("text", "toy"), [(COUNTED, noisy_count.PROTOCOL), (STUDY, drawn_rows.PROTOCOL)])
def test_the_study_file_of_a_toy_fits_the_schema_that_a_program_with_it_prints(text: str, toy: Any) -> None:
    schema = study_schema(with_toy(toy).designs)
    Draft202012Validator.check_schema(schema)
    assert [fault.message for fault in Draft202012Validator(schema).iter_errors(tomllib.loads(text))] == []
    wrong = text.replace("epsilon = 2.0", "epsilons = 2.0")
    assert wrong != text and list(Draft202012Validator(schema).iter_errors(tomllib.loads(wrong)))
