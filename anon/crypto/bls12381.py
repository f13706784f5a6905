"""The numbers of BLS12-381 (draft-irtf-cfrg-pairing-friendly-curves, 4.2.1) and the sizes of its encodings."""

from __future__ import annotations

PARAMETER = 0xD201000000010000
"""The size of the curve family's parameter, which is negative: field and group order are polynomials in it."""

FIELD_ORDER = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001

# The curve's endomorphism (x, y) -> (ROOT * x, y) multiplies every point of the subgroup by EIGENVALUE: a cube root of
# one in the field, and one modulo the group order (a test checks both). It halves the length of scalars.
EIGENVALUE = PARAMETER**2 - 1
ROOT = pow(2, 2 * (FIELD_ORDER - 1) // 3, FIELD_ORDER)

EFFECTIVE_COFACTOR = PARAMETER + 1
"""This times any point of G1's curve lies in G1 (RFC 9380, 8.8.1). The order does not divide it: none of G1 is lost."""

G1_SIZE = 48
WIDE_SIZE = 2 * G1_SIZE
G2_SIZE = 96
SCALAR_SIZE = 32
