"""Opening sealed messages, for those that own a secret: by `cryptography`, or in Python where it has no build.

The one in Python is not constant-time. `anon.crypto.backend` decides, as for sealing.

>>> from os import urandom
>>> from anon.crypto.sealing import OVERHEAD, seal
>>> opener = Opener(urandom(32))
>>> sealed = seal(b"a report", opener.public_key, b"packets of study 1")
>>> opener.open(sealed, b"packets of study 1"), len(sealed) - OVERHEAD
(b'a report', 8)
>>> opener.open(sealed, b"packets of study 2")
Traceback (most recent call last):
anon.errors.RejectedProof: a sealed message does not open
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anon.crypto.backend import PURE
from anon.crypto.sealing import IMPLEMENTATION

if TYPE_CHECKING or IMPLEMENTATION != PURE:
    from anon.crypto.sealing.openssl import Opener
else:
    from anon.crypto.pure.sealing import Opener

__all__ = ["Opener"]
