"""The checks of `anonml teller doctor`: this installation, the home, its disk, its words, and if it can be reached."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from anon.errors import AnonmlError
from anon.kit.diagnosis.checks import SERVICE_CHECKS, Check
from anon.teller.home import TellerHome, existing_home
from anon.teller.journal import SCHEMA
from anon.transparency.fingerprint import teller_words

ROOM = 2**30
"""Bytes that should be free: a study of 2,000 members and long vectors keeps some hundred MB of shares for a while."""
START = "start it: `anonml teller serve`"
Ask = Callable[[TellerHome], tuple[str, str]]
"""Asks the teller for its name and words, over the route that an aggregator takes."""


def findings(home: Path, ask: Ask) -> Iterator[Check]:
    """Each check, with one next action where it fails. Raises nothing for a home that is wrong."""
    yield from (check() for check in SERVICE_CHECKS)
    try:
        opened = existing_home(home, os.urandom)
        place = opened.place()
    except AnonmlError as fault:
        yield Check("home", False, str(fault))
        return
    yield _home(opened)
    words = teller_words(bytes(opened.key.verify_key))
    yield Check(f"words ({place.name}: {words})", True)
    yield _room(home)
    yield _reached(opened, words, ask)


def _home(home: TellerHome) -> Check:
    name = f"home ({home.path})"
    try:
        if home.journal.exists():
            SCHEMA.demand_own(home.journal)
        home.allowed()
    except AnonmlError as fault:
        return Check(name, False, str(fault))
    return Check(name, True)


def _room(home: Path) -> Check:
    free = shutil.disk_usage(home).free
    action = "make room: with a full disk it takes no packet, and its studies wait"
    return Check(f"disk ({free / 2**30:.1f} GB free)", free >= ROOM, action)


def _reached(home: TellerHome, words: str, ask: Ask) -> Check:
    """A served teller answers at its own address, and with its own words."""
    place = home.place()
    try:
        name, told = ask(home)
    except AnonmlError as fault:
        return Check(f"reachable at {place.address}", False, f"{str(fault).rstrip('.')}. If nobody serves it, {START}")
    if (name, told) != (place.name, words):
        action = "another teller answers there: stop it, or serve this one at an address of its own"
        return Check(f"reachable at {place.address}", False, action)
    return Check(f"reachable at {place.address}, with these words", True)
