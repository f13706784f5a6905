"""A teller's home as a process finds it."""

from __future__ import annotations

import os
from pathlib import Path

from anon.crypto.nacl import SigningKey
from anon.teller.home import open_home
from anon.teller.journal import Journal


def reopened(folder: Path) -> tuple[SigningKey, Journal]:
    home = open_home(folder, os.urandom)
    return home.key, Journal(home.journal)
