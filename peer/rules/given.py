"""The public documents that staff give with a study: in the words of consent, and as its signed heads have them, all at
once, and those it names.
"""

from __future__ import annotations

from collections.abc import Sequence

from anon.protocols.kinds import Stage, is_given, rows_of
from anon.study.manifest import Manifest
from anon.text.foreign import Quoted
from anon.text.sentences import Sentence, say
from anon.transparency.documents import SignedHead
from peer.rules.distrust import Distrust


def about_given(manifest: Manifest) -> tuple[Sentence, ...]:
    """The sentences of consent about them."""
    return tuple(
        say(
            "Everybody reads the same public document, {name}: {description}",
            name=Quoted(document.name),
            description=Quoted(document.description),
        )
        for document in manifest.given
    )


def check_given(manifest: Manifest, chain: Sequence[SignedHead]) -> None:
    """Every given document follows the manifest at once, with the digest that it names. Raises `Distrust`: one that is
    held back could wait for the roster."""
    first = [(row.kind, part) for row in rows_of(manifest) if row.stage is Stage.FIRST for part in row.parts(manifest)]
    there = [(signed.head.kind, signed.head.part) for signed in chain[: len(first)]]
    if manifest.given and there != first:
        raise Distrust(
            say(
                "the aggregator holds back a public document that the study names; nothing more is sent: tell staff "
                "and the other members",
            )
        )
    if not all(is_given(manifest, signed.head) for signed in chain):
        raise Distrust(
            say(
                "the aggregator signed another public document than the study names; nothing more is sent: tell staff "
                "and the other members",
            )
        )
