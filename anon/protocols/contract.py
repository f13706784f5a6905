"""The contract of a protocol's shared part, and the values that pass between a protocol and everything that knows none.

A protocol has three parts, and all three are used: the shared one (`SharedPart`, here), the peer's
(`peer.protocols.contract`) and the aggregator's (`aggregator.protocols.contract`). They are pure: they neither send,
store nor wait. Sortition, slots, the score cohort, tokens, ledger, journal and signed heads lie below them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, final, runtime_checkable

from attrs import field

from anon.ldp import NanoEpsilon
from anon.protocols.categories import Value
from anon.protocols.charge import Charge
from anon.protocols.models.published import PublishedModel
from anon.protocols.models.rows import PublishedRows
from anon.protocols.words import PacketKind
from anon.study.designs import Design
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import Proposal
from anon.study.slots import Slot
from anon.text.sentences import Sentence
from anon.values import frozen

if TYPE_CHECKING:
    from anon.sharing.arrangement import Arrangement

Place = tuple[str, int]
"""Kind and part of a document."""
MOST_BOARD: Final = 64 * 1024 * 1024
"""Bytes of all pages of a study whose members write, together. A phone has that to spare; over Tor, at some 200 kB/s,
it takes five minutes. A peer joins no study with more, and an aggregator publishes none."""

@final
@frozen
class Record:
    """A snapshot's values by feature name, and the label's. Raw: categories are derived from it, and exact
    vectors in a protocol whose promise is central.

    `rows`: the records of a study that has many of each member. Values and label are missing then."""

    values: Mapping[str, Value] = field(repr=False)
    label: Value = field(repr=False)
    rows: Sequence[Record] = field(default=(), repr=False)


@frozen
class DocumentArrived:
    """A document whose head was verified. `body` still is untrusted content."""

    kind: str
    part: int
    body: bytes

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the body."""
        return hashlib.sha256(self.body).digest()


@frozen
class Round:
    """One round of a study: while its window is open, packets of its surveys are accepted.

    `state`: the word under which a study in this round is stored and shown to programs; `name`: the round for people.
    `document`: what is published after it, if anything; of a round with a written survey its page
    (`anon.protocols.board`). `seat`: what the aggregator's own seat publishes after that. After the last round the
    transcripts follow. `session`: a member that misses a round of letters writes no more in rounds of its session.
    """

    window: Window
    state: str
    name: str
    surveys: tuple[int, ...]
    document: Place | None = None
    seat: Place | None = None
    session: int = 0


def documents_of(rounds: Iterable[Round]) -> list[Place]:
    """The documents of these rounds, in the order of publication."""
    return [place for study_round in rounds for place in (study_round.document, study_round.seat) if place is not None]


@frozen
class Layout:
    """Every survey that a study can ask, and the slots whose rows name them.

    `part`: what the protocol's own part of the manifest holds, in its one spelling; empty where it needs none.
    """

    surveys: tuple[Survey, ...]
    slots: tuple[Slot, ...]
    part: bytes = b""


Result = PublishedModel | PublishedRows
MODEL: Final[Place] = ("model", 0)
"""The place of a study's one model."""
ROWS: Final[Place] = ("rows", 0)
"""The place of a study's rows."""


class SharedPart(Protocol):
    """The shared part of a protocol. `designs`: each `design.kind` of a study file that is its own."""

    @property
    def name(self) -> str: ...

    @property
    def designs(self) -> Mapping[str, Design]: ...

    def share_sizes(self, study: Manifest) -> tuple[int, ...]:
        """Bytes of each recipient's share once it is sealed (`anon.wire.packets.Layout.sealed_shares`), the same in
        every packet; none where answers are perturbed."""

    def windows(self, proposal: Proposal, settled: int) -> tuple[Window, ...]:
        """The window of every round, in order, the first opening at `settled` (unix seconds). Raises `Malformed`."""

    def lay_out(
        self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]
    ) -> Layout:
        """Everything that can be asked, resolved before anyone is asked. Raises `Malformed`."""

    def check(self, study: Manifest) -> None:
        """Raises `Malformed` when the study cannot run. Its cost and its windows are checked for every protocol alike
        (`anon.protocols.registry.check_study`)."""

    def exposure(self, design: Layout) -> Charge:
        """The most that one unit can lose by the whole study, recomputed from what it really does."""

    def per_attribute(self, design: Layout) -> NanoEpsilon:
        """The paper's eq. 6: the loss between records that differ in a single attribute. Never the guarantee; a
        protocol without such a figure gives the whole amount."""

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        """Every round in order; at least one. Their windows do not overlap."""

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        """The documents that its rounds publish, in the order of publication, each with the bytes of its longest body.
        """

    def results(self, study: Manifest) -> Mapping[Place, int]:
        """The results that are published after the transcripts, in their order, each with the bytes of its longest
        body: models, models of groups, rows. Each is JSON of one spelling. The one model of a study is `MODEL`."""

    def summary(self, study: Manifest) -> Sentence:
        """One sentence, for consent, desk and report: how the study asks."""

    def title(self, study: Manifest, survey: Survey) -> str:
        """The question of a survey, in a few words."""

    def odds(self, study: Manifest) -> tuple[Sentence, ...]:
        """How often each kind of packet tells the truth: one line per kind, from the integer probabilities."""

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        """Every kind of packet that the study can ask for, the likeliest first."""

    def read_result(self, text_untrusted: str) -> Result:
        """A valid result from its JSON, of a form that is the protocol's own and names it under "protocol". Raises
        `Malformed`."""


@runtime_checkable
class SummedPart(SharedPart, Protocol):
    """The shared part of a protocol whose vectors are added up by tellers."""

    def arrangement(self, study: Manifest) -> Arrangement:
        """The study's tellers and sums. Raises `Malformed`."""


@runtime_checkable
class CentralPart(SharedPart, Protocol):
    """The shared part of a protocol whose epsilon is of what is published, and is less than its rho alone implies."""

    def promised(self, study: Manifest) -> NanoEpsilon:
        """The central epsilon of all that is published, at delta 1e-6: as the study file has it, or less."""


@runtime_checkable
class DeclaredPart(SharedPart, Protocol):
    """The shared part of a protocol with models that start from what staff declared."""

    def enough(self, study: Manifest) -> int | None:
        """From about how many members on answers show that the declaration is wrong as a whole: the one figure of
        consent, forecast and report. None where a model starts from answers alone."""


@runtime_checkable
class GivenPart(SharedPart, Protocol):
    """The shared part of a protocol that reads given documents."""

    def check_given(self, study: Manifest, given: Mapping[Place, bytes]) -> None:
        """Raises `Malformed` for a given document that the study cannot use: nothing is published then, nor sent."""
