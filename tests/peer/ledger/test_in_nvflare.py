"""The ledger in NVFlare itself: a real job of two clients in its simulator.

It runs in an environment of its own, which has the extra `nvflare` (docs/ledger.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from nvflare.apis.dxo import DXO
from nvflare.apis.filter import FilterChainType, FilterContextKey, FilterSource
from nvflare.apis.shareable import Shareable, make_reply

from anon.errors import Refused
from peer.ledger import in_nvflare
from peer.ledger.in_nvflare import LedgerFilter
from peer.ledger.job_store import JobState
from tests.support.federated import TERMS, known, node, terms
from tests.support.nvflare_study import SECRET

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[3]
STUDY = TERMS | {
    "relative": True,
    "arrays": {"weight": {"shape": [40, 5]}, "bias": {"shape": [5], "dtype": "float64"}},
    "constants": {"NUM_STEPS_CURRENT_ROUND": 1},
}
SITES = ("site-1", "site-2")


def _job(folder: Path) -> Path:
    """A job whose clients train behind their ledgers, and the local policy of all sites."""
    ledger = {"path": "tests.support.nvflare_study.SiteLedger", "args": {"home": str(folder), "declared": STUDY}}
    filters = [{"tasks": ["train"], "filters": [ledger]}]
    parts = {
        "server": {"workflows": [{
            "id": "ask", "path": "tests.support.nvflare_study.Curious", "args": {"seen": str(folder / "seen.json")},
        }]},
        "client": {
            "executors": [{"tasks": ["*"], "executor": {"path": "tests.support.nvflare_study.Training"}}],
            "task_data_filters": filters, "task_result_filters": filters,
        },
    }
    config = folder / "job" / "app" / "config"
    config.mkdir(parents=True)
    for side, found in parts.items():
        (config / f"config_fed_{side}.json").write_text(json.dumps({"format_version": 2, "components": []} | found))
    meta = {"name": "hearts", "resource_spec": {}, "min_clients": 2, "deploy_map": {"app": ["@ALL"]}}
    (folder / "job" / "meta.json").write_text(json.dumps(meta))
    local = folder / "workspace" / "local"
    local.mkdir(parents=True)
    policy = {"class_allow_list": ["nvflare.", "tests.support."], "allow_log_streaming": False}
    (local / "resources.json").write_text(json.dumps(policy))
    return folder / "job"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvflare")
    for site in SITES:
        node(folder / site, terms(**STUDY))
    program = [str(Path(sys.executable).with_name("nvflare")), "simulator", str(_job(folder))]
    program += ["-w", str(folder / "workspace"), "-n", "2", "-t", "2"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert (folder / "seen.json").exists(), (done.stdout + done.stderr)[-3000:]
    return folder


def test_a_jobs_server_sees_declared_messages_with_noise_and_nothing_else(study: Path) -> None:
    seen = json.loads((study / "seen.json").read_text("utf-8"))
    trained = [told for told in seen if told["task"] == "train"]
    assert [told["round"] for told in trained] == [0, 0, 1, 1, 2, 2, 3, 3]
    answers = [told for told in trained if told["code"] == "OK"]
    assert [told["round"] for told in answers] == [0, 0, 1, 1, 2, 2], "training raised in round 1, and nobody sees it"
    assert {told["code"] for told in seen if "arrays" not in told} <= {"TASK_DATA_FILTER_ERROR", "TASK_UNKNOWN"}
    assert not [told for told in seen if told["task"] != "train" and "arrays" in told]
    for told in answers:
        assert told["keys"] == ["DXO", "__headers__"] and told["kind"] == "WEIGHTS"
        assert told["meta"] == {"NUM_STEPS_CURRENT_ROUND": 1} and "loss" not in told["headers"]
        weight = np.ravel(told["arrays"]["weight"][1])
        assert told["arrays"]["weight"][0] == "float32" and 7 < np.std(weight) < 13 and 4 < np.mean(weight) < 10
    assert SECRET not in (study / "seen.json").read_text("utf-8")
    assert len({json.dumps(told["arrays"]) for told in answers}) == len(answers)


def test_each_clients_ledger_is_charged_for_its_rounds_alone(study: Path) -> None:
    for site in SITES:
        job = known(study / site)
        assert job.entry is not None and job.answered == 3 and job.state is JobState.AGREED
        assert (job.entry.spent, job.entry.reserved) == (job.terms.total.amount, 0)


class Context:
    """A client's context of one task: its properties, and a runner with one executor."""

    def __init__(self, execute: Any = None, task: str = "train") -> None:
        self.executor = SimpleNamespace(execute=execute)
        runner = SimpleNamespace(find_executor=lambda name: self.executor)
        self.found = {"__task_name__": task, "__task_id__": "7", "__runner__": runner}

    def get_prop(self, name: str, default: Any = None) -> Any:
        return self.found.get(name, default)

    def set_prop(self, name: str, value: Any, private: bool, sticky: bool) -> None:
        assert private and not sticky
        self.found[name] = value


def _filter(home: Path, chain: str, source: str = FilterSource.SITE, **changed: Any) -> LedgerFilter:
    made = LedgerFilter(str(home), TERMS | changed)
    made.set_prop(FilterContextKey.CHAIN_TYPE, chain)
    made.set_prop(FilterContextKey.SOURCE, source)
    return made


def _task(number: int = 0) -> Shareable:
    data = DXO("WEIGHTS", {"weight": np.zeros((2, 3), "float32"), "bias": np.zeros(2)}).to_shareable()
    data.set_header("current_round", number)
    return data


def _result(kind: str = "WEIGHT_DIFF", **changed: Any) -> Shareable:
    arrays = {"weight": np.ones((2, 3), "float32"), "bias": np.ones(2)} | changed
    return DXO(kind, arrays, {"num-examples": 1987}).to_shareable()


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_nvflare, "is_log_streaming_allowed", lambda _context: False)


@pytest.mark.usefixtures("quiet")
def test_a_sites_filter_refuses_every_other_task_and_guards_the_executor(tmp_path: Path) -> None:
    node(tmp_path, terms())
    tasks = _filter(tmp_path, FilterChainType.TASK_DATA_CHAIN)
    with pytest.raises(Refused, match="another task"):
        tasks.process(_task(), Context(task="validate"))

    def raising(*_given: Any) -> None:
        raise ValueError(SECRET)

    context = Context(raising)
    tasks.process(_task(), context)
    failed = context.executor.execute("train", _task(), context, None)
    assert SECRET not in repr(failed) and failed.get_return_code() == "EXECUTION_EXCEPTION"
    got = _filter(tmp_path, FilterChainType.TASK_RESULT_CHAIN).process(failed, context)
    assert got.get_return_code() == "OK" and got["DXO"]["data"]["weight"].shape == (2, 3)


@pytest.mark.usefixtures("quiet")
def test_a_jobs_filter_refuses_a_client_that_has_other_tasks(tmp_path: Path) -> None:
    node(tmp_path, terms())
    tasks, context = _filter(tmp_path, FilterChainType.TASK_DATA_CHAIN, FilterSource.JOB), Context()
    with pytest.raises(Refused, match="other tasks"):
        tasks.process(_task(), context)
    tasks.handle_event("_start_run", context)
    tasks.process(_task(), context)
    assert context.get_prop("__runner__").find_executor("validate") is None


def test_a_site_whose_logs_go_to_the_server_is_refused(tmp_path: Path) -> None:
    node(tmp_path, terms())
    with pytest.raises(Refused, match="allow_log_streaming"):
        _filter(tmp_path, FilterChainType.TASK_DATA_CHAIN).process(_task(), None)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("result", "leaves"), [
    (_result(), True),
    (make_reply("EXECUTION_EXCEPTION"), True),
    (_result(weight=np.full((2, 3), np.nan, "float32")), True),
    (_result("WEIGHTS"), False),
    (_result("METRICS"), False),
    (_result(extra=np.ones(1)), False),
    (_result(weight=np.float32(1)), False),
    (_result(weight=[[1, 2, 3], [4, 5, 6]]), False),
    (_result(weight=np.ones((2, 3))), False),
    (_result(weight=np.ma.ones((2, 3), "float32")), False),
    (_result(weight={"inner": np.ones((2, 3))}), False),
    (Shareable({"records": SECRET}), False),
    (Shareable(), False),
])
def test_a_result_of_another_form_stops_the_job(tmp_path: Path, result: Shareable, leaves: bool) -> None:
    node(tmp_path, terms())
    context, results = Context(), _filter(tmp_path, FilterChainType.TASK_RESULT_CHAIN)
    with pytest.raises(Refused, match="in the results' chain alone"):
        results.process(result, context)
    _filter(tmp_path, FilterChainType.TASK_DATA_CHAIN).process(_task(), context)
    if not leaves:
        with pytest.raises(Refused, match="nothing left"):
            results.process(result, context)
    else:
        got = results.process(result, context)
        assert set(got) == {"DXO", "__headers__"} and got["DXO"]["meta"] == {"num-examples": 1}
    assert known(tmp_path).answered == leaves


@pytest.mark.usefixtures("quiet")
def test_a_key_beside_the_result_stops_the_job_and_a_header_stays_here(tmp_path: Path) -> None:
    node(tmp_path, terms())
    context, results = Context(), _filter(tmp_path, FilterChainType.TASK_RESULT_CHAIN)
    _filter(tmp_path, FilterChainType.TASK_DATA_CHAIN).process(_task(), context)
    told = _result()
    told.set_header("said", SECRET)
    assert SECRET not in repr(results.process(told, context))
    _filter(tmp_path, FilterChainType.TASK_DATA_CHAIN).process(_task(1), context)
    told["said"] = SECRET
    with pytest.raises(Refused, match="“said” is not declared"):
        results.process(told, context)
