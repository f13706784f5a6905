"""One person, two roles: where the aggregator's part of a peer's home is.

Any peer can be an aggregator too. Its keys, its database and its onion address then live in a folder of their own in
the peer's home, so that one folder, and one backup, holds both. The two roles share nothing else: neither reads the
other's files, and each study has fresh keys on both sides, so that nothing links what one person does in both.
"""

from __future__ import annotations

from pathlib import Path

from anon.errors import Refused

PEER_FILES = ("peer.sqlite", "data.sqlite")
AGGREGATOR = "aggregator"
MOVED = "aggregator.moved"
RESTORED = "restored"
"""In an aggregator's folder: it came out of a backup that was not final."""


def is_peers(home: Path) -> bool:
    """True if a peer lives in this folder."""
    return any((home / name).exists() for name in PEER_FILES)


def aggregators_home(home: Path) -> Path:
    """The aggregator's folder that `--home` means: the part of a peer's home, or the folder itself.

    Raises `Refused` in a peer's home that a final backup moved elsewhere: two aggregators with one key would soon have
    told two stories.
    """
    if (home / MOVED).exists():
        raise Refused(f"{home}: this aggregator was moved elsewhere by a final backup; use the restored one")
    return home / AGGREGATOR if is_peers(home) else home
