"""The rules by which a page on loopback lets a request in: plain values, no network.

Every site that the browser visits, and every program of other users here, can send requests to a loopback port. A
request is let in on four conditions. (1) It names a host of ours; a name that was rebound to loopback does not. (2) It
does not come from a page of another origin. (3) It carries the cookie for which the link printed in the terminal was
exchanged, once. (4) If it changes something, it also carries the form's token, which only our own pages know.

Before (3), where the kernel says whose program is there (`anon.kit.page.peer_process`): it is the owner's, or root's.
Other users can read the link in the words that a browser is started with. Cookies ignore ports, so a server of theirs
that the browser is led to visit is sent the cookie.

Not protected against: programs that run as the same user, since they read the home itself. Nor against other users on
systems other than Linux, where the kernel cannot be asked. Each start of the program has other links and cookies.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from anon.text.sentences import say
from anon.values import frozen

TOKEN_BYTES = 32
MOST_SESSIONS = 16
ENTER = "/enter"
"""Where the link's token is exchanged."""
FORM_FIELD = "form_token"

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing inline runs, and nothing is fetched from anywhere else."""

DOCUMENT_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox"
)
"""For a self-contained document, such as a report: its own style sheet, no script, an origin of its own."""

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # `no-referrer` would make browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""Of every answer."""

_READS = frozenset({"GET", "HEAD"})
_OWN_SITES = frozenset({None, "same-origin", "none"})


@frozen
class GateRequest:
    """A request's statement of its origin: method, path, the headers Host, Origin and Sec-Fetch-Site."""

    method: str
    path: str
    host: str | None
    origin: str | None
    site: str | None


def hosts_of(port: int) -> frozenset[str]:
    """The values of `Host` that mean this page on loopback."""
    return frozenset({f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"})


def refusal(request: GateRequest, hosts: AbstractSet[str]) -> str | None:
    """Why a request is refused whoever sent it, or None. Steps 1 and 2; the cookie and the form's token come after.

    The exchange may be asked for from anywhere, because a link may be clicked in another program's window; knowing the
    token is what counts there.
    """
    if request.host not in hosts:  # 1.
        return say("this page answers only under its own address")
    if request.method not in _READS | {"POST"}:
        return say("this page reads and takes forms only")
    if request.method in _READS and request.path == ENTER:
        return None
    if request.origin is not None and request.origin != f"http://{request.host}":  # 2.
        return say("another site's page asked for this")
    if request.method == "POST" and request.origin is None and request.site != "same-origin":
        return say("a form must come from this page")
    return None if request.site in _OWN_SITES else say("another site's page asked for this")


class Gate:
    """The sessions of one page in memory. A restart ends them all.

    Browsers keep one set of cookies for all ports of a host: `name` tells pages apart, so put the port into it.
    `changed` is called when a link was used and there is another.
    """

    def __init__(
        self, name: str, random_bytes: Callable[[int], bytes], changed: Callable[[], None] = lambda: None
    ) -> None:
        self.cookie = f"anonml-{name}"
        self._changed = changed
        self._random_bytes = random_bytes
        self._secret = random_bytes(TOKEN_BYTES)
        self._sessions: list[str] = []
        self._link = self._draw()

    def link(self, origin: str) -> str:
        """The one link that lets a browser in, once; after its use this is another one. `origin`: "http://host:port"."""
        return f"{origin}{ENTER}?token={self._link}"

    def exchange(self, token_untrusted: str) -> str | None:
        """A fresh session for the link's token, which is worth nothing afterwards; None for any other."""
        if not _equal(token_untrusted, self._link):
            return None
        used, self._link = self._link, self._draw()
        try:
            self._changed()
        except OSError:  # a disk that takes nothing: nobody would learn of another link
            self._link = used
            raise
        session = self._draw()
        self._sessions = [*self._sessions[-(MOST_SESSIONS - 1) :], session]
        return session

    def knows(self, session_untrusted: str | None) -> bool:
        """True if a cookie's value is a living session."""
        return session_untrusted is not None and any(_equal(session_untrusted, session) for session in self._sessions)

    def lives(self, session: str) -> bool:
        """The same of a session that came in earlier, for what goes on without a request. Safe in any thread."""
        return any(_equal(session, known) for known in self._sessions)

    def form_token(self, session: str) -> str:
        """The secret that every form of this session carries."""
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()

    def fits(self, session: str, form_token_untrusted: str) -> bool:
        """True if a form was made by our own page for this session."""
        return _equal(form_token_untrusted, self.form_token(session))

    def leave(self, session: str) -> None:
        """End a session."""
        self._sessions = [known for known in self._sessions if not _equal(session, known)]

    def _draw(self) -> str:
        return self._random_bytes(TOKEN_BYTES).hex()


def _equal(first: str, other: str) -> bool:
    return hmac.compare_digest(first.encode("utf-8", "replace"), other.encode())
