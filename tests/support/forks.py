"""Processes from a fork server that has everything imported, so that starting one costs milliseconds."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
FORKS = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)
FORKS.set_forkserver_preload([
    *("aggregator.app", "aggregator.study.learn", "aggregator.store.postgres", "asyncpg"),
    *("peer.app", "peer.store.backup.archive"),
    *(
        "anonml",
        "anon.kit.terminal.wiring",
        "anon.kit.terminal.placeholders",
        "anon.kit.terminal.logs",
        "anon.teller.cli",
    ),
    *(
        "peer.cli.main",
        "aggregator.cli.main",
        "aggregator.cli.study",
        "aggregator.cli.serve",
        "aggregator.audit.folder",
    ),
])


def run_command(words: Sequence[str], environment: Mapping[str, str], folder: Path, out: Path, errors: Path) -> None:
    """`anonml WORDS` in this process, as an interpreter of its own would run it. `out` and `errors`: where it
    prints."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in ((1, out), (2, errors)):
        with file.open("wb") as opened:
            os.dup2(opened.fileno(), number)
    faulthandler.enable()
    sys.argv = ["anonml", *words]
    from anonml import main

    main()
