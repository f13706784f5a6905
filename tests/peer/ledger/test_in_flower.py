"""The ledger in Flower itself: a real simulation of two nodes, and whatever an app may reply.

It runs in an environment of its own, which has the extra `flower` (docs/ledger.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.supercore.task_identity import TaskIdentity

from peer.ledger import flower
from peer.ledger.job_store import JobState
from peer.ledger.node import REFUSED
from tests.support.federated import known, node, opened, terms

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[3]
SECRET = "born in 1987"
NUMBER = 1987.0625


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flower")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    program = [sys.executable, str(ROOT / "tests/support/flower_study.py"), str(folder / "study")]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "study"


def test_a_simulations_server_sees_declared_messages_with_noise_and_nothing_else(study: Path) -> None:
    seen = json.loads((study / "seen.json").read_text("utf-8"))
    assert [told["round"] for told in seen] == [1, 1, 2, 2, 3, 3, 4, 4]
    answers = [told for told in seen if "error" not in told]
    assert [told["round"] for told in answers] == [1, 1, 2, 2, 3, 3], "training raised in round 2, and nobody sees it"
    assert {told["error"] for told in seen if "error" in told} == {REFUSED}
    assert SECRET not in (study / "seen.json").read_text("utf-8")
    for told in answers:
        assert told["records"] == ["arrays", "metrics"] and told["metrics"] == {"metrics": {"num-examples": 1}}
        weight, bias = told["arrays"]["weight"], told["arrays"]["bias"]
        assert (weight[0], bias[0]) == ("float32", "float64")
        noise = np.array([*np.ravel(weight[1]), *bias[1]])
        # The exact update is 0.5 everywhere, shrunk to a length of 1. The noise of rho 0.02 has a deviation of 10.
        assert 7 < np.std(noise[-205:] - np.median(noise[:200])) < 13 or told["round"] > 1
    assert len({json.dumps(told["arrays"]) for told in answers}) == len(answers)


def test_each_nodes_ledger_is_charged_for_its_rounds_alone(study: Path) -> None:
    for home in ("home-0", "home-1"):
        job = known(study / home)
        assert job.entry is not None and job.answered == 3 and job.state is JobState.AGREED
        assert (job.entry.spent, job.entry.reserved) == (job.terms.total.amount, 0)


@pytest.fixture(autouse=True)
def identity() -> None:
    """As Flower sets it in each of its processes."""
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1


def _question(kind: str = "train", number: object = 1, arrays: bool = False) -> Message:
    content = RecordDict({"config": ConfigRecord({"server-round": number})})
    if arrays:
        content["arrays"] = ArrayRecord({"weight": Array(np.full((2, 3), 7, "float32")), "bias": Array(np.zeros(2))})
    return Message(content, dst_node_id=7, message_type=kind)


def _app(reply: Any) -> ClientApp:
    app = ClientApp()

    @app.train()
    def train(message: Message, context: object) -> Message:
        found = reply(message)
        if isinstance(found, BaseException):
            raise found
        return found

    return app


def _declared_reply(message: Message, **changed: Any) -> Message:
    arrays = ArrayRecord({"weight": Array(np.full((2, 3), NUMBER, "float32")), "bias": Array(np.full(2, NUMBER))})
    records = {"arrays": arrays, "metrics": MetricRecord({"num-examples": 1987})} | changed
    return Message(RecordDict({name: found for name, found in records.items() if found is not None}), reply_to=message)


def _asked(home: Path, of: Any, reply: Any, question: Message) -> Message:
    return flower(_app(reply), home, of)(question, SimpleNamespace())


@pytest.mark.parametrize("kind", ["evaluate", "query", "train.other", "evaluate.other"])
def test_what_is_no_training_is_refused_before_the_app_sees_it(tmp_path: Path, kind: str) -> None:
    node(tmp_path, of := terms())
    got = _asked(tmp_path, of, lambda message: pytest.fail("the app was called"), _question(kind))
    assert got.has_error() and got.error.reason == REFUSED and known(tmp_path).answered == 0


def test_a_reply_has_nothing_of_what_training_wrote_into_its_question(tmp_path: Path) -> None:
    node(tmp_path, of := terms())

    def writing(message: Message) -> Message:
        message.metadata.__dict__["_group_id"] = SECRET
        message.metadata.__dict__["_reply_to_message_id"] = SECRET
        message.metadata.__dict__["_message_id"] = SECRET
        return _declared_reply(message)

    got = _asked(tmp_path, of, writing, _question())
    assert got.has_content() and SECRET not in repr(vars(got.metadata)) and SECRET not in repr(got.content)


def test_a_relative_reply_stands_on_what_the_server_sent(tmp_path: Path) -> None:
    node(tmp_path, of := terms(relative=True))
    got = _asked(tmp_path, of, _declared_reply, _question())
    assert got.has_error(), "the server sent no arrays"
    got = _asked(tmp_path, of, _declared_reply, _question(arrays=True))
    assert got.content["arrays"]["weight"].numpy().shape == (2, 3)


@pytest.mark.parametrize("number", [1, 2, 3, -1, 10**12, "x", 1.5])
def test_a_round_of_any_name_counts_once(tmp_path: Path, number: object) -> None:
    node(tmp_path, of := terms())
    first = _asked(tmp_path, of, _declared_reply, _question(number=number))
    again = _asked(tmp_path, of, _declared_reply, _question(number=number))
    assert first.content == again.content and known(tmp_path).answered == 1


def _strange(random: Random, message: Message) -> Any:
    """A reply of any form; of one in three nothing is strange."""
    array = Array(np.full((2, 3), NUMBER, "float32"))
    arrays = {"weight": array, "bias": Array(np.full(2, random.choice([NUMBER, np.nan, np.inf, 1e308])))}
    wrong = [
        Array(np.array(NUMBER)), Array(np.full((3, 2), NUMBER, "float32")), Array(np.full((2, 3), NUMBER)),
        Array(np.full((2, 3), 7)), Array("float32", (2, 3), "torch.Tensor", SECRET.encode()),
        Array("float32", (2, 3), "numpy.ndarray", SECRET.encode()), Array(np.full((2, 3), NUMBER, ">f4")),
        Array("float32", (2, 3), "numpy.ndarray", Array(np.full(9, NUMBER)).data), Array(np.array([SECRET])),
    ]
    forms: list[Any] = [
        lambda: _declared_reply(message, arrays=ArrayRecord(arrays)),
        lambda: _declared_reply(message, arrays=ArrayRecord(arrays), metrics=None),
        lambda: ValueError(SECRET), lambda: SystemExit(SECRET), lambda: None, lambda: SECRET,
        lambda: Message(Error(0, SECRET), reply_to=message),
        lambda: _declared_reply(message, arrays=ArrayRecord(arrays | {"weight": random.choice(wrong)})),
        lambda: _declared_reply(message, arrays=ArrayRecord(arrays | {SECRET: array})),
        lambda: _declared_reply(message, arrays=ArrayRecord({"weight": array})),
        lambda: _declared_reply(message, arrays=None),
        lambda: _declared_reply(message, metrics=MetricRecord({"loss": NUMBER})),
        lambda: _declared_reply(message, metrics=MetricRecord({"num-examples": [1, 9, 8, 7]})),
        lambda: _declared_reply(message, more=MetricRecord({"num-examples": NUMBER})),
        lambda: _declared_reply(message, more=MetricRecord()),
        lambda: _declared_reply(message, more=ArrayRecord()),
        lambda: _declared_reply(message, config=ConfigRecord({"said": SECRET})),
        lambda: _declared_reply(message, config=ConfigRecord()),
    ]
    return random.choice([*forms, *forms[:2] * 4])()


def test_of_2000_replies_nothing_unperturbed_leaves(tmp_path: Path) -> None:
    """Each answer has the declared form, is charged, and holds no value that training had."""
    random, answers, refusals = Random("replies"), 0, 0
    raw = [np.float32(NUMBER).tobytes(), np.float64(NUMBER).tobytes(), SECRET.encode()]
    for place in range(10):
        home = tmp_path / str(place)
        node(home, of := terms(rounds=200, rho="0.0005"))
        for number in range(200):
            got = _asked(home, of, lambda message: _strange(random, message), _question(number=number))
            told = repr(vars(got.metadata)).encode()
            if got.has_error():
                refusals += 1
                assert (got.error.code, got.error.reason) == (6, REFUSED)
                with opened(home) as store:
                    store.agree(of.job)
            else:
                answers += 1
                content = got.content
                assert sorted(content) == ["arrays", "metrics"] and list(content["arrays"]) == ["weight", "bias"]
                assert dict(content["metrics"]) == {"num-examples": 1}
                assert content["arrays"]["weight"].numpy().dtype == "float32"
                assert content["arrays"]["bias"].numpy().shape == (2,)
                told += b"".join(array.data for array in content["arrays"].values())
                assert np.isfinite(content["arrays"]["weight"].numpy()).all()
            assert not any(secret in told for secret in raw)
        job = known(home)
        assert job.entry is not None and job.entry.spent == job.answered * of.rho
    assert answers + refusals == 2_000 and min(answers, refusals) > 400
