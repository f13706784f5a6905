"""Real peers and a real aggregator in a study whose documents are in buckets: over HTTP, exported, and audited."""

from __future__ import annotations

import asyncio
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aggregator.audit import audit
from aggregator.audit.exporting import export_study
from aggregator.compute import Compute
from anon.transparency import buckets
from anon.transparency.transcript import parse_transcript, transcript_body
from anon.wire.cbor import decode, encode
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from tests.support.course import course, live_on

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The export of a study of three members in two buckets, which all of them saw to its end."""
    folder = tmp_path_factory.mktemp("course")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "THRESHOLD", 2)
        patch.setattr(buckets, "MEAN", 1)
        patch.setattr(buckets, "LEAST", 0)
        asyncio.run(_lived(folder))
        yield folder / "published"


async def _lived(folder: Path) -> None:
    async with course(folder / "people", *"abc") as (clock, people):
        owner = people[0]
        for one, invite in zip(people, await owner.invites(len(people)), strict=True):
            await one.peer.join(invite, owner.manifest.epsilon)
        await live_on(clock, people, owner.manifest.timetable.ends + 60)
        live = owner.aggregator.study(owner.manifest.study_id)
        assert live.rostered == 3 and not live.trouble
        for one in people:
            (status,) = [known for known in one.peer.status() if known.study == owner.manifest.study_id]
            assert (status.state, [slot.status for slot in status.slots]) == (State.FINISHED, [Status.INCLUDED])
        await export_study(live, folder / "published")
        assert sum((await live.accepted()).values()) == 3


def test_the_audit_of_a_study_in_buckets_finds_nothing(exported: Path) -> None:
    result = audit(exported)
    assert (result.findings, result.enrolled, result.packets) == ((), 3, 3)
    assert result.model_checked and result.report_checked and not result.not_checked
    assert max(path.stat().st_size for path in (exported / "documents").glob("[1345]")) < 200


def change(number: int, edit: Callable[[list[object]], list[object]], bucket: int = 0) -> Callable[[Path], str]:
    """Alters the list of a bucket's entries; the name of its document."""

    def altered(folder: Path) -> str:
        path = max((folder / "contents" / str(number)).iterdir(), key=lambda one: one.stat().st_size)
        *heading, entries = decode(path.read_bytes())
        path.write_bytes(encode([*heading, edit(entries)]))
        return {1: "roster 0", 3: "credentials 0", 4: "transcript 0"}[number]

    return altered


def missing(folder: Path) -> str:
    (folder / "contents" / "1" / "1").unlink()
    return "roster 0"


def moved(folder: Path) -> str:
    """A packet in the bucket of another one."""
    paths = sorted((folder / "contents" / "4").iterdir())
    study = decode(paths[0].read_bytes())[1]
    full = max(paths, key=lambda one: one.stat().st_size)
    other = paths[paths.index(full) - 1]
    packets = [*parse_transcript(other.read_bytes(), study)[1], parse_transcript(full.read_bytes(), study)[1][0]]
    other.write_bytes(transcript_body(study, 0, packets))
    return "transcript 0"


LIES = {
    "an entry less": change(1, lambda entries: entries[1:]),
    "an entry twice": change(1, lambda entries: [entries[0], *entries]),
    "another entry": change(1, lambda entries: [[entries[0][0], bytes(32), entries[0][2]], *entries[1:]]),  # type: ignore[index]
    "a credential less": change(3, lambda issued: issued[1:]),
    "another credential": change(3, lambda issued: [bytes(80), *issued[1:]]),
    "a packet less": change(4, lambda packets: packets[1:]),
    "a packet twice": change(4, lambda packets: [packets[0], *packets]),
    "a bucket missing": missing,
    "a packet elsewhere": moved,
}


@pytest.mark.parametrize("lie", LIES)
def test_the_audit_names_the_document_whose_buckets_are_not_those_that_were_signed(
    exported: Path, tmp_path: Path, lie: str
) -> None:
    folder = tmp_path / "published"
    shutil.copytree(exported, folder)
    document = LIES[lie](folder)
    result = audit(folder)
    assert any(finding.document.startswith(document) for finding in result.findings)


@pytest.mark.parametrize("lie", [None, "a packet twice", "another credential"])
def test_other_processes_are_given_public_bytes_and_find_the_same(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: str | None
) -> None:
    """Two buckets of each in one piece, and each bucket a piece: no verdict depends on what is checked together."""
    folder = tmp_path / "published"
    shutil.copytree(exported, folder)
    if lie is not None:
        LIES[lie](folder)
    here, sent = audit(folder), list[bytes]()

    def stream(_: Compute, work: Callable[[Any], Any], given: Iterator[Any]) -> Iterator[Any]:
        for one in given:
            sent.append(pickle.dumps((work, one)))
            again, taken = pickle.loads(sent[-1])
            yield pickle.loads(pickle.dumps(again(taken)))

    monkeypatch.setattr(Compute, "stream", stream)
    assert audit(folder) == here and len(sent) == 2 and here.ok is (lie is None)
    for name in ("TRANSCRIPTS_AT_ONCE", "MEMBERS_AT_ONCE"):
        monkeypatch.setattr(f"aggregator.audit.buckets.{name}", 1)
    assert audit(folder) == here and len(sent) == 2 + 4


def test_a_file_that_is_no_bucket_is_named_as_not_checked(exported: Path, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    shutil.copytree(exported, folder)
    (folder / "contents" / "1" / "2").write_bytes(b"another")
    assert audit(folder).not_checked == ("contents/1/2",)
