"""The designs of the protocol `masks`."""

from __future__ import annotations

from typing import Final

from anon.protocols.late import LateFunction
from anon.protocols.sum.masks.sections import BOUNDS, SECTIONS, WORDS
from anon.study.designs import Design

_FORMS: Final = "anon.protocols.sum.masks.layout:"
DESIGNS: Final = {
    kind: Design(section, LateFunction(_FORMS + kind.removeprefix("masked-") + "_form"), WORDS[kind], BOUNDS[kind])
    for kind, section in SECTIONS.items()
}
