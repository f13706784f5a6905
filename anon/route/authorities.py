"""The certificate authorities of this machine, read when they are first needed.

aiohttp makes two TLS contexts while it is imported. Each reads the whole list of authorities: some 25 ms of processor
time. No route of ours speaks TLS, but another part of a program may with the same aiohttp.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def read_later() -> Iterator[None]:
    """Contexts that are made within read the authorities once they are about to speak TLS, as asyncio does it."""

    def later(context: Any) -> None:
        def wrap_bio(*given: Any, **named: Any) -> ssl.SSLObject:
            del context.wrap_bio
            context.set_default_verify_paths()
            wrapped: ssl.SSLObject = context.wrap_bio(*given, **named)
            return wrapped

        context.wrap_bio = wrap_bio

    own: Any = ssl.SSLContext
    if "set_default_verify_paths" in vars(own):  # somebody's in place of Python's, whose method is of a class in C
        yield
        return
    own.set_default_verify_paths = later
    try:
        yield
    finally:
        del own.set_default_verify_paths
