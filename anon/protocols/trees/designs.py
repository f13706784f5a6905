"""The design of the protocol `trees`."""

from __future__ import annotations

from typing import Final

from anon.protocols.late import LateFunction
from anon.protocols.trees.sections import BOUNDS, DESIGN, WORDS, Trees
from anon.study.designs import Design

_FORM: Final = LateFunction("anon.protocols.trees.layout:form")
DESIGNS: Final = {DESIGN: Design(Trees, _FORM, WORDS, BOUNDS)}
