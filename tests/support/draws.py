"""All that tests draw repeats itself: each test begins a stream named after it, which the operating system's bytes come
from.

So no assertion is decided by chance, but by a change of the code that draws. ANONML_DRAWS=7 names another stream, and
other seeds than those that tests give to numpy. A test that fails with some supposes more than its code promises.

Bytes that libraries in C draw by themselves are the operating system's: a sealed box's key, a file's temporary name.
So are those of a process that a test starts. A test that a draw of these decides states its false-alarm rate.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_of_the_system = os.urandom
_process = os.getpid()
_numbers: Iterator[int] = itertools.count()
_stream = b""
_free = False


def urandom(size: int, /) -> bytes:
    """The stream's next bytes, in the process of the tests; in any other, and once draws are free, the operating
    system's."""
    if size < 0 or _free or os.getpid() != _process:
        return _of_the_system(size)
    return hashlib.shake_256(_stream + next(_numbers).to_bytes(8, "big")).digest(size)


# A child that gets the function by its name gets the operating system's.
urandom.__module__, urandom.__qualname__ = "os", "urandom"


def begin(name: str) -> None:
    """A new stream, and `random`'s own generator with it."""
    global _stream, _numbers
    _stream = hashlib.sha256(f"{os.environ.get('ANONML_DRAWS', '')} {name}".encode()).digest()
    _numbers = itertools.count()
    random.seed(_stream)


@contextmanager
def apart(name: str) -> Iterator[None]:
    """A stream of its own for what several tests share: whichever makes it first gets the same bytes, and its own
    stream goes on afterwards as if nothing had been drawn."""
    global _stream, _numbers
    before = _stream, _numbers, random.getstate()
    begin(name)
    try:
        yield
    finally:
        _stream, _numbers = before[:2]
        random.setstate(before[2])


def be_free() -> None:
    """From now on every draw is the operating system's."""
    global _free
    _free = True


def as_seeded(seed: int) -> np.random.Generator:
    """numpy's `default_rng(seed)`, whatever ANONML_DRAWS says: for what is known of that very seed."""
    import numpy as np

    return np.random.Generator(np.random.PCG64(seed))


def install() -> None:
    """In place of the operating system's, before the code under test is imported."""
    os.urandom = urandom
    random._urandom = urandom  # type: ignore[attr-defined]
    if named := os.environ.get("ANONML_DRAWS"):
        _install_seeds(zlib.crc32(named.encode()))


def _install_seeds(other: int) -> None:
    """The seeds of tests alone: from those of the program follows what it publishes."""
    import numpy as np

    with_seed = np.random.default_rng

    def default_rng(seed: object = None) -> np.random.Generator:
        asks = sys._getframe(1).f_globals.get("__name__", "")
        plain = seed is not None and asks.startswith("tests.") and np.issubdtype(np.asarray(seed).dtype, np.integer)
        return with_seed([*np.atleast_1d(seed), other] if plain else seed)

    np.random.default_rng = default_rng
