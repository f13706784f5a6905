"""Adding up from public documents: the sum of the signed list, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from attrs import evolve, frozen

from anon.crypto.nacl import SigningKey
from anon.errors import Malformed, RejectedProof
from anon.sharing.combine import combine
from anon.sharing.statements import NoisyShare, disagreement_of, parse_noisy_share
from anon.wire.packets import Occasion
from tests.support.tellers import PLACES, World, expected, ready_world


@frozen
class Published:
    """The documents of one round."""

    world: World
    body: bytes
    signatures: list[bytes]
    shares: list[bytes]

    def combined(
        self,
        body: bytes | None = None,
        signatures: Sequence[bytes] | None = None,
        shares: Sequence[bytes] | None = None,
        occasion: Occasion | None = None,
    ) -> tuple[int, ...]:
        return combine(
            self.world.arrangement,
            occasion or self.world.occasion(),
            self.body if body is None else body,
            self.signatures if signatures is None else signatures,
            self.shares if shares is None else shares,
        ).values


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return round_of(tmp_path_factory.mktemp("round"), PLACES[:4])


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return round_of(tmp_path_factory.mktemp("other"), PLACES[:3])


def round_of(folder: Path, places: list[list[int]]) -> Published:
    world = ready_world(folder)
    body = world.list_of(world.settle(world.admit(world.packets(places))))
    signatures = world.signatures(body)
    return Published(world, body, signatures, world.noisy(signatures))


def resigned(published: Published, change: Callable[[NoisyShare], NoisyShare], key: SigningKey | None = None) -> bytes:
    """The second teller's noisy share, changed and signed anew."""
    share = change(parse_noisy_share(published.shares[1], published.world.arrangement))
    return share.sign(key or published.world.tellers[1]._key)


def test_the_published_sum(published: Published) -> None:
    assert published.combined() == expected(PLACES[:4])


def test_a_list_that_was_not_signed_is_refused(published: Published) -> None:
    world = published.world
    shorter = world.list_of(frozenset(sorted(packet.tag for packet in world.packets())[:3]))
    with pytest.raises(RejectedProof, match="did not sign"):
        published.combined(body=shorter)
    with pytest.raises(Malformed, match="at least 3"):
        published.combined(body=world.list_of(frozenset()))


def test_a_list_of_another_round_is_refused(published: Published) -> None:
    with pytest.raises(Malformed):
        published.combined(occasion=Occasion(published.world.study, 1, 0))


def test_every_teller_is_needed_in_its_place(published: Published, other: Published) -> None:
    signatures, shares = published.signatures, published.shares
    for bad in ([], signatures[:1], [*signatures, signatures[0]]):
        with pytest.raises(Malformed):
            published.combined(signatures=bad)
    for bad in ([], shares[:1], [*shares, shares[0]]):
        with pytest.raises(Malformed):
            published.combined(shares=bad)
    for bad in (signatures[::-1], [signatures[0]] * 2, other.signatures):
        with pytest.raises(RejectedProof):
            published.combined(signatures=bad)
    for bad in (shares[::-1], [shares[0]] * 2, other.shares):
        with pytest.raises(RejectedProof):
            published.combined(shares=bad)


@pytest.mark.parametrize("change", [
    lambda share: evolve(share, digest=bytes(32)),
    lambda share: evolve(share, teller=0),
    lambda share: evolve(share, occasion=Occasion(share.occasion.study, 1, 0)),
    lambda share: evolve(share, occasion=Occasion(bytes(32), 0, 0)),
], ids=["list", "teller", "round", "study"])
def test_a_share_for_something_else_is_refused(
    published: Published, change: Callable[[NoisyShare], NoisyShare]
) -> None:
    with pytest.raises(RejectedProof):
        published.combined(shares=[published.shares[0], resigned(published, change)])


@pytest.mark.parametrize("change", [
    lambda share: evolve(share, share=share.share[:-1]),
    lambda share: evolve(share, share=b"\xff" * len(share.share)),
    lambda share: evolve(share, teller=2),
    lambda share: evolve(share, digest=b""),
], ids=["short", "not canonical", "nobody", "digest"])
def test_a_share_of_another_form_is_refused(published: Published, change: Callable[[NoisyShare], NoisyShare]) -> None:
    with pytest.raises(Malformed):
        published.combined(shares=[published.shares[0], resigned(published, change)])


def test_a_share_that_another_key_signed_is_refused(published: Published) -> None:
    forged = resigned(published, lambda share: share, SigningKey.generate())
    with pytest.raises(RejectedProof):
        published.combined(shares=[published.shares[0], forged])


def test_an_altered_share_goes_unseen(published: Published) -> None:
    """Stated, not wished for: a dishonest teller can make the sum wrong, and no document shows it (docs/threats.md)."""

    def altered(share: NoisyShare) -> NoisyShare:
        return evolve(share, share=bytes(16) + share.share[16:])

    assert (
        published.combined(shares=[published.shares[0], resigned(published, altered)])[1:] == expected(PLACES[:4])[1:]
    )


def test_two_signatures_of_one_list_are_no_evidence(published: Published, other: Published) -> None:
    for one, second in [(0, 1), (0, 0)]:
        with pytest.raises(RejectedProof, match="proves nothing"):
            disagreement_of(published.signatures[one], published.signatures[second], published.world.arrangement)
    with pytest.raises(RejectedProof):
        disagreement_of(published.signatures[0], other.signatures[0], published.world.arrangement)
