"""The answers to a study's posts, counted: what this process has said lately, and what all processes noted before."""

from __future__ import annotations

from collections.abc import Awaitable

from attrs import define, field

from aggregator.rules.counters import Counters
from aggregator.rules.refusal import PacketRefused
from aggregator.store.answers import AnswerStore

_ENROLMENT, _PACKET = "enrolment", "packet"


@define
class Answers:
    """Of one study. A process adds its counts to the store in steps of 50, and the rest once collection has closed.

    Up to 49 of each word are lost with a process that ends before.
    """

    study: bytes
    store: AnswerStore
    enrolments: Counters = field(factory=Counters)
    packets: Counters = field(factory=Counters)
    _rest_kept: bool = False

    async def counted(self, answering: Awaitable[str]) -> str:
        """The word for an enrolment or a withdrawal, once it is counted."""
        try:
            word = await answering
        except PacketRefused as turned:
            word = turned.word
        self.enrolments.count(word)
        return word

    async def all(self) -> tuple[Counters, Counters]:
        """Those to enrolments and to packets: this process's, and what each noted."""
        kept = await self.store.of(self.study)
        both = ((_ENROLMENT, self.enrolments), (_PACKET, self.packets))
        enrolments, packets = (
            own.beside({word: number for (kind, word), number in kept.items() if kind == of}) for of, own in both
        )
        return enrolments, packets

    async def keep(self, closed: bool) -> None:
        """Note what is due."""
        rest = closed and not self._rest_kept
        both = ((_ENROLMENT, self.enrolments), (_PACKET, self.packets))
        due = {(kind, word): number for kind, own in both for word, number in own.due(rest).items()}
        if due:
            await self.store.add(self.study, due)
            for kind, own in both:
                own.noted({word: number for (of, word), number in due.items() if of == kind})
        self._rest_kept = closed
