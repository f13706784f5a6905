"""The design of the protocol `oblivious`."""

from __future__ import annotations

from typing import Final

from anon.protocols.late import LateFunction
from anon.protocols.sum.oblivious.sections import BOUNDS, DESIGN, WORDS, ObliviousAveraging
from anon.study.designs import Design

_FORM: Final = LateFunction("anon.protocols.sum.oblivious.layout:form")
DESIGNS: Final = {DESIGN: Design(ObliviousAveraging, _FORM, WORDS, BOUNDS)}
