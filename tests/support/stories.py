"""Two stories of one study, both signed by its aggregator's key: what it tells everybody, and what it tells a victim.

    manifest     another manifest as document 0; the rest is linked to it
    roster       another roster (one member more) with the credentials that belong to it
    credentials  another member's is another one that works: one that does not is caught by every check of the list
    key          the very documents, signed by another key
    edges, thresholds   other counts, from which the victim would compute other cuts
"""

from __future__ import annotations

from attrs import evolve
from nacl.signing import SigningKey

from anon.credential import public_key, signer_nym_entropy
from anon.credential.issuance import sign_with_exponent
from anon.credential.statement import nym_statement
from anon.crypto.curve import decode_g1, decode_scalar
from anon.transparency.documents import SignedHead, body_digest, sign_head
from anon.wire.cbor import encode
from anon.wire.messages import credential_header
from tests.support.documents import credentials_body
from tests.support.fake_aggregator import FakeAggregator

Told = tuple[list[SignedHead], list[bytes]]


def signed(aggregator: FakeAggregator, bodies: list[bytes], key: SigningKey | None = None) -> Told:
    """These bodies under the aggregator's kinds and parts, signed and linked anew."""
    chain: list[SignedHead] = []
    for honest, body in zip(aggregator.chain, bodies, strict=True):
        chain.append(
            sign_head(key or aggregator.key, aggregator.study, chain, honest.head.kind, honest.head.part, body)
        )
    return chain, list(bodies)


def second_story(aggregator: FakeAggregator, kind: str, key: SigningKey | None = None) -> Told:
    """The lying story about one kind of document; every check of what it says by itself passes."""
    bodies = list(aggregator.bodies)
    kinds = [one.head.kind for one in aggregator.chain]
    if kind == "key":
        return signed(aggregator, bodies, SigningKey.generate())
    if kind == "manifest":
        bodies[0] = evolve(aggregator.manifest, title="Another study").to_bytes()
    elif kind == "roster":
        honest = aggregator.enrolments
        aggregator.enrolments = dict(honest)
        aggregator.crowd(1)
        roster = aggregator.roster()
        bodies[kinds.index("roster")] = roster
        bodies[kinds.index("credentials")] = credentials_body(aggregator.study, aggregator.signatures(roster))
        aggregator.enrolments = honest
    elif kind == "credentials":
        _victim, *others = aggregator.enrolments
        signatures = aggregator.signatures(aggregator.roster())
        signatures[sorted(aggregator.enrolments).index(others[0])] = another_signature(aggregator, others[0])
        bodies[kinds.index("credentials")] = credentials_body(aggregator.study, signatures)
    else:
        bodies[kinds.index(kind)] = counts(aggregator, kind, len(aggregator.enrolments))
    return signed(aggregator, bodies, key)


def another_signature(aggregator: FakeAggregator, key: bytes) -> bytes:
    """A credential for this member that is as good as the honest one, with another exponent."""
    roster = aggregator.roster()
    header = credential_header(aggregator.study, body_digest(roster))
    statement = nym_statement(public_key(aggregator.issuer), header, aggregator.manifest.packets)
    entropy = decode_scalar(signer_nym_entropy(aggregator.seed(roster), key), "entropy")
    commitment = decode_g1(aggregator.enrolments[key].commitment[:48], "commitment")
    base = statement.fixed + commitment + statement.generators[-1] * entropy
    return sign_with_exponent(aggregator.issuer, base, entropy)


def two_stories(aggregator: FakeAggregator, kind: str) -> tuple[list[SignedHead], list[SignedHead]]:
    """The honest chain and the lying one."""
    return aggregator.chain, second_story(aggregator, kind)[0]


def counts(aggregator: FakeAggregator, kind: str, yes: int) -> bytes:
    """Thresholds of round 1, or edges, in which so many of all members said yes or stand on the first level."""
    members, found = len(aggregator.enrolments), {}
    for survey in aggregator.manifest.surveys:
        if survey.kind == "quantile":
            found[survey.features[0]] = [members, [yes, *[1] * (survey.m - 1)]]
        elif survey.kind == "threshold" and survey.round == 0:
            found[survey.features[0]] = [members, yes]
    return encode([1, aggregator.study, 1, found] if kind == "thresholds" else [1, aggregator.study, found])


__all__ = ["Told", "counts", "second_story", "signed", "two_stories"]
