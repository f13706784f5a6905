"""The synthetic members of `benchmarks.life`: real keys, commitments and tokens, made by a driver, not by peers.

They are made in parts, each by one process, and kept in files of a folder, so that no process holds all of them. A
part's secrets are in `members-K`, its sealed enrolments in `enrolments-K`, its sealed packets in `packets-K`, and the
digests by which the transcript will have them in `digests-K`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import mul
from pathlib import Path
from typing import Self

import cbor2
from nacl.signing import SigningKey

from anon.credential import Credential, PublicKey, commit, issuance, proof, signer_nym_entropy, statement
from anon.credential.ciphersuite import API_PSEUDONYM, create_generators
from anon.credential.credential import finish_nym_secrets
from anon.credential.statement import make_context, nym_statement
from anon.crypto.curve import (
    G1,
    IDENTITY_G1,
    FixedBase,
    Scalar,
    decode_scalar,
    encode_g1,
    encode_scalar,
    multiexp,
)
from anon.ldp import RawCategory
from anon.protocols.outgoing import CutVector, RawVector, SurveyAnswer
from anon.protocols.posts import sealed_enrolment
from anon.protocols.sortition import draw, tag_context
from anon.study.manifest import Manifest, Survey
from anon.vdaf.circuits import Blocks
from anon.vdaf.field import Field, Vector
from anon.vdaf.flp import ProofSystem
from anon.wire.messages import Enrolment, sign_enrolment
from examples.protocols import PROTOCOLS
from peer.protocols.sum.part import SumPart
from peer.release import release

EACH = 500
"""Members of one part."""


def parts_of(members: int) -> list[int]:
    """How many members each part has."""
    return [min(EACH, members - done) for done in range(0, members, EACH)]


def seconds_for(work: Callable[..., None], *given: object) -> float:
    """Do this work in this process; the processor time that it took."""
    before = time.process_time()
    work(*given)
    return time.process_time() - before


def make_enrolments(folder: Path, number: int, manifest_bytes: bytes, count: int) -> None:
    """Write the part's secrets and its sealed enrolments."""
    manifest, shared = _shared(manifest_bytes)
    kept, posts = [], []
    for _ in range(count):
        with shared:
            key, secrets = SigningKey(os.urandom(32)), commit(manifest.packets, os.urandom)
        one = Enrolment(
            manifest.study_id, bytes(key.verify_key), os.urandom(32), secrets.commitment_with_proof, b""
        )
        posts.append(sealed_enrolment(manifest, sign_enrolment(one, key)))
        kept.append([one.key, list(secrets.nym_secrets), secrets.prover_blind])
    (folder / f"members-{number}").write_bytes(cbor2.dumps(kept))
    (folder / f"enrolments-{number}").write_bytes(cbor2.dumps(posts))


def make_packets(
    folder: Path,
    number: int,
    manifest_bytes: bytes,
    header: bytes,
    seed: bytes,
    signatures: Mapping[bytes, bytes],
    vector_for: Callable[[bytes], Sequence[int]] | None = None,
) -> None:
    """Write a packet of each member of the part, for slot 0, and their digests. `vector_for`: in a study of sums what
    the member with a key contributes."""
    manifest, shared = _shared(manifest_bytes)
    packets, digests = [], []
    for key, nyms, blind in cbor2.loads((folder / f"members-{number}").read_bytes()):
        entropy = signer_nym_entropy(seed, key)
        with shared:
            credential = _credential(manifest, header, signatures[key], entropy, nyms, blind)
            tag = shared.tag(credential)
            survey = manifest.survey(draw(manifest.slots[0], seed, tag))
            answer: SurveyAnswer | CutVector = (
                SurveyAnswer(0, survey.survey, RawCategory(key[0] % survey.m, survey.m))
                if vector_for is None
                else _cut(manifest, survey, RawVector(vector_for(key)), tag)
            )
            released = release(manifest.study_id, manifest, answer, credential, os.urandom)
        packets.append(released.sealed.ciphertext)
        digests.append(released.digest)
    (folder / f"packets-{number}").write_bytes(cbor2.dumps(packets))
    (folder / f"digests-{number}").write_bytes(cbor2.dumps(digests))


def _cut(manifest: Manifest, survey: Survey, vector: RawVector, tag: bytes) -> CutVector:
    return CutVector(0, survey.survey, SumPart().cut(manifest, survey, 0, vector, tag, os.urandom))


def keys_of(folder: Path, number: int) -> list[bytes]:
    """The public keys of a part's members."""
    return [key for key, _nyms, _blind in cbor2.loads((folder / f"members-{number}").read_bytes())]


def read_parts(folder: Path, what: str, parts: Sequence[int]) -> Iterator[bytes]:
    """All that the files `WHAT-0`, `WHAT-1`... hold, with one of them in memory at a time."""
    for number in range(len(parts)):
        yield from cbor2.loads((folder / f"{what}-{number}").read_bytes())


_PROVE = ProofSystem.prove


def prove_few(system: ProofSystem, encoded: Vector, seeds: Vector, randomness: Vector) -> Vector:
    """`ProofSystem.prove` for blocks, where all but a few cells are zeros. It takes a tenth of the time.

    Every call's result is zero, because a cell times the cell less one is. So the gadget's polynomial is 0 at all of
    the wires' own points but the first. Between them Lagrange's factors give each wire: of a cell less one, -1 but for
    the few.
    """
    circuit = system.circuit
    assert isinstance(circuit, Blocks)
    modulus, chunk = circuit.field.modulus, circuit.chunk
    few: list[list[tuple[int, int]]] = [[] for _ in range(chunk)]
    for cell in (at for at, element in enumerate(encoded) if element):
        call, place = divmod(cell, chunk)
        few[place].append((1 + call, pow(randomness[call], place + 1, modulus)))
    values = [0] * system.values
    values[0] = sum(map(mul, seeds[::2], seeds[1::2])) % modulus
    for number, row in enumerate(_between(circuit.field, system.points)[: system.values // 2]):
        first, rest, total = row[0], -sum(row[1 : 1 + circuit.calls]), 0
        for place, own in enumerate(few):
            even, odd = seeds[2 * place] * first, seeds[2 * place + 1] * first + rest
            for node, power in own:
                even += row[node] * power
                odd += row[node]
            total += even % modulus * (odd % modulus)
        values[2 * number + 1] = total % modulus
    return seeds + values


@lru_cache(maxsize=1)
def _between(field: Field, points: int) -> list[Vector]:
    return [field.weights(points, node) for node in field.roots(2 * points)[1::2]]


class Shared:
    """The points that all members multiply, each with a table: a driver does what thousands of machines would do.

    Within `with`, this process's tokens and commitments are made with the tables, and proofs of blocks by the few cells
    that are not zero. They are the same bytes.
    """

    def __init__(self, manifest: Manifest) -> None:
        generators = create_generators(manifest.packets + 1, b"BLIND_" + API_PSEUDONYM)
        self._context = make_context(tag_context(manifest, 0))
        self._tables = {id(point): FixedBase(point) for point in (*generators, self._context.point)}
        self._modules = (issuance, statement, proof)

    def __enter__(self) -> Self:
        for module in self._modules:
            setattr(module, "multiexp", self._multiexp)  # noqa: B010
        setattr(ProofSystem, "prove", prove_few)  # noqa: B010
        return self

    def __exit__(self, *_: object) -> None:
        for module in self._modules:
            setattr(module, "multiexp", multiexp)  # noqa: B010
        setattr(ProofSystem, "prove", _PROVE)  # noqa: B010

    def tag(self, credential: Credential) -> bytes:
        """As `pseudonym` gives it."""
        nyms = [decode_scalar(secret, "nym secret") for secret in credential.nym_secrets]
        return encode_g1(self._multiexp([self._context.point], [self._context.evaluate(nyms)]))

    def _multiexp(self, points: Sequence[G1], scalars: Sequence[Scalar]) -> G1:
        total, others = IDENTITY_G1, []
        for point, scalar in zip(points, scalars, strict=True):
            if (table := self._tables.get(id(point))) is None:
                others.append((point, scalar))
            else:
                total = total + table.multiply(scalar)
        if not others:
            return total
        return total + multiexp([point for point, _ in others], [scalar for _, scalar in others])


@lru_cache(maxsize=1)
def _shared(manifest_bytes: bytes) -> tuple[Manifest, Shared]:
    manifest = PROTOCOLS.manifest(manifest_bytes)
    return manifest, Shared(manifest)


def _credential(
    manifest: Manifest, header: bytes, signature: bytes, entropy: bytes, nyms: Sequence[bytes], blind: bytes
) -> Credential:
    """As `finalize` makes it, without the check that a peer owes itself. A bad one makes tokens that are refused."""
    secrets = finish_nym_secrets(nyms, entropy)
    key = PublicKey(manifest.credential_key)
    base = nym_statement(key, header, len(secrets)).base([decode_scalar(blind, "prover blind"), *secrets])
    return Credential(key, header, signature, encode_g1(base), blind, tuple(map(encode_scalar, secrets)))
