"""The program that makes what packets say away from every key: a server that forks one child for each window.

It is started as the one that evaluates queries is (`anon.queries.child`), by exec and with nothing, and it never runs
anybody's SQL. A child reads what it is told, gives up every further descriptor, file and byte of memory beyond a limit,
writes one message of fixed size, and ends. It holds a study's answers and the random bytes of its shares, and no key.
"""

from __future__ import annotations

import socket

from anon.queries import child

WORD = "--make-answers"
"""The only argument of a program that brings its Python along, when it is to be the maker."""
MEMORY = 2 * 2**30
"""Bytes that a child may take."""


def makes(arguments: list[str]) -> bool:
    """True if this program was started to be the maker; if so, it has served when this returns."""
    if arguments != [WORD]:
        return False
    main()
    return True


def main() -> None:
    """Serve on standard input, which is the socket. All code is loaded first: a child cannot open its files."""
    from peer.data.making.content import Making, made
    from peer.protocols.installed import PROTOCOLS, load_all

    load_all()

    def work(channel: socket.socket, _ends: float) -> bytes:
        told = Making.from_bytes(child.received(channel))
        child.give_up_all_but(MEMORY)
        return made(told, PROTOCOLS.manifest(told.manifest))

    child.main(work)
