"""Homes with a federated job, and what training may offer: as declared, or not."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from peer.ledger.declaration import JobTerms, Offer, OfferedArray, declaration_of
from peer.ledger.job_store import FederatedJob, JobStore
from peer.ledger.node import LedgerNode
from peer.store.home import PeerHome
from peer.view import made_ready

TERMS: dict[str, Any] = {
    "title": "Hearts",
    "asked_by": "a hospital",
    "norm": 1,
    "rounds": 3,
    "rho": "0.02",
    "arrays": {"weight": {"shape": [2, 3]}, "bias": {"shape": [2], "dtype": "float64"}},
    "constants": {"num-examples": 1},
}


def terms(**changed: Any) -> JobTerms:
    return declaration_of(TERMS | changed)


def node(
    home: Path,
    of: JobTerms,
    random_bytes: Callable[[int], bytes] = os.urandom,
    now: float = 0.0,
    agreed: bool = True,
) -> LedgerNode:
    """A node of a job that its owner agreed to."""
    made_ready(PeerHome(home))
    if agreed:
        with opened(home) as store:
            store.ask(of)
            store.agree(of.job)
    return LedgerNode(home, of, random_bytes, lambda: now)


def opened(home: Path) -> closing[JobStore]:
    return closing(JobStore(PeerHome(home).store_path, os.urandom))


def known(home: Path) -> FederatedJob:
    with opened(home) as store:
        return store.jobs()[0]


def offer(weight: float = 0.5, bias: float = 0.25) -> Offer:
    return Offer({
        "weight": OfferedArray("float32", (2, 3), [weight] * 6),
        "bias": OfferedArray("float64", (2,), [bias] * 2),
    })
