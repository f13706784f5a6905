"""Two stories of one study, both signed by its aggregator's key: what it tells everybody, and what it tells a victim.

    manifest     another manifest as document 0; the rest is linked to it
    roster       another roster (one member more) with the credentials that belong to it
    credentials  another member's is spoiled
    key          the very documents, signed by another key
    edges, thresholds   other counts, from which the victim would compute other cuts
"""

from __future__ import annotations

from attrs import evolve
from nacl.signing import SigningKey
from village import Village

from anon.documents import SignedHead, sign_head
from anon.encoding import encode
from anon.messages import encode_credentials

Told = tuple[list[SignedHead], list[bytes]]


def signed(village: Village, bodies: list[bytes], key: SigningKey | None = None) -> Told:
    """These bodies under the village's kinds and parts, signed and linked anew."""
    chain: list[SignedHead] = []
    for honest, body in zip(village.chain, bodies, strict=True):
        chain.append(sign_head(key or village.key, village.study, chain, honest.head.kind, honest.head.part, body))
    return chain, list(bodies)


def second_story(village: Village, kind: str, key: SigningKey | None = None) -> Told:
    """The lying story about one kind of document; every check of what it says by itself passes."""
    bodies = list(village.bodies)
    kinds = [one.head.kind for one in village.chain]
    if kind == "key":
        return signed(village, bodies, SigningKey.generate())
    if kind == "manifest":
        bodies[0] = evolve(village.manifest, title="Another study").to_bytes()
    elif kind == "roster":
        honest = village.enrolments
        village.enrolments = dict(honest)
        village.crowd(1)
        roster = village.roster()
        bodies[kinds.index("roster")] = roster
        bodies[kinds.index("credentials")] = encode_credentials(village.study, village.signatures(roster))
        village.enrolments = honest
    elif kind == "credentials":
        _victim, *others = village.enrolments
        signatures = village.signatures(village.roster())
        signatures[sorted(village.enrolments).index(others[0])] = bytes(80)
        bodies[kinds.index("credentials")] = encode_credentials(village.study, signatures)
    else:
        bodies[kinds.index(kind)] = counts(village, kind, 21)
    return signed(village, bodies, key)


def two_stories(village: Village, kind: str) -> tuple[list[SignedHead], list[SignedHead]]:
    """The honest chain and the lying one."""
    return village.chain, second_story(village, kind)[0]


def counts(village: Village, kind: str, yes: int) -> bytes:
    """Thresholds of round 1, or edges, in which so many of 40 said yes or stand on the first level."""
    found = {}
    for survey in village.manifest.surveys:
        if survey.kind == "quantile":
            found[survey.features[0]] = [40, [yes, *[1] * (survey.m - 1)]]
        elif survey.kind == "threshold" and survey.round == 0:
            found[survey.features[0]] = [40, yes]
    return encode([1, village.study, 1, found] if kind == "thresholds" else [1, village.study, found])


__all__ = ["Told", "counts", "second_story", "signed", "two_stories"]
