"""The peer as one program that brings its Python along (`make package`): the commands that a peer needs."""

from __future__ import annotations

import sys

import anonml
from anon.queries.process import evaluates
from peer.data.foreign_child import reads
from peer.data.making.maker import makes

PEERS = ("peer", "evidence", "doctor", "support-bundle")
"""The staff's commands need numpy and more, and demos a checkout; neither is in here."""

if __name__ == "__main__":
    if evaluates(sys.argv[1:]) or reads(sys.argv[1:]) or makes(sys.argv[1:]):
        sys.exit()
    for name in set(anonml.COMMANDS) - set(PEERS):
        del anonml.COMMANDS[name]
    anonml.main()
