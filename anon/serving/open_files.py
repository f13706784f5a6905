"""The files that this process may have open: connections are files, too."""

from __future__ import annotations

import sys
from contextlib import suppress

WANTED = 32_768
_WITHOUT_LIMITS = 2_048


def open_files() -> int:
    """How many it may have, once the soft limit was raised towards the hard one. Never lowers a limit."""
    if sys.platform == "win32":
        return _WITHOUT_LIMITS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return WANTED if soft == resource.RLIM_INFINITY else soft
    with suppress(OSError, ValueError):  # macOS allows less than its hard limit says
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft
