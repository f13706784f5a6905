"""The common part of all proofs against an aggregator."""

from __future__ import annotations

from attrs import field

from anon.errors import RejectedProof
from anon.study.manifest import Manifest
from anon.values import frozen


class ProvesNothing(RejectedProof):
    """A file that is no proof against an aggregator: damaged, forged, or about something else."""

    code = "proves-nothing"


@frozen
class AboutAnAggregator:
    """A proof names the manifest of a study, and with it the study and the key of its aggregator."""

    manifest: Manifest = field(repr=False)

    @property
    def study(self) -> bytes:
        """The study's id, 32 bytes."""
        return self.manifest.study_id

    @property
    def key(self) -> bytes:
        """The Ed25519 key of the aggregator that signed, 32 bytes."""
        return self.manifest.aggregator_key
