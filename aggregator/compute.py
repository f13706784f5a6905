"""The place of heavy work: this process, several processes of this machine, or a Dask cluster.

joblib does the work. Every result is the same to the last bit wherever it was computed: each piece of work has its own
seed, results come in the order of what was given, and linear algebra has one thread everywhere.

Only public data and the staff's own goes to another process from here, never a key: secret keys stay in the server's
own workers (`aggregator.intake.workers`). Another machine that computes is trusted for the result, and it sees what it
computes on (docs/compute.md).
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from math import ceil
from typing import Any, TypeVar

from attrs import frozen

from anon.errors import Malformed, Refused, because
from anon.machine.extras import install

Given = TypeVar("Given")
Result = TypeVar("Result")

MOST_PROCESSES = 512
HELP = "Processes of this machine, or the cluster of a Dask scheduler (dask://HOST:PORT): docs/compute.md."
"""Of the option `--compute`."""
PARTS = 4
"""Of the work for each process: so that none waits long for the last, and little is sent twice."""
CLUSTER = re.compile(r"(?:dask|tcp|tls)://[^/?#\s]+:[0-9]{1,5}")
_PATIENCE = 10
"""Seconds until a scheduler must have answered."""
_ALIKE = ("anonml", "joblib", "numpy", "scikit-learn", "scipy")
"""Packages whose versions decide the last bits of a result."""


@frozen
class Compute:
    """`processes` of this machine, or, where it is named, the Dask cluster of a scheduler (`tcp://` or `tls://`)."""

    processes: int = 1
    cluster: str = ""

    @staticmethod
    def of(told: str) -> Compute:
        """From the option: a number of processes, or `dask://host:port`. Raises `Malformed`."""
        if told.isascii() and told.isdigit() and 1 <= int(told) <= MOST_PROCESSES:
            return Compute(int(told))
        if CLUSTER.fullmatch(told):
            return Compute(cluster=re.sub("^dask:", "tcp:", told))
        raise Malformed(
            f"--compute: expected a number of processes, 1 to {MOST_PROCESSES}, or the address of a Dask scheduler as "
            "dask://127.0.0.1:8786"
        )

    def each(self, work: Callable[[Given], Result], given: Sequence[Given]) -> Iterator[Result]:
        """The results of `work`, in order, each as soon as it and all before it are there. Functions and values must
        pickle, but for one process. Raises `Refused` where the cluster cannot be used."""
        if len(given) < 2 or self.is_here:
            yield from (_alone(work, item) for item in given)
            return
        place, workers = self._place()
        yield from _together(place, work, given, batch_size=max(1, ceil(len(given) / (PARTS * workers))))

    def stream(self, work: Callable[[Given], Result], given: Iterable[Given]) -> Iterator[Result]:
        """The same for long work whose pieces are read as they are needed: few of them are in memory at once."""
        if self.is_here:
            yield from (_alone(work, item) for item in given)
            return
        place, workers = self._place()
        yield from _together(place, work, given, batch_size=1, pre_dispatch=PARTS * workers)

    @property
    def is_here(self) -> bool:
        """True for this process alone."""
        return self.processes == 1 and not self.cluster

    def _place(self) -> tuple[dict[str, Any], int]:
        if not self.cluster:
            return {"backend": "loky", "n_jobs": self.processes}, self.processes
        client = _client(self.cluster)
        return {"backend": "dask", "client": client}, max(1, sum(client.ncores().values()))


HERE = Compute()
"""One process: this one."""


def _together(
    place: dict[str, Any], work: Callable[[Given], Result], given: Iterable[Given], **how: int
) -> Iterator[Result]:
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(**place):
        yield from Parallel(return_as="generator", **how)(delayed(_elsewhere)(work, item) for item in given)


def _alone(work: Callable[[Given], Result], given: Given) -> Result:
    with _libraries().limit(limits=1):
        return work(given)


def _elsewhere(work: Callable[[Given], Result], given: Given) -> Result:
    _one_thread()
    return work(given)


@cache
def _one_thread() -> None:
    """For as long as the process lives: a cluster's worker can have several threads that work for us."""
    _libraries().limit(limits=1)


@cache
def _libraries() -> Any:
    """The libraries of linear algebra in this process. More threads of theirs add in another order."""
    import numpy as np  # both before they are looked for
    import scipy.linalg
    from threadpoolctl import ThreadpoolController

    del np, scipy
    return ThreadpoolController()


@cache
def _client(address: str) -> Any:
    """The cluster's, once for a program. Raises `Refused`."""
    try:
        from distributed import Client
    except ImportError:
        raise Refused(f"--compute: a Dask cluster needs another part of this program: `{install('dask')}`") from None
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
        client.wait_for_workers(1, timeout=_PATIENCE)
        found = client.run(_versions)
    except (OSError, TimeoutError, ImportError) as error:
        raise Refused(
            f"--compute: no cluster that can do this work answers at {address}{because(error)}; start `dask scheduler` "
            "and `dask worker` where this version of AnonML is installed"
        ) from None
    own = _versions()
    for told in found.values():
        unlike = [f"{name} {told.get(name)}, here {mine}" for name, mine in own.items() if told.get(name) != mine]
        if unlike:
            raise Refused(
                f"--compute: a worker has {'; '.join(unlike)}. Results would differ in their last digits: install the "
                "same versions"
            )
    return client


def _versions() -> dict[str, str]:
    return {"Python": platform.python_version(), "bytes": sys.byteorder, **{name: version(name) for name in _ALIKE}}
