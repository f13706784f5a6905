"""The making of what packets say, in a child process: the server of this process, and the work that it is given."""

from __future__ import annotations

from anon.queries.process import Server, Work, packages
from anon.study.manifest import Manifest
from peer.data.making.content import Making, made
from peer.data.making.maker import WORD

_MAKER = Server("peer.data.making.maker", WORD, packages)


def work_of(told: Making, manifest: Manifest, size: int) -> Work:
    """The work of the child. `size`: bytes of its message, which is as long for every record (`made`)."""
    return Work(_MAKER, told.to_bytes(), size, lambda _seconds: made(told, manifest))
