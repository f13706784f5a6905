"""Anonymous one-time credentials: BBS on BLS12-381 with blind issuance and a pseudonym per context.

Bytes in, bytes out: no curve object leaves this folder. Read `issuance` (commit, blind_sign), `credential` (finalize),
`issued` (credentials of others), `presentation` (pseudonym, present), `verification` (Verifier). Variable time.
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
