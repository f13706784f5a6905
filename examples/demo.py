"""`anonml demo`: a whole study on this machine, in separate processes, nothing left out.

Over loopback HTTP, or with `--tor` through a private Tor network of its own: the aggregator is an onion service in it,
each process of peers has a tor client, each exchange a circuit, and tor's own log tells which circuits carried packets.

An aggregator process serves; a few processes host real peers (own keys, ledger, store, data, consent policy). All share
a virtual clock (`examples.clock`): weeks pass in minutes, and no load of the machine makes anybody late. The figures at
the end come from what the aggregator published and from what the peers' own receipts say (`examples.checks`).
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from attrs import frozen
from rich.console import Console

from anon.errors import Malformed, Refused
from examples import parties, scenes
from examples.checks import CONTROL, faults
from examples.closing import kept_here, show
from examples.private_tor import private_tor
from examples.study_run import StudyRun, Wanted
from examples.waiting import waiting

PEERS = {"census": 2000, "sum": 300, "mooc": 500, "averaging": 100, "transfer": 150, "masks": 30, "groups": 30,
         "trees": 50}  # fmt: skip
TOR_PEERS = {"census": 300, "sum": 60, "mooc": 100, "averaging": 40, "transfer": 60, "masks": 20, "groups": 20,
             "trees": 20}  # fmt: skip
EXAMPLES = ", ".join(PEERS)
app = typer.Typer(
    add_completion=False,
    help=f"A whole study on this machine: {EXAMPLES}, or a file of your own.",
)


@app.command()
def main(
    example: Annotated[
        str, typer.Argument(help=f"{EXAMPLES}, or the path of a study.toml")
    ] = "census",
    data: Annotated[Path | None, typer.Option(help="CSV of people (needed for a study of your own).")] = None,
    peers: Annotated[int, typer.Option(min=0, help="How many peers; 0: the example's own number.")] = 0,
    seed: Annotated[int | None, typer.Option(help="Which people take part; never their noise or keys.")] = None,
    shuffle_labels: Annotated[bool, typer.Option(help="mooc: break the link to the label; AUC must be 0.5.")] = False,
    tor: Annotated[bool, typer.Option("--tor", help="Through a private Tor network of its own; needs tor.")] = False,
    control: Annotated[bool, typer.Option(help="mooc: run it a second time, with shuffled labels.")] = True,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Keep everything in this new folder (census: 345 MB).")] = None,
) -> None:
    """Run a whole study with real peers on this machine, and say in words what came of it. The report is kept."""
    console = Console(stderr=True)
    chosen = secrets.randbits(31) if seed is None else seed
    asked = Asked(example, data, peers or (TOR_PEERS if tor else PEERS).get(example, 200), chosen, shuffle_labels, tor)
    report, twice = None, example == "mooc" and control and not shuffle_labels and not tor
    if twice:
        console.print("two studies, one after the other: the second has shuffled labels, and should find nothing")
    with _folder(keep) as folder:
        with _network(folder, console, tor):
            figures = _run(asked, folder, console)
        if twice:
            console.print("the control: the same study with shuffled labels")
            shuffled = Asked(example, None, asked.peers, chosen, True, False)
            figures |= with_control(figures, _run(shuffled, folder / "control", console))
        if (found := folder / "published" / "report.html").is_file():
            report = found if keep is not None else kept_here(found, f"demo-{Path(example).stem}")
    if json_file:
        json_file.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n", "utf-8")
    show(Console(), figures, report, example, keep and keep / "published")
    if faults(figures):
        raise typer.Exit(1)


@frozen
class Asked:
    """The wishes of the command for one study."""

    example: str
    data: Path | None
    peers: int
    seed: int
    shuffle_labels: bool
    tor: bool

    def scene(self, folder: Path) -> scenes.Scene:
        """Its people. Raises `Malformed`."""
        if self.example in ("census", "sum"):
            return scenes.census(self.peers, self.seed, self.data, self.example)
        if self.example == "mooc":
            return scenes.mooc(self.peers, self.seed, folder / "logs", self.shuffle_labels)
        if self.example in parties.RECORDS:
            return parties.scene(self.example, self.peers, self.seed, self.data)
        if self.data is None or not Path(self.example).is_file():
            raise Malformed(
                f"demo: expected {EXAMPLES}, or a study file with --data FILE.csv (`anonml study synthesize`)"
            )
        return scenes.own_study(Path(self.example), self.data, self.peers, self.seed)


def _run(asked: Asked, folder: Path, console: Console) -> dict[str, Any]:
    began = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    with waiting(console, f"the data of {asked.peers:,} peers are read, or made up", None):
        scene = asked.scene(folder)
    return StudyRun(Wanted(scene, folder, asked.seed, asked.tor), console, since=began).figures()


def with_control(figures: dict[str, Any], control: dict[str, Any]) -> dict[str, Any]:
    """All figures of the second study, and how far the model of the first came from 0.5 to its ceiling."""
    further: dict[str, Any] = {CONTROL: control}
    if "auc" in figures and figures["auc_ceiling_binned"] > 0.5:
        further["reached"] = round((figures["auc"] - 0.5) / (figures["auc_ceiling_binned"] - 0.5), 4)
    return further


@contextmanager
def _network(folder: Path, console: Console, tor: bool) -> Iterator[None]:
    """With tor: a private network, which every tor started inside the block joins."""
    if not tor:
        yield
        return
    with ExitStack() as standing:
        with waiting(console, "a private Tor network starts", 15):
            network = standing.enter_context(private_tor(folder / "net"))
        console.print(f"  {'network':<12} {network.seconds:6.1f} s   {network.relays} relays of a private Tor network")
        os.environ["ANONML_TORRC"] = str(network.torrc_file)
        try:
            yield
        finally:
            del os.environ["ANONML_TORRC"]


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="anonml-demo-") as name:
            yield Path(name)
        return
    if keep.exists():
        raise Refused(f"--keep {keep}: already exists; name a new folder")
    keep.mkdir(parents=True)
    yield keep.resolve()


os.environ.setdefault("OMP_NUM_THREADS", "1")
