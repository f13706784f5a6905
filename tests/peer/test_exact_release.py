"""An exact vector leaves in sealed shares, in a study whose charge is central, by `peer.release`, and in no other
way."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from attrs import evolve

from anon.crypto import labels
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.errors import Malformed
from anon.ldp import RawCategory
from anon.protocols.charge import Budget, Measure, Unit, local
from anon.protocols.outgoing import CutVector, OpenShares, RawVector, SealedShares, SurveyAnswer, sealed
from anon.protocols.registry import charge_of, check_study, protocol_of
from anon.protocols.resolve import resolve
from anon.study.manifest import EXACT
from anon.wire.cbor import decode, encode, sha256
from peer.data.importing import import_rows
from peer.release import release
from peer.run.context import credential_of
from peer.store.records import PacketKey
from tests.anon.study.test_manifest import KEYS
from tests.networks.test_second_protocol import STUDY as COUNTED
from tests.support import exact_sum
from tests.support.fake_aggregator import DECLARED, FakeAggregator, advance, peer, reopened, until_closed
from tests.support.protocols import with_toy

ROOT = Path(__file__).resolve().parents[2]
STUDY = COUNTED.replace(
    '[design]\nkind = "noisy-count"\nepsilon = 2.0', '[design]\nkind = "exact-sum"\nmost = 1'
).replace("version = 1", 'version = 1\nprotocol = "exact-sum"')
KEYS_OF_2 = evolve(KEYS, sealing_key=bytes(PUBLIC_KEY_SIZE))
ZCDP = Budget(Measure.ZCDP, Unit.PERSON)


PROTOCOLS = with_toy(exact_sum.PROTOCOL)


@pytest.mark.slow
async def test_a_whole_life_of_two_rounds(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study(STUDY, protocols=PROTOCOLS)
    app = peer(tmp_path, aggregator)
    import_rows(tmp_path / "data.sqlite", "person", ("age", "cups", "tired"), [(30, 2, 1)])
    consent = await app.join(aggregator.invite, aggregator.manifest.epsilon)
    assert (consent.charge.budget, consent.epsilon) == (ZCDP, 2 * exact_sum.RHO)
    assert (app.budget().held, app.budget().held_of(ZCDP)) == (0, 2 * exact_sum.RHO)
    await until_closed(app, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.settled - 1)
    app.close()
    app = reopened(app._home, aggregator)  # what was made is journalled, and is not made again
    assert [one.key for one in app.store.outbox(aggregator.study)] == [PacketKey(0, 0), PacketKey(1, 1)]
    known = [one.digest for one in app.store.outbox(aggregator.study)]
    await advance(app, aggregator)
    packets = list(aggregator.accepted.values())
    assert [(packet.occasion.round, packet.occasion.slot) for packet in packets] == [(0, 0), (1, 1)]
    assert [exact_sum.opened(packet) for packet in packets] == [[1, 1], [1, 1]]
    assert all(packet.report == packet.tag for packet in packets), "the shares are for another tag"
    assert known == [sha256(labels.PACKET_DIGEST, packet.published().to_bytes()) for packet in packets]
    (entry,) = app.budget().entries
    assert (entry.spent, entry.reserved, entry.budget, entry.condition) == (2 * exact_sum.RHO, 0, ZCDP, exact_sum.IF)


@pytest.fixture
async def ready(tmp_path: Path):
    """A manifest, a credential of it and the store, as before the first release."""
    aggregator = FakeAggregator.with_study(STUDY, protocols=PROTOCOLS)
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.settled - 1)
    known = app.store.study(aggregator.study)
    secrets = app._following._tools.vault.open(known.secrets)
    from peer.rules.study_secrets import StudySecrets

    return aggregator.manifest, credential_of(known, StudySecrets.from_bytes(secrets))


def contribution(*values: int, tag: bytes = bytes(48)) -> CutVector:
    study = manifest()
    return CutVector(0, 0, exact_sum.Peer().cut(study, study.surveys[0], 0, RawVector(values), tag, os.urandom))


async def test_every_vector_gives_a_packet_of_one_size(ready) -> None:
    manifest, credential = ready
    made = [
        release(manifest.study_id, manifest, contribution(*values), credential, os.urandom)
        for values in ((0, 1), (-5, 2**40))
    ]
    assert len({len(one.sealed.ciphertext) for one in made}) == 1 and made[0].epsilon == exact_sum.RHO


async def test_what_may_not_leave_is_refused(ready, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, credential = ready

    def refused(outgoing, study=manifest, why: str = "nothing is sent|charge is not local") -> None:
        with pytest.raises(ValueError, match=why):
            release(study.study_id, study, outgoing, credential, os.urandom)

    for values in ((1,), (1, 2, 3)):
        with pytest.raises(ValueError, match="another survey"):
            contribution(*values)
    refused(SurveyAnswer(0, 0, RawCategory(1, 2)))
    histogram = FakeAggregator.with_study(DECLARED).manifest
    refused(contribution(1, 1), histogram)
    monkeypatch.setattr(
        exact_sum.Peer, "seal", lambda *_: sealed(OpenShares(b"", (b"a", b"b")), [lambda one: bytes(20)] * 2)
    )
    with pytest.raises(Malformed, match="bytes of the public share"):
        release(manifest.study_id, manifest, contribution(1, 1), credential, os.urandom)
    monkeypatch.setattr(
        exact_sum.Peer, "seal", lambda *_: sealed(OpenShares(bytes(48), (b"a", b"b")), [lambda one: bytes(20)] * 2)
    )
    with pytest.raises(Malformed, match="2 shares of the study's lengths"):
        release(manifest.study_id, manifest, contribution(1, 1), credential, os.urandom)
    monkeypatch.undo()
    monkeypatch.setattr(exact_sum.Shared, "exposure", lambda *_: local(manifest.epsilon))
    refused(contribution(1, 1))


def test_a_vector_shows_nothing_and_sealed_shares_are_made_of_seals_alone() -> None:
    assert str(OpenShares(b"42", (b"42",))) == "OpenShares()" and "42" not in repr(RawVector((42,)))
    for wrong in ((), (1.0,), (True,), ("1",)):
        with pytest.raises(ValueError, match="whole numbers"):
            RawVector(wrong)
    with pytest.raises(TypeError):
        SealedShares(b"raw", (), object())
    for shares, seals in (([b"a"], [bytes.upper]), ([b"a", b"b"], [bytes.upper]), ([b"a", b"b"], [bytes, bytes.upper])):
        with pytest.raises(ValueError, match=r"recipients|sealed or not"):
            sealed(OpenShares(b"", tuple(shares)), seals)


@pytest.mark.slow
def test_no_other_module_of_the_peer_opens_a_vector_or_asks_for_shares() -> None:
    """Protocols make vectors and shares, the maker alone asks for open ones; `peer.release` alone asks for either form
    in which a value leaves. `vector_of` makes a vector for four protocols."""
    found, makers = dict[str, set[str]](), list[str]()
    for path in sorted((ROOT / "peer").rglob("*.py")):
        names = {node.attr for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Attribute)}
        if wanted := names & {"perturb", "cut", "seal", "vector"}:
            found[path.relative_to(ROOT).as_posix()] = wanted
        if "vector_of" in path.read_text("utf-8"):
            makers.append(path.stem)
    assert makers == ["groups", "masks", "oblivious", "part"]
    assert found == {
        "peer/ledger/declaration.py": {"vector"},  # of noise
        "peer/data/making/content.py": {"cut", "vector"}, "peer/protocols/histogram.py": {"perturb"},
        "peer/protocols/sum/groups.py": {"vector"}, "peer/protocols/sum/masks.py": {"vector"},
        "peer/protocols/sum/oblivious.py": {"vector"},  # of noise
        "peer/release.py": {"perturb", "seal"},
    }  # fmt: skip


# The manifest


def manifest():
    return resolve(PROTOCOLS.proposal(STUDY), KEYS_OF_2, now=1_800_000_000)


def test_the_manifest_names_the_protocol_and_carries_its_part() -> None:
    study = manifest()
    assert (study.protocol, protocol_of(study).name, study.design) == (exact_sum.NAME,) * 3
    assert decode(study.part, "part") == [key.public_key for key in exact_sum.KEYS]
    again = PROTOCOLS.manifest(study.to_bytes())
    assert again == study and again.study_id == study.study_id
    check_study(again)
    assert charge_of(again).budget == ZCDP and [survey.exact for survey in again.surveys] == [True, True]


def test_every_manifest_names_its_protocol_and_one_without_a_part_names_none() -> None:
    plain = decode(FakeAggregator.with_study(DECLARED).manifest.to_bytes(), "manifest")
    assert plain["protocol"] == "histogram" and "part" not in plain
    assert not any("size" in survey for survey in plain["surveys"])
    with pytest.raises(Malformed, match="no part of its own"):
        check_study(PROTOCOLS.manifest(encode(plain | {"part": b"x"})))
    for more in ({"part": b""}, {"protocol": "sum"}, {"protocol": "No"}, {"protocol": ""}, {"parts": None}):
        with pytest.raises(Malformed):
            PROTOCOLS.manifest(encode(plain | more))
    plain["surveys"][0] |= {"size": 0}
    with pytest.raises(Malformed):
        PROTOCOLS.manifest(encode(plain))


def test_a_protocol_that_lies_about_its_name_or_its_measure_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    study = manifest()
    with pytest.raises(Malformed, match="is of the protocol exact-sum"):
        check_study(evolve(study, protocol="other"))
    monkeypatch.setattr(exact_sum.Shared, "exposure", lambda *_: local(study.epsilon))
    with pytest.raises(Malformed, match="a local cost for exact answers"):
        check_study(study)
    histogram = FakeAggregator.with_study(DECLARED).manifest
    exact = evolve(histogram.surveys[0], mechanism=EXACT, p=0, q=0, size=100)
    with pytest.raises(Malformed, match="local cost for exact answers"):
        check_study(evolve(histogram, surveys=(exact, *histogram.surveys[1:]), report_size=100))


@pytest.mark.parametrize("change", [{"p": 1}, {"q": 1}, {"epsilon": -1}, {"m": 0}, {"size": 0}, {"size": 2**30}])
def test_an_exact_survey_that_cannot_be(change: dict[str, int]) -> None:
    with pytest.raises(Malformed):
        evolve(manifest().surveys[0], **change)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('kind = "exact-sum"', ""),
        ('kind = "exact-sum"', 'kind = "magic"'),
        ('kind = "exact-sum"', "kind = 7"),
        ('protocol = "exact-sum"', 'protocol = "magic"'),
        ('protocol = "exact-sum"', "protocol = 7"),
        ("[design]", "[exact-sum]"),
        ("most = 1", "least = 1"),
    ],
)
def test_a_study_file_whose_protocol_or_design_is_none_of_the_program_s(old: str, new: str) -> None:
    assert old in STUDY
    with pytest.raises(Malformed):
        resolve(PROTOCOLS.proposal(STUDY.replace(old, new)), KEYS, now=1_800_000_000)


def test_a_named_protocol_and_its_design_belong_together() -> None:
    with pytest.raises(Malformed, match="protocol: the design one-packet is of histogram"):
        PROTOCOLS.proposal(DECLARED.replace("version = 1", 'version = 1\nprotocol = "one-packet"'))
    named = DECLARED.replace("version = 1", 'version = 1\nprotocol = "histogram"')
    assert (
        resolve(PROTOCOLS.proposal(named), KEYS, 1).to_bytes()
        == resolve(PROTOCOLS.proposal(DECLARED), KEYS, 1).to_bytes()
    )


