"""Checks of an installation that holds nobody's data, such as a teller's, with one next action per fault.

Those of peers and staff are in `anon.kit.diagnosis.installation`.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from anon.errors import AnonmlError
from anon.machine.environment import Child, for_child
from anon.text.sentences import Term, joined, say
from anon.values import frozen

OLDEST_TOR = (0, 4, 9)
"""The first whose control port turns proof of work on for an onion service."""
_INSTALL = say("install anonml again")


@frozen
class Check:
    """One thing that was looked at. `action` says what to do when it is not `ok`; `needed` whether no peer can do
    without it."""

    name: str
    ok: bool
    action: str = ""
    needed: bool = True


def _cryptography() -> Check:
    """The libraries underneath. The slow kind is told, and is a fault only on a machine that could have the other."""
    from anon.crypto.backend import NO_NATIVE_BUILD, PURE, VARIABLE

    try:
        from anon.crypto import curve, sealing
        from anon.crypto import nacl as sodium
    except ImportError as missing:
        return Check(say("cryptography"), False, str(missing))
    kinds = (
        (say("curve"), curve.IMPLEMENTATION),
        (Term("NaCl"), sodium.IMPLEMENTATION),
        (say("sealing"), sealing.IMPLEMENTATION),
    )
    slow = [name for name, kind in kinds if kind == PURE]
    if not slow:
        return Check(say("cryptography (native)"), True)
    name = say("cryptography ({parts} in Python: slower, and not constant-time)", parts=joined(slow, ", "))
    action = say("unset {variable}, or install anonml again", variable=Term(VARIABLE))
    return Check(name, sys.platform in NO_NATIVE_BUILD, action, needed=False)


def _token() -> Check:
    """A whole credential: commit, issue, verify, present, verify."""
    try:
        from anon.credential import (
            Verifier,
            blind_sign,
            commit,
            finalize,
            generate_secret_key,
            present,
            public_key,
        )
    except ImportError as missing:
        return Check(say("tokens (made and verified)"), False, str(missing))
    secret = generate_secret_key(os.urandom)
    key, header, entropy = public_key(secret), b"doctor", (1).to_bytes(32, "big")
    mine = commit(1, os.urandom)
    signature = blind_sign(secret, key, mine.commitment_with_proof, header, entropy, 1)
    credential = finalize(key, header, signature, entropy, mine)
    token = present(credential, b"context", b"packet", os.urandom)
    tag = Verifier(key, header, 1).check(token, b"context", b"packet")
    return Check(say("tokens (made and verified)"), token.startswith(tag), _INSTALL)


def _storage() -> Check:
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "probe.sqlite")
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        connection.close()
    action = say("use a local disk for --home and the temporary folder")
    return Check(say("durable storage (SQLite WAL)"), mode == "wal", action)


def _clock() -> Check:
    return Check(say("the clock (2026 or later)"), time.time() > 1_767_225_600, say("set the clock; windows go by it"))


def _python() -> Check:
    return Check(
        f"Python {sys.version_info.major}.{sys.version_info.minor}",
        sys.version_info >= (3, 11),
        say("use Python 3.11 or later"),
    )


def _tor() -> Check:
    """Where tor is and whether it is one that AnonML can own. A missing one fails nothing on a single machine."""
    from anon.route.tor import find_tor

    try:
        program = find_tor()
    except AnonmlError as missing:
        return Check("tor", False, str(missing), needed=False)
    version_text = _version_of(program)
    match = re.search(r"(\d+)\.(\d+)\.(\d+)(\.\d+)?", version_text)
    if match is None:
        return Check(f"tor ({program})", False, say("it does not say its version; install tor again"), needed=False)
    recent = tuple(int(part) for part in match.groups()[:3]) >= OLDEST_TOR
    oldest = ".".join(map(str, OLDEST_TOR))
    action = say("update tor to {version} or later", version=Term(oldest))
    return Check(f"tor {match[0]} ({program})", recent, action, needed=False)


def _version_of(program: Path) -> str:
    try:
        surroundings = for_child(Child.PROGRAM)
        done = subprocess.run(  # noqa: S603
            [program, "--version"], capture_output=True, text=True, check=False, timeout=20, env=surroundings
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


TOR_CHECK: Callable[[], Check] = _tor
SERVICE_CHECKS: tuple[Callable[[], Check], ...] = (_python, _clock, _storage, _cryptography, _token, TOR_CHECK)
