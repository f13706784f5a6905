"""The calls to one teller. Each may be repeated, and then is answered as before.

An implementation raises the typed error that the teller told: `Refused`, `Conflict`, `Malformed`, `RejectedProof`, and
`Disagreed` with its evidence. It raises `Unreachable` when no answer came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from aggregator.rules.faults import TellerAway, TellerRefuses
from anon.errors import AnonmlError, Damaged, NoRoom, Unreachable
from anon.sharing.arrangement import TellerEntry
from anon.sharing.statements import Disagreed
from anon.wire.packets import Occasion

T = TypeVar("T")


class TellerLink(Protocol):
    """One teller. Statements and sealed parts are passed on as they are."""

    async def entry(self, name: str, address: str) -> TellerEntry:
        """A fresh entry for one study's manifest."""

    async def countersign(self, manifest: bytes) -> bytes:
        """Its word that it serves this study."""

    async def key_shares(self, study: bytes) -> Mapping[int, bytes]:
        """By fellow, its part of the verification key, sealed to that one."""

    async def key_share(self, study: bytes, sender: int, sealed: bytes) -> None:
        """Pass a fellow's part on."""

    async def roll(
        self, study: bytes, heads: bytes, roster: bytes, seed: bytes, credentials: bytes, beside: Sequence[bytes]
    ) -> None:
        """Pass on the documents that closed the enrolment, and their buckets where there are several."""

    async def admit(self, occasion: Occasion, items: Sequence[bytes]) -> tuple[bytes, Mapping[str, int]]:
        """Show it a batch of packets: its verifier shares, and how many it refused, by reason."""

    async def settle(self, occasion: Occasion, statements: Sequence[bytes]) -> frozenset[bytes]:
        """Pass on the fellows' verifier shares of the same batch: the tags in it that it accepted."""

    async def accepted(self, occasion: Occasion) -> frozenset[bytes]:
        """Every tag that it accepted so far."""

    async def sign_list(self, occasion: Occasion, body: bytes) -> bytes:
        """Its signature of the one list."""

    async def noise(self, occasion: Occasion, signatures: Sequence[bytes]) -> bytes:
        """Its noisy share, given each fellow's signature of the list."""

    async def finish(self, study: bytes) -> None:
        """The study is over; it erases its secrets."""


async def together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The answers of all tellers, in order. Raises one error where there are several: a disagreement before any other.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as several:
        found = [error for error in several.exceptions if isinstance(error, Disagreed)]
        raise (found or several.exceptions)[0] from None
    return [task.result() for task in tasks]


async def named(name: str, call: Coroutine[Any, Any, T]) -> T:
    """The answer of the teller of this name. Raises `TellerAway`, `TellerRefuses` or `Disagreed`."""
    try:
        return await call
    except Disagreed:
        raise
    except (Damaged, NoRoom) as trouble:
        raise TellerAway(name, str(trouble)) from None
    except Unreachable as silence:
        raise TellerAway(name, silence=str(silence)) from None
    except AnonmlError as error:
        raise TellerRefuses(name, str(error)) from None
