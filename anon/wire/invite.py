"""The invite link: where the aggregator is, which key it must have, which study it is, and one admission's code."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlsplit

from attrs import field

from anon.crypto import labels
from anon.errors import Malformed
from anon.text.foreign import whole_place
from anon.text.sentences import attributed, say
from anon.values import frozen
from anon.wire.addresses import onion_address_fault
from anon.wire.cbor import sha256
from anon.wire.onion_address import is_onion

SCHEME = "anonml"
_ADDRESS = re.compile(r"[A-Za-z0-9.\-\[\]:]+:\d{1,5}\Z")


@frozen
class Invite:
    """`address` host:port; `key` the aggregator's Ed25519 public key (32 bytes); `study` the study id (32 bytes);
    `code` the admission's secret text, empty where admission is by list or open.

    An onion address is always `<56 characters>.onion:80` in lower case. So neither a subdomain nor a port nor a
    spelling can mark one link's peer. All three travel with every request.

    >>> invite = Invite("127.0.0.1:8080", key=bytes(32), study=bytes(32), code="knock knock")
    >>> parse_invite(invite.link()) == invite, invite.link()[-18:]
    (True, 'code=knock%20knock')
    >>> "knock" in repr(invite)
    False
    """

    address: str
    key: bytes
    study: bytes
    code: str = field(default="", repr=False)

    def __attrs_post_init__(self) -> None:
        if not _ADDRESS.match(self.address):
            got = whole_place(self.address)
            raise Malformed(say("invite: expected an address host:port, got {got}; ask for the link again", got=got))
        host = self.address.rpartition(":")[0]
        if is_onion(host) and (fault := onion_address_fault(self.address)):
            raise Malformed(say("invite: {fault}; ask for the link again", fault=attributed(fault)))
        if len(self.key) != 32 or len(self.study) != 32:
            raise Malformed(say("invite: expected a key and a study of 64 hexadecimal digits; ask for the link again"))

    def link(self) -> str:
        """The link as text."""
        code = f"&code={quote(self.code)}" if self.code else ""
        return f"{SCHEME}://{self.address}/{self.study.hex()}?key={self.key.hex()}{code}"


def parse_invite(link: str) -> Invite:
    """An invite from its link. Raises `Malformed` and says to ask for it again."""
    try:
        parts = urlsplit(link.strip())
        # Without the flag the parser passes over what it cannot read.
        query = parse_qsl(parts.query, strict_parsing=True)
        fields = dict(query)
        study, key = bytes.fromhex(parts.path.strip("/")), bytes.fromhex(fields.pop("key"))
    except (ValueError, KeyError):
        raise Malformed(
            say("invite: not an AnonML link (anonml://ADDRESS/STUDY?key=KEY&code=CODE); ask for it again")
        ) from None
    code = fields.pop("code", "")
    # A repeated parameter is lost in the dictionary, and still there in the list.
    if parts.scheme != SCHEME or fields or len(query) != 1 + ("code" in dict(query)) or len(code) > 200:
        raise Malformed(say("invite: not an AnonML link (anonml://ADDRESS/STUDY?key=KEY&code=CODE); ask for it again"))
    return Invite(parts.netloc, key, study, code)


def invite_hash(study: bytes, code: str) -> bytes:
    """The form of a code in an enrolment: SHA-256(label, study, code); 32 bytes. Empty for an empty code."""
    return sha256(labels.INVITE, study, code.encode()) if code else b""
