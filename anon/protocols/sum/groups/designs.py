"""The design of the protocol `groups`."""

from __future__ import annotations

from typing import Final

from anon.protocols.late import LateFunction
from anon.protocols.sum.groups.sections import BOUNDS, DESIGN, WORDS, GroupAveraging
from anon.study.designs import Design

_FORM: Final = LateFunction("anon.protocols.sum.groups.layout:form")
DESIGNS: Final = {DESIGN: Design(GroupAveraging, _FORM, WORDS, BOUNDS)}
