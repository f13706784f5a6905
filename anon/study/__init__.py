"""A study: what staff propose in `study.toml`, and the signed manifest that resolves everything it can ask."""

from anon.study.features import Cover, Feature, Label, Table
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import Proposal
from anon.study.slots import Slot

__all__ = [
    "Cover",
    "Feature",
    "Label",
    "Manifest",
    "Proposal",
    "Slot",
    "Survey",
    "Table",
    "Window",
]
