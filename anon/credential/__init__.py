"""Anonymous one-time credentials: BBS on BLS12-381 with blind issuance and a pseudonym per context.

Bytes in, bytes out: no curve object leaves this folder. Read `issuance` (commit, blind_sign), `credential` (finalize),
`issued` (credentials of others), `presentation` (pseudonym, present), `verification` (Verifier). Variable time.

A life of one credential; the examples of this folder's modules go on with its names:

>>> from os import urandom
>>> secret = generate_secret_key(urandom)
>>> mine, share = commit(1, urandom), signer_nym_entropy(b"the study's seed", b"my enrolment")
>>> signature = blind_sign(secret, public_key(secret), mine.commitment_with_proof, b"study", share, count=1)
>>> credential = finalize(public_key(secret), b"study", signature, share, mine)
>>> token = present(credential, b"slot 0", b"digest of my packet", urandom)
>>> Verifier(public_key(secret), b"study", 1).check(token, b"slot 0", b"digest of my packet") == token[:48]
True
"""

from anon.credential.credential import Credential, finalize
from anon.credential.issuance import (
    SIGNATURE_SIZE,
    CommitmentSecrets,
    PublicKey,
    SecretKey,
    blind_sign,
    commit,
    commitment_size,
    generate_secret_key,
    open_commitment,
    public_key,
    recommit,
    sign_proven,
    signer_nym_entropy,
)
from anon.credential.issued import IssuedChecker, IssuedCredential
from anon.credential.presentation import Tag, Token, present, pseudonym, token_size
from anon.credential.verification import Verifier, cached_verifier

__all__ = [
    "SIGNATURE_SIZE",
    "CommitmentSecrets",
    "Credential",
    "IssuedChecker",
    "IssuedCredential",
    "PublicKey",
    "SecretKey",
    "Tag",
    "Token",
    "Verifier",
    "blind_sign",
    "cached_verifier",
    "commit",
    "commitment_size",
    "finalize",
    "generate_secret_key",
    "open_commitment",
    "present",
    "pseudonym",
    "public_key",
    "recommit",
    "sign_proven",
    "signer_nym_entropy",
    "token_size",
]
