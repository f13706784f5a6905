"""ML-KEM-768 (FIPS 203): keys from their seed, encapsulation, decapsulation. **Not constant-time.**

A polynomial is a list of 256 integers below q = 3329, a vector a list of three polynomials.
"""

from __future__ import annotations

import hashlib
from hmac import compare_digest
from itertools import count

from anon.crypto.sealing_sizes import bad_key

PRIME, DEGREE, RANK = 3329, 256, 3
COMPRESSED_VECTOR_BITS, COMPRESSED_ROW_BITS = 10, 4
ELEMENT_BITS = 12
SEED_SIZE = 32
VECTOR_SIZE = RANK * DEGREE * COMPRESSED_VECTOR_BITS // 8
# The factor at the end of algorithm 10.
INVERSE_OF_128 = 3303
Polynomial = list[int]


def _reversed_bits(number: int) -> int:
    return int(f"{number:07b}"[::-1], 2)


ZETAS = tuple(pow(17, _reversed_bits(place), PRIME) for place in range(128))
GAMMAS = tuple(pow(17, 2 * _reversed_bits(place) + 1, PRIME) for place in range(128))


def key_pair(seed: bytes) -> tuple[bytes, list[Polynomial]]:
    """A key of 1184 bytes, and the secret vector in NTT form, from the seed d of 32 (K-PKE.KeyGen, algorithm 13)."""
    digest = hashlib.sha3_512(seed + bytes([RANK])).digest()
    spread, drawn = digest[:SEED_SIZE], digest[SEED_SIZE:]
    noise = [_transform(_small(drawn, number)) for number in range(2 * RANK)]
    secret, errors = noise[:RANK], noise[RANK:]
    public = [
        _add(_dot([_uniform(spread + bytes([column, line])) for column in range(RANK)], secret), errors[line])
        for line in range(RANK)
    ]
    return b"".join([*(_pack(part, ELEMENT_BITS) for part in public), spread]), secret


def encapsulate(key: bytes, message: bytes) -> tuple[bytes, bytes]:
    """Algorithm 17: ciphertext (1088 bytes) and shared secret (32) from a key of 1184 bytes and 32 random ones.

    Raises `Malformed` for a key with an element that is not below the prime (FIPS 203, 7.2).
    """
    shared, drawn = _derived(key, message)
    return _encrypt(key, message, drawn), shared


def decapsulate(ciphertext_untrusted: bytes, key: bytes, secret: list[Polynomial], rejection: bytes) -> bytes:
    """The shared secret of 32 bytes from a ciphertext of 1088 and both halves of a key pair (algorithm 18).

    Rejection is implicit: a ciphertext made otherwise gives a secret of `rejection` (the seed z) and of itself.
    """
    message = _decrypt(secret, ciphertext_untrusted)
    shared, drawn = _derived(key, message)
    refused = hashlib.shake_256(rejection + ciphertext_untrusted).digest(SEED_SIZE)
    return shared if compare_digest(_encrypt(key, message, drawn), ciphertext_untrusted) else refused


def _derived(key: bytes, message: bytes) -> tuple[bytes, bytes]:
    """Shared secret and seed of the noise: G(m || H(ek))."""
    digest = hashlib.sha3_512(message + hashlib.sha3_256(key).digest()).digest()
    return digest[:SEED_SIZE], digest[SEED_SIZE:]


def _encrypt(key: bytes, message: bytes, seed: bytes) -> bytes:
    """K-PKE.Encrypt, algorithm 14."""
    public, spread = _decode_key(key), key[-SEED_SIZE:]
    noise = (_small(seed, number) for number in count())
    secret = [_transform(next(noise)) for _ in range(RANK)]
    errors = [next(noise) for _ in range(RANK)]
    row = _add(_inverse(_dot(public, secret)), next(noise))
    row = _add(row, _decompress(message, 1))
    vector = [
        _add(_inverse(_dot([_uniform(spread + bytes([column, line])) for line in range(RANK)], secret)), errors[column])
        for column in range(RANK)
    ]
    packed = [_compress(part, COMPRESSED_VECTOR_BITS) for part in vector]
    return b"".join([*packed, _compress(row, COMPRESSED_ROW_BITS)])


def _decrypt(secret: list[Polynomial], ciphertext: bytes) -> bytes:
    """K-PKE.Decrypt, algorithm 15: the nearest message, whatever the ciphertext."""
    vector = _parts(_decompress(ciphertext[:VECTOR_SIZE], COMPRESSED_VECTOR_BITS))
    row = _decompress(ciphertext[VECTOR_SIZE:], COMPRESSED_ROW_BITS)
    mask = _inverse(_dot(secret, [_transform(part) for part in vector]))
    return _compress([(a - b) % PRIME for a, b in zip(row, mask, strict=True)], 1)


def _decode_key(key: bytes) -> list[Polynomial]:
    elements = _unpack(key[:-SEED_SIZE], ELEMENT_BITS)
    if any(element >= PRIME for element in elements):
        raise bad_key()
    return _parts(elements)


def _parts(elements: list[int]) -> list[Polynomial]:
    return [elements[at : at + DEGREE] for at in range(0, len(elements), DEGREE)]


def _uniform(seed: bytes) -> Polynomial:
    """SampleNTT: 256 uniform elements of SHAKE128's stream; those at or above the prime are drawn again."""
    # At first 560 draws, of which 455 are expected to be kept: 256 are nearly certain.
    for size in count(840, 168):
        stream = _unpack(hashlib.shake_128(seed).digest(size), ELEMENT_BITS)
        drawn = [element for element in stream if element < PRIME]
        if len(drawn) >= DEGREE:
            return drawn[:DEGREE]
    raise AssertionError("a stream has no end")


def _small(seed: bytes, number: int) -> Polynomial:
    """SamplePolyCBD with eta = 2: differences of sums of two bits."""
    drawn = _unpack(hashlib.shake_256(seed + bytes([number])).digest(128), 4)
    return [((four & 1) + (four >> 1 & 1) - (four >> 2 & 1) - (four >> 3)) % PRIME for four in drawn]


def _transform(polynomial: Polynomial) -> Polynomial:
    """NTT, algorithm 9."""
    values, place, length = list(polynomial), 1, DEGREE // 2
    while length >= 2:
        for start in range(0, DEGREE, 2 * length):
            zeta, place = ZETAS[place], place + 1
            for at in range(start, start + length):
                turned = zeta * values[at + length] % PRIME
                values[at + length] = (values[at] - turned) % PRIME
                values[at] = (values[at] + turned) % PRIME
        length //= 2
    return values


def _inverse(values: Polynomial) -> Polynomial:
    """Inverse NTT, algorithm 10."""
    polynomial, place, length = list(values), 127, 2
    while length <= DEGREE // 2:
        for start in range(0, DEGREE, 2 * length):
            zeta, place = ZETAS[place], place - 1
            for at in range(start, start + length):
                first, second = polynomial[at], polynomial[at + length]
                polynomial[at] = (first + second) % PRIME
                polynomial[at + length] = zeta * (second - first) % PRIME
        length *= 2
    return [element * INVERSE_OF_128 % PRIME for element in polynomial]


def _dot(first: list[Polynomial], second: list[Polynomial]) -> Polynomial:
    """The sum of products in NTT form, algorithms 11 and 12."""
    total = [0] * DEGREE
    for left, right in zip(first, second, strict=True):
        for pair, gamma in enumerate(GAMMAS):
            at = 2 * pair
            a, b, c, d = left[at], left[at + 1], right[at], right[at + 1]
            total[at] += a * c + b * d % PRIME * gamma
            total[at + 1] += a * d + b * c
    return [element % PRIME for element in total]


def _add(first: Polynomial, second: Polynomial) -> Polynomial:
    return [(a + b) % PRIME for a, b in zip(first, second, strict=True)]


def _compress(polynomial: Polynomial, bits: int) -> bytes:
    """Compress (FIPS 203, 4.2.1), then ByteEncode."""
    mask = (1 << bits) - 1
    return _pack([((element << bits) + PRIME // 2) // PRIME & mask for element in polynomial], bits)


def _decompress(data: bytes, bits: int) -> list[int]:
    """ByteDecode, then Decompress (FIPS 203, 4.2.1). One bit is 0, or 1665, half of q rounded up."""
    return [(element * PRIME + (1 << bits - 1)) >> bits for element in _unpack(data, bits)]


def _pack(elements: list[int], bits: int) -> bytes:
    """ByteEncode: elements as `bits` bits each, little-endian."""
    packed = 0
    for place, element in enumerate(elements):
        packed |= element << place * bits
    return packed.to_bytes(DEGREE * bits // 8, "little")


def _unpack(data: bytes, bits: int) -> list[int]:
    """ByteDecode: integers of `bits` bits each, little-endian."""
    whole, mask = int.from_bytes(data, "little"), (1 << bits) - 1
    return [whole >> place & mask for place in range(0, 8 * len(data) - bits + 1, bits)]
