"""Designs that are loaded late are told in the order, and by the names, that their module has."""

from __future__ import annotations

import pickle
from importlib import import_module

import pytest

from anon.protocols.installed import PROTOCOLS
from anon.protocols.late import LateDesigns
from anon.protocols.registry import ProtocolParts


@pytest.mark.parametrize("parts", PROTOCOLS.known, ids=lambda parts: parts.shared.name)
def test_a_protocol_names_every_design_of_its_module(parts: ProtocolParts) -> None:
    shared = parts.shared
    if isinstance(shared.designs, LateDesigns):
        module = import_module(shared.designs._place.partition(":")[0])
        assert list(shared.designs.items()) == list(module.DESIGNS.items())
    assert all(design.words["kind"] for design in shared.designs.values())


def test_designs_keep_the_order_of_protocols_and_go_to_another_process() -> None:
    told = [kind for parts in PROTOCOLS.known for kind in parts.shared.designs]
    assert list(PROTOCOLS.designs) == list(pickle.loads(pickle.dumps(PROTOCOLS)).designs) == told
    assert "no-such" not in PROTOCOLS.designs and "rule" in PROTOCOLS.designs
