"""The served page of a home, as far as an icon, a window and notifications need it. The page's own room has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from peer.app import PeerApp
from peer.run.supervisor import Supervisor
from peer.store.home import PeerHome


class ServedSite(Protocol):
    """The peer behind the page, its clock and randomness, and the links whose questions wait for an answer."""

    @property
    def peer(self) -> PeerApp: ...

    @property
    def now(self) -> Callable[[], float]: ...

    @property
    def random_bytes(self) -> Callable[[int], bytes]: ...

    @property
    def invites(self) -> Mapping[bytes, object]: ...


class ServedPage(Protocol):
    """A server of the page: started once, closed once."""

    @property
    def site(self) -> ServedSite: ...

    @property
    def home(self) -> PeerHome: ...

    @property
    def supervisor(self) -> Supervisor: ...

    @property
    def link(self) -> str:
        """The link that opens the page in a browser, once."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...
