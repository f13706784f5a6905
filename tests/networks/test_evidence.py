"""Evidence: what proves two stories, and everything that does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve
from nacl.signing import SigningKey

from anon.crypto import labels
from anon.study.manifest import Manifest
from anon.transparency.documents import SignedHead, encode_chain, sign_head
from anon.transparency.equivocation import (
    Evidence,
    compare_chains,
    evidence_of,
    first_difference,
    parse_evidence,
)
from anon.transparency.proves import ProvesNothing
from anon.wire.cbor import decode, encode, sha256
from tests.support.fake_aggregator import FakeAggregator
from tests.support.stories import second_story, two_stories


@pytest.fixture(scope="module")
def aggregator() -> FakeAggregator:
    found = FakeAggregator.with_study()
    found.crowd(4)
    found.close()
    return found


@pytest.fixture(scope="module")
def proof(aggregator: FakeAggregator) -> bytes:
    honest, lying = two_stories(aggregator, "roster")
    return evidence_of(aggregator.manifest, honest[1], lying[1]).to_bytes()


def file_of(manifest: Manifest, *heads: SignedHead) -> bytes:
    """A file of these heads in their one order, around the checks of `Evidence`."""
    pairs = sorted([one.head.to_bytes(), one.signature] for one in heads)
    return encode([labels.EVIDENCE, manifest.to_bytes(), *pairs])


def resigned(
    aggregator: FakeAggregator, signed: SignedHead, key: SigningKey | None = None, **changes: object
) -> SignedHead:
    """The head with changes, signed again."""
    head = evolve(signed.head, **changes)
    return SignedHead(head, (key or aggregator.key).sign(sha256(labels.HEAD, head.to_bytes())).signature)


def refused(data: bytes, key: bytes | None = None) -> str:
    with pytest.raises(ProvesNothing) as caught:
        parse_evidence(data, key)
    assert caught.value.exit_code == 5
    return str(caught.value)


def test_two_heads_with_one_number_prove_whose_key_told_two_stories(aggregator: FakeAggregator, proof: bytes) -> None:
    found = parse_evidence(proof, bytes(aggregator.key.verify_key))
    assert (found.key, found.study, found.number) == (bytes(aggregator.key.verify_key), aggregator.study, 1)
    assert found.first.head != found.second.head
    assert found.to_bytes() == proof == file_of(aggregator.manifest, found.second, found.first)


@pytest.mark.slow
def test_one_flipped_bit_anywhere_proves_nothing(proof: bytes) -> None:
    """Every bit of what follows the manifest, and every byte of the file."""
    head_start = proof.rindex(b"roster") - 100
    places = [(byte, 1 << byte % 8) for byte in range(len(proof))]
    places += [(byte, 1 << bit) for byte in range(head_start, len(proof)) for bit in range(8)]
    for byte, mask in places:
        flipped = bytearray(proof)
        flipped[byte] ^= mask
        refused(bytes(flipped))


@pytest.mark.parametrize("length", [0, 1, 40, -1])
def test_a_file_that_is_cut_short_or_goes_on_proves_nothing(proof: bytes, length: int) -> None:
    refused(proof[:length])
    refused(proof + b"\0")


def test_the_same_head_twice(aggregator: FakeAggregator) -> None:
    assert "same head twice" in refused(file_of(aggregator.manifest, aggregator.chain[1], aggregator.chain[1]))


def test_the_same_head_under_two_signatures_is_one_story(aggregator: FakeAggregator) -> None:
    """Ed25519 is deterministic here but need not be: what counts is the head."""
    other = evolve(aggregator.chain[1], signature=aggregator.chain[2].signature)
    refused(file_of(aggregator.manifest, aggregator.chain[1], other))


def test_heads_with_different_numbers(aggregator: FakeAggregator) -> None:
    assert "different numbers" in refused(file_of(aggregator.manifest, aggregator.chain[1], aggregator.chain[2]))


@pytest.mark.parametrize("both", [False, True])
def test_heads_of_another_study_under_the_same_key(aggregator: FakeAggregator, both: bool) -> None:
    other = resigned(aggregator, aggregator.chain[1], study=bytes(32))
    another = resigned(aggregator, aggregator.chain[1], study=bytes(32), length=7)
    pair = (other, another) if both else (aggregator.chain[1], other)
    assert "not about the study" in refused(file_of(aggregator.manifest, *pair))


@pytest.mark.parametrize("both", [False, True])
def test_heads_signed_by_another_key(aggregator: FakeAggregator, both: bool) -> None:
    """Somebody who invents a second story, or both, to blame an aggregator."""
    stranger = SigningKey.generate()
    one = resigned(aggregator, aggregator.chain[1], stranger, length=7)
    other = resigned(aggregator, aggregator.chain[1], stranger, length=8) if both else aggregator.chain[1]
    assert "not signed by the key" in refused(file_of(aggregator.manifest, one, other))


def test_a_signature_over_other_than_a_head(aggregator: FakeAggregator) -> None:
    """The same bytes signed under another label."""
    head = evolve(aggregator.chain[1].head, length=7)
    other = SignedHead(head, aggregator.key.sign(sha256(labels.ENROLMENT, head.to_bytes())).signature)
    refused(file_of(aggregator.manifest, aggregator.chain[1], other))


def test_a_manifest_that_names_the_forgers_key_is_another_study(aggregator: FakeAggregator, proof: bytes) -> None:
    stranger = SigningKey.generate()
    plain = decode(aggregator.manifest.to_bytes())
    plain["aggregator_key"] = bytes(stranger.verify_key)
    pair = [resigned(aggregator, aggregator.chain[1], stranger, length=length) for length in (7, 8)]
    pairs = sorted([one.head.to_bytes(), one.signature] for one in pair)
    assert "not about the study" in refused(encode([labels.EVIDENCE, encode(plain), *pairs]))


def test_another_key_than_the_pinned_one(aggregator: FakeAggregator, proof: bytes) -> None:
    assert "another aggregator" in refused(proof, bytes(SigningKey.generate().verify_key))


def test_one_order_and_one_label(aggregator: FakeAggregator, proof: bytes) -> None:
    label, manifest, one, other = decode(proof)
    assert "order" in refused(encode([label, manifest, other, one]))
    refused(encode([labels.HEAD, manifest, one, other]))
    refused(encode([label, manifest, one]))
    refused(encode([label, manifest, one, other, other]))
    refused(encode([label, manifest, [one[0], one[1][:63]], other]))
    refused(encode([label, manifest, [one[0], one[1].hex()], other]))


@pytest.mark.parametrize("junk", [b"", b"\xa0", b"\x80", b"\x84\x00\x00\x00\x00", b"PK\x03\x04", bytes(1000)])
def test_junk(junk: bytes) -> None:
    refused(junk)


def test_evidence_cannot_even_be_built_from_less(aggregator: FakeAggregator) -> None:
    with pytest.raises(ProvesNothing):
        Evidence(aggregator.manifest, aggregator.chain[1], aggregator.chain[1])


def test_copies_of_one_story_prove_nothing_and_of_two_the_first_difference(aggregator: FakeAggregator) -> None:
    honest, lying = two_stories(aggregator, "roster")
    copies = encode_chain(honest), encode_chain(lying)
    assert compare_chains(aggregator.manifest, copies[0], copies[0]) is None
    assert compare_chains(aggregator.manifest, copies[0], encode_chain(honest[:2])) is None
    found = compare_chains(aggregator.manifest, *copies)
    assert found is not None
    assert parse_evidence(found.to_bytes()).number == 1
    assert first_difference(honest, lying) == (honest[1], lying[1])


def test_a_longer_lie_is_found_at_its_first_difference(aggregator: FakeAggregator) -> None:
    before = aggregator.chain[:3]
    other = [*before, sign_head(aggregator.key, aggregator.study, before, "credentials", 0, b"other")]
    found = compare_chains(aggregator.manifest, encode_chain(aggregator.chain), encode_chain(other))
    assert found is not None
    assert found.number == 3


# As typed


def folder(aggregator: FakeAggregator, path: Path, chain: list[SignedHead]) -> Path:
    from anon.transparency.exported_chain import write_exported_chain

    write_exported_chain(path, aggregator.manifest.to_bytes(), tuple(chain))
    return path


def test_checking_takes_a_file_and_no_home(aggregator: FakeAggregator, proof: bytes, tmp_path: Path, command) -> None:
    file = tmp_path / "proof"
    file.write_bytes(proof)
    done = command.anonml("evidence", "check", file)
    assert done.code == 0
    assert aggregator.key.verify_key.encode().hex() in done.out
    assert aggregator.study.hex()[:16] in done.out
    assert command.anonml("evidence", "check", file, "--invite", aggregator.invite.link()).code == 0
    shown = command.anonml("evidence", "check", file, "--key", bytes(aggregator.key.verify_key).hex(), "--json")
    assert (shown.code, shown.json["number"], shown.json["study"]) == (0, 1, aggregator.study.hex())
    assert not command.home.exists()


@pytest.mark.parametrize("flaw", ["bit", "key", "invite", "empty"])
def test_what_proves_nothing_exits_5(
    aggregator: FakeAggregator, proof: bytes, tmp_path: Path, command, flaw: str
) -> None:
    file, words = tmp_path / "proof", []
    if flaw == "key":
        words = ["--key", bytes(32).hex()]
    if flaw == "invite":
        words = ["--invite", evolve(aggregator.invite, study=bytes(32)).link()]
    spoiled = bytearray(proof)
    spoiled[-1] ^= flaw == "bit"
    file.write_bytes(b"" if flaw == "empty" else bytes(spoiled))
    done = command.anonml("evidence", "check", file, *words)
    assert (done.code, done.out) == (5, "")
    assert "proves-nothing" in done.err


def test_comparing_two_folders_makes_the_proof(aggregator: FakeAggregator, tmp_path: Path, command) -> None:
    honest, lying = two_stories(aggregator, "roster")
    one, other = folder(aggregator, tmp_path / "one", honest), folder(aggregator, tmp_path / "other", lying)
    short = folder(aggregator, tmp_path / "short", honest[:2])
    assert command.anonml("evidence", "compare", one, short).code == 0
    done = command.anonml("evidence", "compare", one, other, "--output", tmp_path / "proof")
    assert done.code == 1
    assert command.anonml("evidence", "check", tmp_path / "proof").code == 0
    assert command.anonml("evidence", "compare", one, other, "--output", tmp_path / "proof").code == 4


def test_a_forged_folder_is_no_story(aggregator: FakeAggregator, tmp_path: Path, command) -> None:
    honest, _lying = two_stories(aggregator, "roster")
    one = folder(aggregator, tmp_path / "one", honest)
    forged = second_story(aggregator, "roster", SigningKey.generate())[0]
    other = folder(aggregator, tmp_path / "other", forged)
    assert command.anonml("evidence", "compare", one, other).code == 5
    assert command.anonml("evidence", "compare", one, tmp_path / "nowhere").code == 3
