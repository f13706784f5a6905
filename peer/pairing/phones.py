"""The phones of one pairing: each has a key, a link that works once, at most one session, and can be revoked.

All of it lives in memory. When the process ends, however it does, no session, link or key is worth anything.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence

from attrs import define, field

from anon.errors import Refused
from anon.kit.page.gate import ENTER, TOKEN_BYTES, Gate
from anon.text.foreign import Quoted
from anon.text.sentences import say
from anon.values import frozen
from peer.pairing.client_key import ClientKey, draw_client_key

MOST_PHONES = 8
_NAME = re.compile(r"(?!\d+\Z)\w[\w .'\-]{0,39}\Z")
"""A name of digits alone could be taken for another phone's number, and the wrong one be revoked."""


@frozen
class PhoneRecord:
    """The owner's view of a phone. `entered` and `seen` are unix seconds, None before its link was used."""

    number: int
    name: str
    entered: float | None = None
    seen: float | None = None
    revoked: bool = False


@define
class Phone:
    """A phone that may come, has come, or was revoked."""

    number: int
    name: str
    key: ClientKey = field(repr=False)
    token: str | None = field(repr=False)
    """Of its link; None once used or revoked."""
    session: str | None = field(default=None, repr=False)
    entered: float | None = None
    seen: float | None = None
    revoked: bool = False

    def record(self) -> PhoneRecord:
        """The facts that may be told and stored."""
        return PhoneRecord(self.number, self.name, self.entered, self.seen, self.revoked)


class PhoneGate(Gate):
    """Who of the phones is let in. Raises `Refused` for names that cannot be told apart or shown."""

    def __init__(
        self, names: Sequence[str], random_bytes: Callable[[int], bytes], now: Callable[[], float]
    ) -> None:
        super().__init__("phone", random_bytes)
        _demand_names(names)
        self._draw_bytes = random_bytes
        self._now = now
        self.phones = tuple(
            Phone(number, name, draw_client_key(random_bytes), self._fresh()) for number, name in enumerate(names, 1)
        )

    def link_of(self, phone: Phone, origin: str) -> str:
        """The link that lets this phone in, once. Raises `Refused` when it was used."""
        if phone.token is None:
            name = Quoted(phone.name)
            raise Refused(say("the link of {name} was used; switch pairing off and on for another", name=name))
        return f"{origin}{ENTER}?token={phone.token}"

    def link(self, origin: str) -> str:
        """The first link that was not used. Raises `Refused` when there is none."""
        for phone in self.phones:
            if phone.token is not None:
                return self.link_of(phone, origin)
        raise Refused(say("every link was used; switch pairing off and on for another"))

    def exchange(self, token_untrusted: str) -> str | None:
        """A phone's one session for its link's token, which is worth nothing afterwards; None for any other."""
        for phone in self.phones:
            if phone.token is not None and _equal(token_untrusted, phone.token):
                phone.token, phone.session = None, self._fresh()
                phone.entered = phone.seen = self._now()
                return phone.session
        return None

    def phone_of(self, session_untrusted: str | None) -> Phone | None:
        """Whose living session a cookie's value is."""
        for phone in self.phones:
            if session_untrusted is not None and phone.session is not None and _equal(session_untrusted, phone.session):
                return phone
        return None

    def knows(self, session_untrusted: str | None) -> bool:
        """True if a cookie's value is a living session; its phone was seen now."""
        phone = self.phone_of(session_untrusted)
        if phone is not None:
            phone.seen = self._now()
        return phone is not None

    def lives(self, session: str) -> bool:
        """True if it is a living session; its phone counts as seen no later for that."""
        return self.phone_of(session) is not None

    def leave(self, session: str) -> None:
        """End a session. Its phone does not come in again."""
        phone = self.phone_of(session)
        if phone is not None:
            phone.session = None

    def revoke(self, number: int) -> None:
        """End a phone's session and link at once. Its key is taken from the onion service by who runs that."""
        for phone in self.phones:
            if phone.number == number:
                phone.token, phone.session, phone.revoked = None, None, True

    def close(self) -> None:
        """End every session and link."""
        for phone in self.phones:
            phone.token, phone.session = None, None

    def admitted(self) -> tuple[ClientKey, ...]:
        """The keys of the phones that were not revoked."""
        return tuple(phone.key for phone in self.phones if not phone.revoked)

    def records(self) -> tuple[PhoneRecord, ...]:
        """The facts of all phones that may be told and stored."""
        return tuple(phone.record() for phone in self.phones)

    def _fresh(self) -> str:
        return self._draw_bytes(TOKEN_BYTES).hex()


def _demand_names(names: Sequence[str]) -> None:
    if not 0 < len(names) <= MOST_PHONES:
        raise Refused(say(
            "expected 1 to {most_phones} phones, got {names}; name each with --name",
            most_phones=MOST_PHONES,
            names=len(names),
        ))
    if any(not _NAME.match(name) for name in names):
        raise Refused(
            say(
                "a phone's name: letters, digits (not alone), blanks, . ' and -, at most 40; choose another with "
                "--name"
            )
        )
    if len({name.casefold() for name in names}) < len(names):
        raise Refused(say("two phones have one name; choose another with --name"))


def _equal(first: str, other: str) -> bool:
    return hmac.compare_digest(first.encode("utf-8", "replace"), other.encode())
