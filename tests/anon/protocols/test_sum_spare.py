"""A study file with a spare teller: its form, its manifest, and the words in which it is agreed to."""

from __future__ import annotations

import pytest
from attrs import evolve

from anon.errors import Malformed
from anon.protocols.posts import recipients
from anon.protocols.registry import protocol_of
from anon.protocols.resolve import resolve
from anon.protocols.sum.standing import arrangement_of
from anon.sharing.arrangement import Arrangement, parse_arrangement
from anon.sharing.drafts import drafted
from anon.study.manifest import Manifest
from anon.study.records import RECORD
from anon.wire.cbor import decode, encode
from tests.support.protocols import parse_proposal
from tests.support.sums import KEYS, MOMENTS, TABLES, many, sum_study

NAMES = ("clinic", "students", "council")


def places(names: tuple[str, ...] = NAMES, spare: int = 2) -> str:
    return "".join(
        (
            f'[[tellers]]\nname = "{name}"\naddress = "127.0.0.1:900{number}"\n'
            f"{'spare = true' if number == spare else ''}\n"
        )
        for number, name in enumerate(names)
    )


def spared(design: str = TABLES, keys: str = "") -> Manifest:
    return resolve(drafted(parse_proposal(sum_study(design, places(), keys=keys))), KEYS, 1_800_000_000)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (places(spare=0), "a spare is the last of three"),
        (places(NAMES[:2], spare=1), "a spare is the last of three"),
        (places((*NAMES, "library"), spare=3), "a spare is the last of three"),
        (places() + "spare = true\n", "Cannot overwrite"),
        (places(spare=9) + 'second_entry = "00"\n', "second_entry belongs to a study with a spare"),
        (places() + 'second_entry = "xy"\n', "second_entry: expected at most"),
    ],
)
def test_a_spare_is_the_third_of_three(said: str, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        parse_proposal(sum_study(TABLES, said))


def test_a_manifest_names_two_entries_of_each_and_its_packets_have_six_shares() -> None:
    study = spared()
    arrangement = arrangement_of(study)
    assert arrangement.has_spare and arrangement.summing == arrangement.most_sums == 2 and recipients(study) == 6
    assert [[one.name for one in pair.tellers] for pair in arrangement.groups] == [
        ["clinic", "students"], ["clinic", "council"], ["students", "council"],
    ]  # fmt: skip
    assert len({one.sealing_key for pair in arrangement.groups for one in pair.tellers}) == 6
    protocol_of(study).check(study)


@pytest.mark.parametrize("version", [2, 4])
def test_another_version_with_second_entries_is_refused(version: int) -> None:
    plain = decode(arrangement_of(spared()).to_bytes(), "arrangement")
    with pytest.raises(Malformed, match="expected version 2, or 3 with a spare"):
        parse_arrangement(encode([version, *plain[1:]]))
    with pytest.raises(Malformed, match="expected version 2, or 3 with a spare"):
        parse_arrangement(encode([3, plain[1], plain[2], [], plain[4]]))


def test_a_manifest_that_counts_one_sum_alone_is_declined() -> None:
    """The charge and the noise of two tellers, beside an arrangement with a spare."""
    study = spared()
    cheaper = tuple(evolve(one, epsilon=one.epsilon // 2) for one in study.surveys)
    with pytest.raises(Malformed, match="declares other noise"):
        protocol_of(study).check(evolve(study, surveys=cheaper))


@pytest.mark.slow
def test_consent_says_that_two_of_three_must_be_honest() -> None:
    study = spared()
    protocol = protocol_of(study)
    odds = " ".join(protocol.odds(study))
    for said in (
        "two shares for each pair of the three tellers “clinic”, “students” and “council”, each time anew",
        "keeps to epsilon 1, plus a chance of one in a million, if at least two of the three are honest",
        "A dishonest teller could have it made twice: the promise counts both sums.",
        "If any two of them work together, they see your exact answers",
    ):
        assert said in odds, odds
    assert "If all of them" not in odds and "at least one" not in odds
    assert "two of the tellers “clinic”, “students” and “council” add them up" in protocol.summary(study)


@pytest.mark.slow
def test_consent_to_many_records_says_so_too() -> None:
    study = spared(MOMENTS, many(unit=RECORD))
    said = " ".join(protocol_of(study).odds(study))
    assert "for each of your records by itself, plus a chance of one in a million, if at least two of the three" in said


def test_three_tellers_without_a_spare_stay_as_they_were() -> None:
    study = resolve(drafted(parse_proposal(sum_study(TABLES, places(spare=9)))), KEYS, 1_800_000_000)
    arrangement = arrangement_of(study)
    assert decode(arrangement.to_bytes(), "arrangement")[0] == 2 and arrangement.groups == (arrangement,)
    assert isinstance(arrangement, Arrangement) and (arrangement.summing, arrangement.most_sums) == (3, 1)
