"""The noisy sum of an occasion, from public documents alone: anybody can repeat it.

Held to: every teller signed the same list, and each noisy share is its teller's, for this list. Not shown, and not to
be seen by any audit: that a teller summed the shares which it was sent, or added the noise that it should have. One
dishonest teller can make the sum wrong. The guarantee of privacy needs one honest teller and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field

from anon.errors import Malformed, RejectedProof
from anon.sharing.arrangement import Arrangement
from anon.sharing.statements import parse_list, parse_list_signature, parse_noisy_share
from anon.values import frozen
from anon.wire.packets import Occasion


@frozen
class CombinedSum:
    """The integers of a sum with every teller's noise in them, and how many peers were summed."""

    values: tuple[int, ...] = field(repr=False)
    accepted: int


def combine(
    arrangement: Arrangement,
    occasion: Occasion,
    list_untrusted: bytes,
    signatures_untrusted: Sequence[bytes],
    shares_untrusted: Sequence[bytes],
) -> CombinedSum:
    """The sum over the list. Signatures and shares are in the tellers' order.

    Raises `Malformed` for bytes of another form, a list below the minimum or a missing teller, `RejectedProof` for a
    signature that does not verify, another list, or a share for another list.
    """
    accepted = parse_list(list_untrusted, occasion)
    if len(accepted.tags) < arrangement.minimum:
        raise Malformed(f"accepted list: expected at least {arrangement.minimum} tags, got {len(accepted.tags)}")
    tellers = range(len(arrangement.tellers))
    if not len(signatures_untrusted) == len(shares_untrusted) == len(tellers):
        raise Malformed(f"expected the signature and the noisy share of each of {len(tellers)} tellers")
    digest, shares = accepted.digest(), []
    for teller, statement in enumerate(signatures_untrusted):
        signed = parse_list_signature(statement, arrangement)
        if (signed.occasion, signed.teller, signed.digest) != (occasion, teller, digest):
            raise RejectedProof("a teller did not sign this list")
    for teller, statement in enumerate(shares_untrusted):
        noisy = parse_noisy_share(statement, arrangement)
        if (noisy.occasion, noisy.teller, noisy.digest) != (occasion, teller, digest):
            raise RejectedProof("a noisy share is for another list")
        shares.append(noisy.share)
    values = arrangement.prio3(arrangement.sum_of(occasion)).unshard(shares)
    return CombinedSum(tuple(values), len(accepted.tags))
