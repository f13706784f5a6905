"""The draft's own vectors, byte for byte, operation by operation; the bad ones fail where the vectors say."""

from __future__ import annotations

from typing import Any

import pytest

from anon.errors import RejectedProof
from anon.vdaf.field import FIELD128
from anon.vdaf.prio3 import Prio3, Sharing, VerifyState
from anon.vdaf.xof import derive_seed, expand
from tests.anon.vdaf.official import FOLDER, instance_of, load

NAMES = sorted(path.stem for path in FOLDER.glob("Prio3*.json"))


def octets(texts: list[str]) -> list[bytes]:
    return [bytes.fromhex(text) for text in texts]


class Run:
    """One report of a vector on its way."""

    def __init__(self, prio3: Prio3, case: dict[str, Any], report: dict[str, Any]) -> None:
        self.prio3, self.report = prio3, report
        self.key, self.context, self.nonce = (
            bytes.fromhex(text) for text in (case["verify_key"], case["ctx"], report["nonce"])
        )
        self.states: dict[int, VerifyState] = {}
        self.outputs: dict[int, list[int]] = {}

    def shard(self) -> None:
        measurement = self.report["measurement"]
        measurement = measurement if isinstance(measurement, list) else [measurement]
        made = self.prio3.shard(self.context, measurement, self.nonce, bytes.fromhex(self.report["rand"]))
        assert made == Sharing(bytes.fromhex(self.report["public_share"]), tuple(octets(self.report["input_shares"])))

    def verify_init(self, party: int) -> None:
        public, share = bytes.fromhex(self.report["public_share"]), bytes.fromhex(self.report["input_shares"][party])
        self.states[party], verifier = self.prio3.verify_init(self.key, self.context, party, self.nonce, public, share)
        assert verifier.hex() == self.report["verifier_shares"][0][party]

    def verifier_shares_to_message(self) -> None:
        message = self.prio3.verifier_shares_to_message(self.context, octets(self.report["verifier_shares"][0]))
        assert message.hex() == self.report["verifier_messages"][0]

    def verify_next(self, party: int) -> None:
        self.outputs[party] = self.prio3.verify_next(
            self.states[party], bytes.fromhex(self.report["verifier_messages"][0])
        )
        assert self.prio3.aggregate([self.outputs[party]]).hex() == self.report["out_shares"][party]


@pytest.mark.parametrize("name", NAMES)
def test_official_vectors(name: str) -> None:
    prio3, case = instance_of(name)
    runs = [Run(prio3, case, report) for report in case["reports"]]
    for step in case["operations"]:
        party = [step["aggregator_id"]] if "aggregator_id" in step else []
        if step["operation"] == "aggregate":
            total = prio3.aggregate([run.outputs[party[0]] for run in runs])
            assert total.hex() == case["agg_shares"][party[0]]
        elif step["operation"] == "unshard":
            result = case["agg_result"]
            assert prio3.unshard(octets(case["agg_shares"])) == (result if isinstance(result, list) else [result])
        elif step["success"]:
            getattr(runs[step["report_index"]], step["operation"])(*party)
        else:
            with pytest.raises(RejectedProof):
                getattr(runs[step["report_index"]], step["operation"])(*party)


def test_every_official_vector_is_there() -> None:
    assert len(NAMES) == 25 and sum("bad" in name for name in NAMES) == 8
    steps = [step for name in NAMES for step in load(name)["operations"]]
    assert sum(not step["success"] for step in steps) == 8


def test_the_official_vector_of_the_xof() -> None:
    case = load("XofTurboShake128")
    seed, separation, binder = (bytes.fromhex(case[key]) for key in ("seed", "dst", "binder"))
    assert derive_seed(seed, separation, binder).hex() == case["derived_seed"]
    vector = expand(FIELD128, seed, separation, binder, case["length"])
    assert FIELD128.encode(vector).hex() == case["expanded_vec_field128"]
