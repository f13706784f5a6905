"""The manifests of the studies that were joined: each is parsed and vetted once while the store is open.

A study may have been joined by an earlier program that accepted what this one refuses. Then its fault is kept instead:
that study stops with it as its reason (`peer.run.runner`), and no other is touched.
"""

from __future__ import annotations

from typing import ClassVar

from anon.errors import AnonmlError, Malformed, Refused
from anon.protocols.registry import Protocols
from anon.study.manifest import Manifest, study_id_of
from anon.text.sentences import Ours, attributed, say


class ManifestRefused(Refused):
    """The manifest of a joined study is none that this program takes part in. Nothing of the study is sent."""

    code: ClassVar[str] = "manifest-refused"


class Manifests:
    """One store's, by study id. Holds at most one for each study that was joined. Without `protocols` they are the
    peer's own, loaded when a manifest is read."""

    def __init__(self, protocols: Protocols | None = None) -> None:
        self._protocols = protocols
        self._kept: dict[bytes, Manifest | ManifestRefused] = {}

    def hold(self, study: bytes) -> bool:
        """True if it was asked for before, so that it costs nothing now."""
        return study in self._kept

    def of(self, study: bytes, body: bytes) -> Manifest | ManifestRefused:
        """The manifest of a study from its stored bytes, or why there is none. Never raises."""
        if study not in self._kept:
            self._kept[study] = _read(study, body, self._protocols)
        return self._kept[study]

    def forget(self) -> None:
        """Parse anew what is asked for from now on."""
        self._kept.clear()


def _read(study: bytes, body: bytes, protocols: Protocols | None) -> Manifest | ManifestRefused:
    # late: a look at where studies stand vets none
    from peer.protocols.installed import PROTOCOLS
    from peer.rules.checks import vetted_manifest

    try:
        _demand_own(study, body)
        return vetted_manifest(body, protocols or PROTOCOLS)
    except AnonmlError as fault:
        why: Ours = attributed(str(fault))
    except Exception:  # a study that this program cannot even check is no reason to stop another
        why = say("it cannot be checked here")
    return ManifestRefused(
        say(
            "this program does not take part in this study, though it was joined: {why}. Nothing more is sent; ask "
            "staff to publish the study again",
            why=why,
        )
    )


def _demand_own(study: bytes, body: bytes) -> None:
    if study_id_of(body) != study:
        raise Malformed(say("what is stored of it is damaged; restore a backup"))
