"""A study's secrets, and how they rest on disk: in a file of the owner's alone, under a passphrase if there is one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from attrs import evolve, field

from anon.credential import CommitmentSecrets, commit
from anon.crypto import labels
from anon.crypto.nacl import CryptoError, SecretBox, SigningKey
from anon.errors import Malformed, Refused
from anon.text.sentences import say
from anon.transparency.buckets import decoys
from anon.values import frozen
from anon.wire.cbor import decode, encode

KEY_BYTES = SecretBox.KEY_SIZE
_PLAIN, _BOXED = b"\x00", b"\x01"


@frozen
class StudySecrets:
    """This peer's secrets of a study; made fresh for each, so that nothing links two studies.

    `drawn` holds each slot's random bytes (`peer.release.SlotRandomness`): once drawn, they are as secret as the
    answer. `letters` is what all letters of the study rest on, 32 bytes: empty until its answers are fixed. Until then
    there is `ground`, 32 random bytes. It goes then: with it `letters` would tell of answers that were erased.
    """

    signing_seed: bytes = field(repr=False)
    contribution: bytes = field(repr=False)
    commitment: CommitmentSecrets = field(repr=False)
    invite_code: str = field(repr=False)
    drawn: tuple[bytes, ...] = field(repr=False)
    ground: bytes = field(repr=False)
    letters: bytes = field(default=b"", repr=False)

    def fixed(self, answers: bytes) -> StudySecrets:
        """The same, once the answers are fixed. Letters rest on them from the first on: of two copies of a home with
        other data one finds another key than its own on the board, and falls silent. A mask hides one vector alone."""
        if self.letters:
            return self
        grounds = encode([labels.LETTER_SECRET, self.ground, hashlib.sha256(answers).digest()])
        return evolve(self, ground=b"", letters=hashlib.shake_256(grounds).digest(32))

    @property
    def records_seed(self) -> bytes:
        """The seed of the draw that cuts too many records, 32 bytes: the same whenever this study is evaluated."""
        return hashlib.shake_256(encode([labels.RECORDS_DRAW, *self.drawn])).digest(32)

    @property
    def lot(self) -> bytes:
        """The lot by which a member takes part in some surveys and not in others, 32 bytes: the same in all rounds."""
        return hashlib.shake_256(encode([labels.LOT, *self.drawn])).digest(32)

    def decoys(self, context: bytes, own: int, bits: int) -> tuple[int, ...]:
        """The buckets to fetch beside the own one, the same whenever they are asked for: nothing in what is fetched
        again tells which is the own."""
        return decoys(self.signing_seed, context, own, bits)

    @property
    def signing_key(self) -> SigningKey:
        """The study's Ed25519 key."""
        return SigningKey(self.signing_seed)

    def to_bytes(self) -> bytes:
        """For `Vault.close`."""
        made = self.commitment
        return encode(
            [
                self.signing_seed,
                self.contribution,
                list(made.nym_secrets),
                made.prover_blind,
                made.commitment_with_proof,
                self.invite_code,
                list(self.drawn),
                self.ground,
                self.letters,
            ]
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> StudySecrets:
        """Read back what `to_bytes` wrote. Raises `Malformed` for anything else."""
        parts = decode(data, "stored secrets")
        if not isinstance(parts, list) or len(parts) != 9 or not all(isinstance(parts[at], list) for at in (2, 6)):
            raise Malformed(say("stored secrets: damaged; restore the backup"))
        seed, contribution, nyms, blind, commitment, code, drawn, *rest = parts
        return cls(seed, contribution, CommitmentSecrets(tuple(nyms), blind, commitment), code, tuple(drawn), *rest)


def fresh(sizes: Sequence[int], invite_code: str, random_bytes: Callable[[int], bytes]) -> StudySecrets:
    """New secrets for a study whose slots need so many random bytes each. `random_bytes`: the operating system's."""
    made = commit(len(sizes), random_bytes)
    drawn = tuple(random_bytes(size) for size in sizes)
    return StudySecrets(random_bytes(32), random_bytes(32), made, invite_code, drawn, random_bytes(32))


class Vault:
    """Closes and opens stored secrets. Without a key they are stored as they are, in the 0600 file."""

    def __init__(self, key: bytes | None, random_bytes: Callable[[int], bytes]) -> None:
        self._box = SecretBox(key) if key is not None else None
        self._random_bytes = random_bytes

    def close(self, plaintext: bytes) -> bytes:
        """The bytes to store."""
        if self._box is None:
            return _PLAIN + plaintext
        return _BOXED + bytes(self._box.encrypt(plaintext, self._random_bytes(SecretBox.NONCE_SIZE)))

    def open(self, stored: bytes) -> bytes:
        """The stored secrets. Raises `Refused` when the passphrase is missing or wrong."""
        if stored[:1] == _PLAIN:
            return stored[1:]
        if self._box is None:
            raise Refused(say("the secrets of this home are under a passphrase; give it"))
        try:
            return bytes(self._box.decrypt(stored[1:]))
        except CryptoError:
            raise Refused(say("the passphrase does not open the secrets of this home; try again")) from None


