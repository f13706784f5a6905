"""A study: what staff propose in `study.toml`, and the signed manifest that resolves everything it can ask.

`proposal` reads and checks a study file, and `schema` prints its keys. `manifest` is the signed form. `structuring`
makes values of plain data, and `texts` checks the characters of both.
"""

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
