"""Which sentence the browser of an open page may show: fixed ones, at times that are drawn as the desktop's are."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from attrs import define

from peer.run.notices import Happening, Matter, draw_look, next_told

COOKIE: Final = "anonml-notices"
ON, OFF = "on", "off"
"""The choice in a browser, as its cookie says it. Without one the page still offers it."""


@define
class BrowserNotices:
    """Of one run of the page. The first question only takes note of what is there: the page shows it."""

    _random_bytes: Callable[[int], bytes]
    _known: frozenset[str] | None = None
    _look_at: float = 0.0

    def due(self, happened: Collection[Happening], now: float) -> Matter | None:
        """The most urgent new matter, once, if it is time for a look."""
        keys = frozenset(happening.key for happening in happened)
        if self._known is None:
            self._known, self._look_at = keys, now + draw_look(True, self._random_bytes)
            return None
        if now < self._look_at:
            return None
        matter = next_told(happened, self._known)
        told = {happening.key for happening in happened if happening.matter is matter}
        self._known, self._look_at = (self._known & keys) | told, now + draw_look(False, self._random_bytes)
        return matter
