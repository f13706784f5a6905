"""The directions that a study file declares, in the words that staff read before they publish it."""

from __future__ import annotations

from anon.protocols.names import expectation
from anon.study.manifest import Manifest

PROMISE = "Members read this before they say yes. Write it down before anybody answers, and never from the data."


def expected_of(manifest: Manifest) -> tuple[str, ...]:
    """A sentence for each feature with `expects`, and one about all of them; empty where nothing is declared."""
    told = [said for feature in manifest.features if (said := expectation(feature, manifest.label.name))]
    return (*told, PROMISE) if told else ()
