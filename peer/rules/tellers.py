"""The tellers that a study names, as its owner sees them before a yes, and what of them can be checked.

An arrangement refuses one name, key or place twice (`anon.sharing.arrangement`). Beyond that nothing here can tell who
a teller is: a name is chosen by its operator, and an aggregator can run all of them. The words of a teller's lasting
key can be compared by people. Once the owner said yes they are remembered, and a known name with other words is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anon.errors import Malformed, RejectedProof
from anon.protocols.tellers import tellers_of
from anon.study.manifest import Manifest
from anon.text.foreign import Quoted, folded
from anon.text.sentences import Sentence, Term, joined, say
from anon.transparency.fingerprint import teller_words
from anon.values import frozen
from peer.rules.distrust import Distrust

KnownTellers = Mapping[str, Sequence[bytes]]
"""Name, as `folded` has it -> the keys under which the owner's studies knew it."""
LONGEST_SHOWN = 200


@frozen
class NamedTeller:
    """A teller as consent shows it. `words` are of its lasting key. `known`: the owner's studies knew the name by that
    key; `earlier`: the words that they knew it by, where none is."""

    name: str
    words: str
    address: str
    known: bool = False
    earlier: tuple[str, ...] = ()


def keys_named(manifest: Manifest) -> tuple[tuple[str, bytes], ...]:
    """Name and key of each teller, for a yes to remember."""
    arrangement = tellers_of(manifest)
    return tuple((folded(teller.name), teller.key) for teller in arrangement.tellers) if arrangement is not None else ()


def check_tellers(manifest: Manifest, body_untrusted: bytes | None) -> None:
    """Step 2. Every teller that the manifest names said that it serves this study. `body_untrusted`: the document of
    their countersignatures, None where none is published. Raises `Distrust`; nothing was sent."""
    arrangement = tellers_of(manifest)
    if arrangement is None:
        return
    from anon.sharing.statements import parse_countersignatures  # with tellers alone: it loads all about shares

    try:
        parse_countersignatures(body_untrusted or b"", manifest.study_id, arrangement)
    except (Malformed, RejectedProof):
        raise Distrust(
            say(
                "not everybody who is to add up this study's answers has signed for it; nothing about you was sent: do "
                "not take part, and tell staff"
            )
        ) from None


def named_tellers(manifest: Manifest, known: KnownTellers) -> tuple[NamedTeller, ...]:
    """The study's tellers in their order; none where answers are perturbed."""
    arrangement = tellers_of(manifest)
    if arrangement is None:
        return ()
    found = []
    for teller in arrangement.tellers:
        keys = known.get(folded(teller.name), ())
        earlier = () if teller.key in keys else tuple(map(teller_words, keys))
        found.append(NamedTeller(teller.name, teller_words(teller.key), teller.address, teller.key in keys, earlier))
    return tuple(found)


def other_words(teller: NamedTeller) -> Sentence:
    """The warning about a known name with a new key."""
    return say(
        "The teller {name} had other words in a study that you joined: {earlier}. Somebody else may be using its name. "
        "Ask it, in a place of its own, which words are right, and say no until you know.",
        name=Quoted(teller.name, LONGEST_SHOWN),
        earlier=joined(map(Term, teller.earlier), ", "),
    )
