"""The requests that a paired phone may make of the page: this list, and nothing that is not on it.

A phone is easily lost or lent, and it comes in from outside. So it brings files, reads what studies ask, and pauses.
Requests that bind the owner (a yes, limits, leaving), show values of theirs or take data away are made at the computer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from anon.text.sentences import say

_READ: Final = frozenset({"GET", "HEAD"})
_SEND: Final = frozenset({"POST"})

ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "/": _READ,
    "/static/{name}": _READ,
    "/language": _SEND,
    # Files from the phone. An added row never takes the place of what is there: see `peer.web.views.data`.
    "/data": _READ,
    "/data/upload": _SEND,
    "/data/preview/{key}": _READ | _SEND,
    "/data/imported/{key}": _READ | _SEND,
    # Reading what is asked. The screen leaves the owner's own answers and the yes out.
    "/invite/{study}": _READ,
    "/study/{study}": _READ,
    # Pausing and going on.
    "/pause": _SEND,
    "/resume": _SEND,
    "/study/{study}/pause": _SEND,
    "/study/{study}/resume": _SEND,
}
"""Route, as the page's router spells it -> methods."""

REFUSED: Final = (
    say(
        "A paired phone brings files, reads what studies ask, and pauses. Do this on the computer itself: it was "
        "not done, and nothing was changed."
    )
)


def permitted(method: str, route: str) -> bool:
    """True if a phone may use a route of the page."""
    return method in ALLOWED.get(route, frozenset())
