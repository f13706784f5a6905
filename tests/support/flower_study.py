"""A Flower study of two nodes behind their ledgers: `python flower_study.py FOLDER`, in the environment of Flower.

Each node has a home below FOLDER, with its owner's yes. Training raises in round 2, and tells a secret in its error.
The server asks for one round more than was declared. Everything that it was sent is in FOLDER/seen.json.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from peer.ledger import declaration_of, flower
from peer.ledger.job_store import JobStore

NODES, ROUNDS, SECRET = 2, 3, "born in 1987"
TERMS = declaration_of({
    "title": "Hearts", "asked_by": "a hospital", "norm": 1, "rounds": ROUNDS, "rho": "0.02", "relative": True,
    "arrays": {"weight": {"shape": [40, 5]}, "bias": {"shape": [5], "dtype": "float64"}},
    "constants": {"num-examples": 1},
})
START = {"weight": np.full((40, 5), 7, "float32"), "bias": np.zeros(5)}


def homes(folder: Path) -> list[Path]:
    return [folder / f"home-{place}" for place in range(NODES)]


def agree(folder: Path) -> None:
    for home in homes(folder):
        home.mkdir(parents=True)
        with closing(JobStore(home / "peer.sqlite", os.urandom)) as store:
            store.ask(TERMS)
            store.agree(TERMS.job)


def record(arrays: dict[str, np.ndarray]) -> ArrayRecord:
    from flwr.app import Array

    return ArrayRecord({name: Array(array) for name, array in arrays.items()})


app = ClientApp()


@app.train()
def train(message: Message, context: object) -> Message:
    """Like an ordinary client: exact weights, its loss and how many records it has."""
    if message.content["config"]["server-round"] == 2:
        raise ValueError(SECRET)
    arrays = {name: array.numpy() + 0.5 for name, array in message.content["arrays"].items()}
    metrics = MetricRecord({"num-examples": 1234})
    return Message(RecordDict({"arrays": record(arrays), "metrics": metrics}), reply_to=message)


def node_app(folder: Path) -> ClientApp:
    """In a simulation all nodes share one app: each takes the ledger of its own home."""
    behind = [flower(app, home, TERMS) for home in homes(folder)]

    class Nodes(ClientApp):
        def __call__(self, message: Message, context: object) -> Message:
            return behind[context.node_config["partition-id"]](message, context)

    return Nodes()


class Curious(FedAvg):
    """A strategy that keeps everything that it is sent."""

    seen: list[dict[str, object]]

    def aggregate_train(self, server_round, replies):
        replies = list(replies)
        for reply in replies:
            told: dict[str, object] = {"round": server_round, "node": reply.metadata.src_node_id}
            if reply.has_error():
                told["error"] = reply.error.reason
            else:
                content = reply.content
                told["records"] = sorted(content)
                told["metrics"] = {name: dict(values) for name, values in content.metric_records.items()}
                arrays = {name: array.numpy() for name, array in content["arrays"].items()}
                told["arrays"] = {name: [str(array.dtype), array.tolist()] for name, array in arrays.items()}
            self.seen.append(told)
        return super().aggregate_train(server_round, replies)


def main(folder: Path) -> None:
    agree(folder)
    server = ServerApp()
    strategy = Curious(fraction_evaluate=0.0, min_train_nodes=NODES, min_available_nodes=NODES)
    strategy.seen = []

    @server.main()
    def serve(grid: object, context: object) -> None:
        strategy.start(grid, record(START), num_rounds=ROUNDS + 1)

    run_simulation(server, node_app(folder), NODES)
    (folder / "seen.json").write_text(json.dumps(strategy.seen), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
