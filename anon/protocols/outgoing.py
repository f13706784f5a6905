"""The values that a protocol may wish to send, and the forms in which they leave. `peer.release` alone turns one into
the other.

    SurveyAnswer   a category      --a mechanism perturbs it--> PerturbedReport
    Contributing   an exact vector --cut--> CutVector, open shares --each of them sealed--> SealedShares
    Writing        a text, letters --each letter sealed to its seat--> WrittenReport

A vector is cut away from every key (`peer.data.making`), and only its shares come back. Raw values and open shares show
nothing in their `repr`. A sealed value cannot be built from bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import final

from attrs import field

from anon.crypto.sealing_sizes import OVERHEAD
from anon.ldp import RawCategory
from anon.values import frozen

Seal = Callable[[bytes], bytes]
"""Seals one share to one recipient, who alone can open it."""
FEWEST_RECIPIENTS = 2
_MINT = object()


def _entries(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(values)


def _whole(_: object, attribute: object, values: Sequence[int]) -> None:
    if not values or any(type(value) is not int for value in values):
        raise ValueError("a raw vector has at least one entry, and whole numbers alone")


@final
@frozen
class RawVector:
    """One peer's exact contribution to a sum. Never leaves the machine as it is; its repr does not show the values.

    Raises `ValueError` for an empty vector or an entry that is no whole number.
    """

    values: tuple[int, ...] = field(repr=False, converter=_entries, validator=_whole)


@frozen
class SurveyAnswer:
    """A peer's wish to answer a survey with a perturbed category."""

    slot: int
    survey: int
    category: RawCategory


@frozen
class Contributing:
    """A peer's wish to add an exact vector to a sum. Only a study whose charge is not local may have it: the vector is
    protected by those who hold its shares, and by the noise of the sum."""

    slot: int
    survey: int
    vector: RawVector


@final
@frozen
class OpenShares:
    """The shares of a vector before they are sealed, one for each recipient, and the part that all may see. They must
    not leave so."""

    public: bytes = field(repr=False)
    shares: tuple[bytes, ...] = field(repr=False)


@frozen
class CutVector:
    """A peer's wish to add a vector, of which no more than the open shares are at hand. `read`: as of `Writing`."""

    slot: int
    survey: int
    shares: OpenShares
    read: bool = True


@frozen
class Writing:
    """A peer's wish to write: the open text and the letters as they came, and the seats that they are for. `read`: it
    stands on the owner's record, and is charged."""

    slot: int
    survey: int
    open: OpenShares
    read: bool
    seats: tuple[tuple[bytes, bytes | None], ...] = ()
    """Tag and sealing key of each; None for one to which nothing can be sealed."""


Answer = SurveyAnswer | Contributing
"""A protocol's answer to a survey."""
Outgoing = SurveyAnswer | CutVector | Writing
"""A wish to send: only `peer.release` turns it into something that can leave."""


@final
@frozen(init=False)
class SealedShares:
    """The shares of a vector, each sealed to another recipient, and the part that all may see.

    Only `sealed` makes them. Beside `anon.ldp.PerturbedReport` this is the only kind of value that enters a packet:
    `public` as its report, `shares` as its shares.
    """

    public: bytes = field(repr=False)
    shares: tuple[bytes, ...] = field(repr=False)

    def __init__(self, public: bytes, shares: tuple[bytes, ...], mint: object) -> None:
        if mint is not _MINT:
            raise TypeError("only `sealed` makes sealed shares, from a share and a seal for each recipient")
        self.__attrs_init__(public, shares)


def sealed(cut: OpenShares, seals: Sequence[Seal]) -> SealedShares:
    """The public part, then every share sealed to its recipient, in their order.

    Raises `ValueError` for fewer than two recipients, another number of shares, or a seal that adds no byte to a share.
    """
    if len(seals) < FEWEST_RECIPIENTS or len(cut.shares) != len(seals):
        raise ValueError(f"expected a share for each of at least {FEWEST_RECIPIENTS} recipients")
    closed = tuple(seal(share) for share, seal in zip(cut.shares, seals, strict=True))
    if any(len(hidden) <= len(share) for share, hidden in zip(cut.shares, closed, strict=True)):
        raise ValueError("a share leaves sealed or not at all")
    return SealedShares(cut.public, closed, _MINT)


@final
@frozen(init=False)
class WrittenReport:
    """The report of a written survey: an open text, and letters, each sealed to another seat. Only `written` makes it.
    """

    report: bytes = field(repr=False)

    def __init__(self, report: bytes, mint: object) -> None:
        if mint is not _MINT:
            raise TypeError("only `written` makes a report, from a text and a seal for each letter")
        self.__attrs_init__(report)


def written(made: OpenShares, seals: Sequence[Seal | None], seats: int, letter: int) -> WrittenReport:
    """The text, then every letter sealed to its seat. Empty seats up to `seats`, and those without a seal, have zeros
    in place of a letter: everybody sees from the board who has a seat.

    Raises `ValueError` for more letters than seals, a letter of another length, or a seal that adds no byte.
    """
    from anon.wire.letters import written_report  # late: studies without letters load nothing of them

    if len(seals) > seats or len(made.shares) < len(seals) or any(len(body) != letter for body in made.shares):
        raise ValueError(f"expected letters of {letter} bytes, and one for each seat")
    empty = bytes(letter + OVERHEAD)
    closed = [empty if seal is None else seal(body) for seal, body in zip(seals, made.shares, strict=False)]
    if any(len(hidden) != letter + OVERHEAD for hidden in closed):
        raise ValueError("a letter leaves sealed or not at all")
    return WrittenReport(written_report(made.public, closed + [empty] * (seats - len(closed))), _MINT)
