"""The place where heavy work runs does not change a bit of what it gives."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import typer
from joblib.externals.loky import get_reusable_executor
from typer.testing import CliRunner

from aggregator.compute import HERE, MOST_PROCESSES, Compute
from aggregator.lab.cli import join_study
from aggregator.lab.cli_simulate import app as simulate_command
from aggregator.lab.planning.population import Assumptions
from aggregator.lab.planning.trials import Trials, World, go_on, plan_of, worlds_of
from aggregator.lab.simulation import simulate as simulation
from anon.errors import Malformed, Refused
from tests.lab.test_simulate import HEAD, ONE_PACKET, proposal, rows
from tests.support.studies import study

FEW = Assumptions(people=300, test=100)
MISSING = "dask and distributed are missing: install the extra `dask` (make .venv/test)"


@pytest.mark.parametrize(("told", "place"), [
    ("1", HERE),
    ("12", Compute(12)),
    ("dask://127.0.0.1:8786", Compute(cluster="tcp://127.0.0.1:8786")),
    ("tcp://cluster.example:1", Compute(cluster="tcp://cluster.example:1")),
    ("tls://[::1]:8786", Compute(cluster="tls://[::1]:8786")),
])
def test_a_place_is_a_number_of_processes_or_a_scheduler(told: str, place: Compute) -> None:
    assert Compute.of(told) == place


@pytest.mark.parametrize(
    "told", ["", "0", "-1", "1.0", "١", str(MOST_PROCESSES + 1), "dask://", "dask://host", "http://a:1", "dask://a:1/b"]
)
def test_no_other_place_is_taken(told: str) -> None:
    with pytest.raises(Malformed, match=r"--compute: expected a number of processes, 1 to 512, or"):
        Compute.of(told)


def test_linear_algebra_has_one_thread_while_work_runs_and_its_threads_back_after_it() -> None:
    from threadpoolctl import threadpool_info

    def threads(_: int) -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    before = threads(0)
    during = [*HERE.each(threads, [1, 2])]
    assert during == [[1] * len(before)] * 2 and before
    assert threads(0) == before


def test_every_trial_of_a_simulation_has_its_own_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third of five is the third of three, whatever the others took."""
    seen: list[int] = []

    def tried(_: object, seed: np.random.SeedSequence) -> simulation._Tried:
        seen.append(int(np.random.default_rng(seed).integers(1 << 62)))
        return simulation._Tried(simulation.TestScores(0.5, 0.5, 0.5, 0.0), False, None)

    monkeypatch.setattr(simulation, "_tried", tried)
    crowd = _crowd(60)
    for trials in (5, 3):
        simulation.simulate(proposal(), crowd, trials, 7, ceilings=False)
    assert seen[:3] == seen[5:] and len(set(seen[:5])) == 5


def test_designs_tried_together_get_the_figures_of_each_alone() -> None:
    plan = plan_of(proposal())
    worlds = worlds_of(proposal(), 3, FEW)
    alone, one, other = (Trials(plan, cohort, 1) for cohort in (200, 200, 400))
    alone.go_on(worlds)
    go_on([one, other], worlds[:1])
    go_on([one, other], worlds)
    assert (one.aucs, one.shown) == (alone.aucs, alone.shown)
    assert len(other.aucs) == 3 and other.aucs != one.aucs


def test_a_made_up_population_is_sent_without_its_people() -> None:
    import pickle

    world = worlds_of(proposal(), 1, FEW)[0]
    assert isinstance(world, World) and len(world.people[0]) == 300
    assert len(pickle.dumps(world)) < 4_000


def test_nothing_that_holds_a_key_computes_elsewhere() -> None:
    """Commands, lab and audit alone name it: what the server does with keys stays in its own workers."""
    root = Path(__file__).parents[2] / "aggregator"
    texts = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in root.rglob("*.py")}
    users = {name for name, text in texts.items() if "aggregator.compute " in text}
    assert {name.partition("/")[0] for name in users} == {"audit", "cli", "lab"} and "cli/serve.py" not in users


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A study file and people for it."""
    lengths = {"enrol": "1d", "settle": "1h", "binning": "1d", "collect": "1d"}
    (tmp_path / "study.toml").write_text(study(HEAD, ONE_PACKET, lengths, "minimum = 10"))
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["age", "sex", "town", "ill"])
        writer.writeheader()
        writer.writerows(rows(400, 3))
    return tmp_path / "study.toml", tmp_path / "people.csv"


def _crowd(count: int) -> simulation.People:
    from aggregator.lab.simulation.people import people_from_rows

    return people_from_rows(proposal(), rows(count, 4))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two small populations and one number of bins in place of all that a plan tries."""
    for name in ("plan", "outlook", "exact_sums"):
        monkeypatch.setattr(f"aggregator.lab.planning.{name}.Assumptions", lambda: FEW)
        monkeypatch.setattr(f"aggregator.lab.planning.{name}.populations_for", lambda _: 2)
    monkeypatch.setattr("aggregator.lab.planning.candidates.BINS", (2,))
    monkeypatch.setattr("aggregator.lab.planning.outlook.GRID", (1_000, 1_000_000))


def _simulated(files: tuple[Path, Path], place: str) -> bytes:
    """The bytes that `simulate` prints."""
    told, people = map(str, files)
    found = CliRunner().invoke(
        simulate_command, [told, "--data", people, "--trials", "6", "--seed", "1", "--json", "--compute", place]
    )
    assert found.exit_code == 0, found.output
    return found.stdout_bytes


def _planned(files: tuple[Path, Path], place: str) -> bytes:
    """The bytes that `study plan` prints."""
    commands = typer.Typer()
    join_study(commands)
    found = CliRunner().invoke(
        commands,
        ["plan", str(files[0]), "--epsilon", "4", "--populations", "2", "--only", "--json", "--compute", place],
    )
    assert found.exit_code == 0, found.output
    return found.stdout_bytes


@pytest.fixture
def cluster() -> Iterator[str]:
    """A Dask cluster of one process with two threads, of which each takes work; the scheduler's address."""
    distributed = pytest.importorskip("distributed", reason=MISSING)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=None, worker_dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield str(cluster.scheduler_address)


@pytest.mark.process
@pytest.mark.usefixtures("short")
def test_simulate_and_plan_print_the_same_bytes_on_a_cluster_and_in_several_processes(
    files: tuple[Path, Path], cluster: str
) -> None:
    at = cluster.replace("tcp:", "dask:")
    here = _simulated(files, "1")
    assert _simulated(files, at) == here
    assert _planned(files, at) == _planned(files, "1")
    try:
        assert _simulated(files, "2") == here
    finally:
        get_reusable_executor().shutdown()


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_named(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason=MISSING)
    monkeypatch.setattr("aggregator.compute._PATIENCE", 1)
    with pytest.raises(Refused, match=r"no cluster that can do this work answers at tcp://127\.0\.0\.1:9"):
        next(Compute.of("dask://127.0.0.1:9").each(os.strerror, [1, 2]))
