"""The keys of onion services, and the addresses that are nothing but their public halves.

Tor's control port takes and gives the secret half as an expanded Ed25519 key (scalar || prefix, 64 bytes), in base64.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path

from attrs import field

from anon.errors import Malformed
from anon.storage.private_files import keep_first
from anon.values import frozen
from anon.wire.addresses import MOST_ADDRESSES, ONION_PORT
from anon.wire.onion_address import onion_host

ONION_KEY = "onion.key"
"""The name of the key's file in a home."""
ONION_KEYS = (ONION_KEY, *(f"onion-{number}.key" for number in range(2, MOST_ADDRESSES + 1)))
"""The files of a home's keys, in the order of its addresses."""
_SCHEME = "ED25519-V3:"


@frozen
class OnionKey:
    """An expanded Ed25519 secret key, 64 bytes. Valid once built: its scalar is clamped."""

    expanded: bytes = field(repr=False)

    def __attrs_post_init__(self) -> None:
        if len(self.expanded) != 64 or self.expanded[0] & 7 or self.expanded[31] & 0xC0 != 0x40:
            raise Malformed(f"{ONION_KEY}: not an onion service's key; restore the backup, or delete it for a new one")

    def text(self) -> str:
        """As ADD_ONION takes it."""
        return _SCHEME + base64.b64encode(self.expanded).decode()

    def address(self) -> str:
        """host:port of the service."""
        from nacl.bindings import crypto_scalarmult_ed25519_base_noclamp  # late: no phone has it, and none serves

        return f"{onion_host(crypto_scalarmult_ed25519_base_noclamp(self.expanded[:32]))}:{ONION_PORT}"


def draw_key(random_bytes: Callable[[int], bytes]) -> OnionKey:
    """A fresh key, expanded from 32 random bytes as RFC 8032, section 5.1.5, does."""
    digest = bytearray(hashlib.sha512(random_bytes(32)).digest())
    digest[0] &= 0xF8
    digest[31] = digest[31] & 0x7F | 0x40
    return OnionKey(bytes(digest))


def parse_key(text: str) -> OnionKey:
    """A key from its text. Raises `Malformed`."""
    scheme, _, encoded = text.strip().partition(_SCHEME)
    try:
        expanded = base64.b64decode(encoded, validate=True)
    except ValueError:
        expanded = b""
    return OnionKey(b"" if scheme else expanded)


def kept_key(home: Path) -> OnionKey | None:
    """The key kept in a home, None when there is none. Raises `Malformed` when it is damaged."""
    return _read(home / ONION_KEY)


def keep_key(home: Path, random_bytes: Callable[[int], bytes]) -> OnionKey:
    """The key kept in a home, drawn and stored durably (mode 0600) when there is none."""
    return keep_keys(home, random_bytes, 1)[0]


def keep_keys(home: Path, random_bytes: Callable[[int], bytes], count: int = 0) -> tuple[OnionKey, ...]:
    """The first so many of a home's keys (0: all that are kept, at least one), each drawn and stored durably when it is
    missing. Raises `Malformed` when one is damaged."""
    kept = [name for name in ONION_KEYS if (home / name).exists()]
    names = ONION_KEYS[:count] if count else kept or ONION_KEYS[:1]
    return tuple(_read(home / name) or _drawn_and_kept(home / name, random_bytes) for name in names)


def _read(path: Path) -> OnionKey | None:
    return parse_key(path.read_text("ascii", "replace")) if path.exists() else None


def _drawn_and_kept(path: Path, random_bytes: Callable[[int], bytes]) -> OnionKey:
    """The key that is kept then: another process may have drawn one meanwhile, and manifests name its address."""
    keep_first(path, draw_key(random_bytes).text().encode() + b"\n")
    return parse_key(path.read_text("ascii", "replace"))
