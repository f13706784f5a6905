"""The parts of an NVFlare job that its client and server load: training, and a server that keeps all it is sent."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from nvflare.apis.dxo import DXO, from_shareable
from nvflare.apis.executor import Executor
from nvflare.apis.impl.controller import Controller, Task
from nvflare.apis.shareable import Shareable

from peer.ledger.in_nvflare import LedgerFilter
from peer.ledger.node import LedgerNode

SECRET = "born in 1987"
ROUNDS = 3


class SiteLedger(LedgerFilter):
    """In a simulation all sites share one policy: each takes the home of its own name."""

    def node(self, fl_ctx: Any) -> LedgerNode:
        return LedgerNode(Path(self.home) / fl_ctx.get_identity_name(), self.terms, os.urandom, time.time)


class Training(Executor):
    """Like an ordinary client: exact weights, how many records it has and its loss. It raises in round 2."""

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: Any, abort_signal: Any) -> Shareable:
        if shareable.get_header("current_round") == 1:
            raise ValueError(SECRET)
        dxo = from_shareable(shareable)
        weights = {name: array + np.asarray(0.5, array.dtype) for name, array in dxo.data.items()}
        reply = DXO("WEIGHTS", weights, {"NUM_STEPS_CURRENT_ROUND": 1234}).to_shareable()
        reply.set_header("loss", 0.125)
        return reply


class Curious(Controller):
    """One round more than was declared, then a task that was not. Everything that comes is written down."""

    def __init__(self, seen: str) -> None:
        super().__init__()
        self.seen, self.told = seen, []

    def start_controller(self, fl_ctx: Any) -> None: ...

    def stop_controller(self, fl_ctx: Any) -> None: ...

    def control_flow(self, abort_signal: Any, fl_ctx: Any) -> None:
        for number in range(ROUNDS + 1):
            self._ask("train", number, fl_ctx, abort_signal)
        self._ask("validate", ROUNDS, fl_ctx, abort_signal)
        Path(self.seen).write_text(json.dumps(self.told), "utf-8")

    def _ask(self, name: str, number: int, fl_ctx: Any, abort_signal: Any) -> None:
        start = {"weight": np.full((40, 5), 7, "float32"), "bias": np.zeros(5)}
        data = DXO("WEIGHTS", start).to_shareable()
        data.set_header("current_round", number)
        task = Task(name, data, timeout=60, result_received_cb=self._keep)
        self.broadcast_and_wait(task, fl_ctx, min_responses=2, abort_signal=abort_signal)

    def _keep(self, client_task: Any, fl_ctx: Any) -> None:
        result = client_task.result
        headers = {key: value for key, value in result.get("__headers__", {}).items() if not key.startswith("__peer")}
        told = {
            "task": client_task.task.name, "node": client_task.client.name, "code": str(result.get_return_code()),
            "round": client_task.task.data.get_header("current_round"),
            "keys": sorted(map(str, result)), "headers": repr(headers),
        }
        if "DXO" in result:
            dxo = from_shareable(result)
            told |= {"kind": str(dxo.data_kind), "meta": dict(dxo.meta)}
            told["arrays"] = {name: [str(array.dtype), array.tolist()] for name, array in dxo.data.items()}
        self.told.append(told)

    def process_result_of_unknown_task(self, *given: Any) -> None: ...
