"""The key without which a phone's tor cannot even read where the onion service is (rend-spec-v3, CLIENT-AUTH)."""

from __future__ import annotations

import base64
from collections.abc import Callable

from attrs import field

from anon.crypto.nacl import PrivateKey
from anon.values import frozen
from anon.wire.onion_address import SUFFIX

_BYTES = 32


@frozen
class ClientKey:
    """One phone's x25519 secret key, 32 bytes. It is drawn for one pairing, and nothing of it is ever stored."""

    secret: bytes = field(repr=False)

    def __attrs_post_init__(self) -> None:
        if len(self.secret) != _BYTES:
            raise ValueError(f"an x25519 key has {_BYTES} bytes")

    def public_text(self) -> str:
        """As ADD_ONION's ClientAuthV3 takes it: 52 characters of base32."""
        return _base32(bytes(PrivateKey(self.secret).public_key))

    def secret_text(self) -> str:
        """As Tor Browser's prompt and Orbot's field for the key take it: 52 characters of base32."""
        return _base32(self.secret)

    def file_line(self, host: str) -> str:
        """The line of an `.auth_private` file (tor's ClientOnionAuthDir, Orbot for Android's import)."""
        return f"{host.removesuffix(SUFFIX)}:descriptor:x25519:{self.secret_text()}"

    def address(self, host: str) -> str:
        """Address and key in one, as Orbot for iOS scans them on its screen of authentication cookies."""
        return f"http://{host}/?key={self.secret_text()}"


def draw_client_key(random_bytes: Callable[[int], bytes]) -> ClientKey:
    """A fresh key, clamped as RFC 7748, section 5, says."""
    drawn = bytearray(random_bytes(_BYTES))
    drawn[0] &= 0xF8
    drawn[31] = drawn[31] & 0x7F | 0x40
    return ClientKey(bytes(drawn))


def _base32(key: bytes) -> str:
    return base64.b32encode(key).decode().rstrip("=")
