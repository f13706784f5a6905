"""The app that Briefcase packs: without words the page in a window, with words the commands."""

from __future__ import annotations

import sys

import anonml
from anon.queries.process import evaluates
from peer.data.foreign_child import reads
from peer.data.making.maker import makes

if __name__ == "__main__":
    if evaluates(sys.argv[1:]) or reads(sys.argv[1:]) or makes(sys.argv[1:]):
        sys.exit()
    if len(sys.argv) == 1:
        sys.argv += ["peer", "window"]
    anonml.main()
