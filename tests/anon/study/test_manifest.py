"""The manifest: canonical, complete, and refusing what it must not say."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from attrs import evolve

from anon.errors import Malformed
from anon.ldp import from_spec
from anon.protocols.registry import check_study
from anon.protocols.resolve import StudyKeys, resolve
from anon.study import Manifest
from anon.wire.cbor import decode, encode
from anon.wire.onion_address import onion_host
from tests.anon.study.test_proposal import GOOD
from tests.support.command_line import ROOT
from tests.support.protocols import parse_manifest, parse_proposal
from tests.support.sums import GRADIENT, MOMENTS, TABLES
from tests.support.sums import manifest_of as sums_of

KEYS = StudyKeys(bytes(32), bytes(1216), bytes(96), bytes(32))
PAPER = GOOD.replace(
    'kind = "one-packet"\nepsilon = 2.0',
    'kind = "paper"\nepsilon_histogram = 0.5\nepsilon_binning = 0.25\npartitions = 4\nsubsets_per_partition = 2\n'
    "binning_rounds = 5",
).replace("bins = 4", "bins = 2")


def manifest_of(text: str = GOOD) -> Manifest:
    return resolve(parse_proposal(text), KEYS, now=1_800_000_000, randbelow=lambda bound: bound - 1)


def test_one_packet_design_spends_the_whole_budget_on_one_survey() -> None:
    manifest = manifest_of()
    assert manifest.packets == 1
    assert [survey.kind for survey in manifest.surveys] == ["quantile", "histogram", "histogram"]
    assert 1_999_999_990 <= manifest.epsilon <= 2_000_000_000
    shares = [row.weight / manifest.slots[0].total for row in manifest.slots[0].rows]
    assert shares == pytest.approx([0.1, 0.45, 0.45], abs=1e-5)


def test_paper_design_has_disjoint_histogram_slots_and_a_binning_slot() -> None:
    manifest = manifest_of(PAPER)
    asked = [{name for row in slot.rows for name in manifest.surveys[row.survey].features} for slot in manifest.slots]
    assert len(manifest.slots) == 3
    assert not asked[0] & asked[1]
    assert [len(slot.rows) for slot in manifest.slots] == [4, 4, 5]
    assert manifest.epsilon == pytest.approx(1_250_000_000, abs=5)
    assert manifest.epsilon_per_attribute == pytest.approx(1_000_000_000, abs=5)
    rounds = [manifest.surveys[row.survey].window for row in manifest.slots[2].rows]
    assert all(first.closes < second.opens for first, second in zip(rounds, rounds[1:], strict=False))
    assert rounds[-1].closes < manifest.surveys[0].window.opens


@pytest.mark.parametrize("text", [GOOD, PAPER], ids=["one-packet", "paper"])
def test_bytes_are_canonical_and_round_trip(text: str) -> None:
    manifest = manifest_of(text)
    again = parse_manifest(manifest.to_bytes())
    assert again == manifest
    assert again.study_id == manifest.study_id
    check_study(again)


def _tampered(change: Any) -> bytes:
    fields = decode(manifest_of().to_bytes())
    change(fields)
    return encode(fields)


TAMPERINGS = {
    "unknown key": lambda f: f.update(colour="red"),
    "key missing": lambda f: f.pop("purpose"),
    "version": lambda f: f.update(version=3),
    "short key": lambda f: f.update(aggregator_key=bytes(31)),
    "survey ids shuffled": lambda f: f["surveys"].reverse(),
    "survey in no slot": lambda f: f["slots"][0]["rows"].pop(),
    "survey in two rows": lambda f: f["slots"][0]["rows"].append(dict(f["slots"][0]["rows"][0])),
    "weight zero": lambda f: f["slots"][0]["rows"][0].update(weight=0),
    "epsilon of a survey understated": lambda f: f["surveys"][1].update(epsilon=f["surveys"][1]["epsilon"] - 1),
    "p raised": lambda f: f["surveys"][1].update(p=f["surveys"][1]["p"] + 2**40, q=f["surveys"][1]["q"]),
    "cardinality": lambda f: f["surveys"][1].update(cards=[3]),
    "unknown feature": lambda f: f["surveys"][1].update(features=["height"]),
    "unknown mechanism": lambda f: f["surveys"][1].update(mechanism="none"),
    "escape sequences in the purpose": lambda f: f.update(purpose="good\x1b[2J\x1b[8m"),
    "text that runs backwards": lambda f: f["features"][0].update(description="\u202eabc"),
    "no direction, which has one spelling": lambda f: f["features"][0].update(expects=[]),
    "a direction of zeros": lambda f: f["features"][0].update(expects=[0]),
    "a direction without its list": lambda f: f["features"][0].update(expects=1),
    "a direction of two": lambda f: f["features"][0].update(expects=[2]),
    "a line written over": lambda f: f.update(contact="staff\rnobody"),
    "a contact that adds a fingerprint": lambda f: f.update(contact="staff\nFingerprint, to compare: abc-def"),
    "a title of two lines": lambda f: f.update(title="Sleep\n0badcafe Another study: sent"),
    "a title without end": lambda f: f.update(title="x" * 100_000),
    "an empty data source, which has one spelling": lambda f: f.update(data_source=""),
    "a data source that moves the cursor": lambda f: f.update(data_source="Here.\x1b[2J"),
    "a data source without end": lambda f: f.update(data_source="x" * 100_000),
    "a purpose without end": lambda f: f.update(purpose="x" * 100_000),
    "escape sequences in what counts as yes": lambda f: f["label"].update(positive=["\x1b[2J"]),
    "packets larger than any report": lambda f: f.update(report_size=f["report_size"] + 1),
    "no margin": lambda f: f["timetable"].update(margin=-1),
    "settled before it closes": lambda f: f["timetable"].update(enrol_closes=f["timetable"]["settled"] + 1),
    "an end beyond every clock": lambda f: f["timetable"].update(ends=10**400),
    "epsilon beyond every float": lambda f: f.update(epsilon=10**400),
    "window closed before it opens": lambda f: f["surveys"][1]["window"].update(opens=2, closes=1),
}


def test_a_data_source_is_in_the_manifest_only_where_there_is_one() -> None:
    """So studies of earlier versions keep their bytes."""
    plain = manifest_of()
    said = evolve(plain, data_source="Profile, then\nDownload my data.")
    assert "data_source" not in decode(plain.to_bytes()) and decode(said.to_bytes())["data_source"] == said.data_source
    assert parse_manifest(said.to_bytes()) == said and said.study_id != plain.study_id


def test_a_direction_is_in_the_manifest_only_where_there_is_one() -> None:
    """So studies of earlier versions keep their bytes; models too, which carry the features."""
    plain = manifest_of()
    assert "expects" not in decode(plain.to_bytes())["features"][0]
    learned = GOOD + '[learning]\nclassifier = "additive"\n'
    told = manifest_of(learned.replace('missing = "own"', 'missing = "own"\nexpects = -1'))
    assert [one.get("expects") for one in decode(told.to_bytes())["features"]] == [[-1], None]
    assert parse_manifest(told.to_bytes()) == told and told.study_id != plain.study_id


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_refused(name: str) -> None:
    with pytest.raises(Malformed):
        parse_manifest(_tampered(TAMPERINGS[name]))


def test_a_total_below_the_surveys_is_refused_by_the_protocol() -> None:
    manifest = manifest_of()
    lying = evolve(manifest, epsilon=manifest.epsilon - 1)
    with pytest.raises(Malformed, match="declares epsilon"):
        check_study(lying)


def test_a_window_outside_the_timetable_is_refused_by_the_protocol() -> None:
    fields = decode(manifest_of().to_bytes())
    fields["surveys"][1]["window"]["opens"] = fields["timetable"]["published"]
    lying = parse_manifest(encode(fields))
    with pytest.raises(Malformed, match="timetable"):
        check_study(lying)


def test_the_mechanism_in_a_survey_is_the_one_declared() -> None:
    for survey in manifest_of().surveys:
        assert survey.build() == from_spec(survey.mechanism, survey.m, survey.p, survey.q)
        assert survey.build().epsilon <= survey.epsilon


@pytest.mark.parametrize("length", [0, 32, 1215, 1217])
def test_a_sealing_key_is_one_of_x_wing(length: int) -> None:
    with pytest.raises(Malformed, match="sealing_key: expected 1216 bytes"):
        evolve(manifest_of(), sealing_key=bytes(length))


def test_keys_of_every_kind_that_a_manifest_does_not_have_are_refused() -> None:
    plain = decode(manifest_of().to_bytes(), "manifest")
    assert isinstance(plain, dict)
    with pytest.raises(Malformed, match="unknown key"):
        parse_manifest(encode({**plain, "strange": 1, 7: 1, 10**5000: 1, b"bytes": 1}))


@pytest.mark.parametrize("version", [0, 1, 3])
def test_a_manifest_of_another_version_says_what_to_do(version: int) -> None:
    with pytest.raises(Malformed, match=f"version: expected 2, got {version}; update this program"):
        evolve(manifest_of(), version=version)


ONIONS = [f"{onion_host(bytes([number] * 32))}:80" for number in range(9)]


@pytest.mark.parametrize("count", [0, 1, 2, 8])
def test_a_study_is_served_at_up_to_eight_onion_addresses(count: int) -> None:
    manifest = resolve(parse_proposal(GOOD), KEYS, now=1_800_000_000, address=" ".join(ONIONS[:count]))
    assert manifest.addresses == tuple(ONIONS[:count])
    assert parse_manifest(manifest.to_bytes()) == manifest


@pytest.mark.parametrize(
    "address",
    [
        " ".join(ONIONS), f"{ONIONS[0]} {ONIONS[0]}", f"{ONIONS[0]}  {ONIONS[1]}", f"{ONIONS[0]} ", f" {ONIONS[0]}",
        f"{ONIONS[0]},{ONIONS[1]}", f"{ONIONS[0]} 127.0.0.1:80", f"{ONIONS[0]} {ONIONS[1].replace('a', 'b')}",
        f"{ONIONS[0]}\t{ONIONS[1]}", f"{ONIONS[0]} {ONIONS[1].upper()}",
    ],
)  # fmt: skip
def test_addresses_have_one_spelling_each_and_are_different(address: str) -> None:
    plain = decode(manifest_of().to_bytes(), "manifest")
    assert isinstance(plain, dict)
    with pytest.raises(Malformed, match="address"):
        parse_manifest(encode({**plain, "address": address}))


UNASKED = """
import sys
from anon.study.manifest import parse_manifest
assert "anon.protocols.registry" not in sys.modules
parse_manifest(sys.stdin.buffer.read())
"""


@pytest.mark.process
@pytest.mark.parametrize("design", [TABLES, MOMENTS, GRADIENT], ids=["tables", "moments", "gradient"])
def test_a_program_that_asked_for_no_protocol_reads_the_manifests_of_all(design: str) -> None:
    """A teller, a check of evidence and a look at an exported chain are such programs."""
    _read_alone(UNASKED, sums_of(design).to_bytes())


def _read_alone(program: str, given: bytes) -> None:
    done = subprocess.run([sys.executable, "-c", program], input=given, capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr.decode()
