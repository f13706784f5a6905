"""`anonml demo`: a whole study on this machine, in separate processes, nothing left out.

Over loopback HTTP, or with `--tor` through a private Tor network of its own: the aggregator is an onion service in it,
each process of peers has a tor client, each exchange a circuit, and tor's own log tells which circuits carried packets.

An aggregator process serves; a few processes host real peers (own keys, ledger, store, data, consent policy). The
figures at the end come from what the aggregator published and from what the peers' own receipts say.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from math import ceil
from pathlib import Path
from typing import Annotated, Any

import typer
from attrs import frozen
from rich.console import Console

from aggregator.lab.simulation.ceilings import binned_ceiling, raw_ceiling
from aggregator.lab.simulation.evaluation import evaluate
from aggregator.lab.simulation.run import Plan
from anon.errors import Malformed, Refused
from anon.protocols.histogram.model import from_json
from anon.study.manifest import parse_manifest
from anon.transparency.documents import find
from anon.wire.messages import parse_roster
from examples import scenes
from examples.closing import kept_report, show
from examples.private_tor import private_tor
from examples.processes import Child, command, hosts, serving
from examples.published import Published, read_published
from examples.waiting import waiting

app = typer.Typer(
    add_completion=False, help="Run a whole study on this machine: census, mooc, or a study file of your own."
)
HOSTS, TOR_HOSTS = 4, 2
STARTING = 3.0
PREPARING = 0.005
"""Seconds per peer for a home with its data, by four processes on two idle cores: the most of four runs."""
TOR_PREPARING = 0.02
"""The same by the two processes that a demo through Tor has."""
REACHING = 8.0
"""Seconds until a new onion service has answered itself through the private network, on two idle cores."""
PEERS = {"census": 2000, "mooc": 500}
TOR_PEERS = {"census": 300, "mooc": 100}


@frozen
class Clock:
    """Lengths of the demo's stages, in seconds, for so many peers on two cores."""

    enrol: int
    settle: int
    binning: int
    collect: int

    @classmethod
    def of(cls, peers: int, preparing: float) -> Clock:
        """Time in proportion to the work. The seconds for `preparing` homes tell how slow this machine is now."""
        slow = min(max(1.0, (preparing - STARTING) / (peers * PREPARING)), 3.0)
        per_peer = (0.018 * slow, 0.016 * slow, 0.006 * slow, 0.012 * slow)
        return cls(*(ceil(base + peers * each) for base, each in zip((16, 6, 7, 8), per_peer, strict=True)))

    @classmethod
    def through_tor(cls, peers: int, preparing: float, reaching: float) -> Clock:
        """Time in proportion to the circuits: a peer needs a few in each stage, and two idle cores build some 15 in a
        second. How long the homes took, and the onion service to answer, tell how slow this machine is now."""
        measured = max(preparing / (STARTING + peers * TOR_PREPARING), reaching / REACHING)
        slow, per_peer = min(max(1.0, measured), 3.0), (0.25, 0.2, 0.1, 0.25)
        return cls(*(ceil(slow * (base + peers * each)) for base, each in zip((20, 12, 12, 15), per_peer, strict=True)))

    @property
    def longest(self) -> float:
        """Until every peer has certainly ended."""
        return self.enrol + 3 * self.settle + self.binning + self.collect + 90.0

    def stage(self, phase: str) -> tuple[str, float | None]:
        """A phase of the study in words, and its seconds where the schedule says them."""
        return {
            "enrolling": ("peers look at the study, consent and enrol", self.enrol),
            "settling": ("the roster is closed, and every peer checks it", self.settle),
            "binning": ("some peers answer where to cut, each with one perturbed bit", self.binning + self.settle),
            "collecting": ("every peer sends one perturbed answer, at a time of its own", self.collect + self.settle),
        }.get(phase, ("the aggregator learns from the noisy counts", None))

    def sections(self, peers: int) -> str:
        """The study file's schedule and cohort for the demo."""
        return (
            f'[schedule]\nenrol = "{self.enrol}s"\nsettle = "{self.settle}s"\nbinning = "{self.binning}s"\n'
            f'collect = "{self.collect}s"\n\n[cohort]\nminimum = {max(2, peers // 2)}\nmaximum = 100000\n'
        )


@app.command()
def main(
    example: Annotated[str, typer.Argument(help="census, mooc, or the path of a study.toml")] = "census",
    data: Annotated[Path | None, typer.Option(help="CSV of people (needed for a study of your own).")] = None,
    peers: Annotated[int, typer.Option(min=0, help="How many peers; 0: the example's own number.")] = 0,
    seed: Annotated[int | None, typer.Option(help="Which people take part; never their noise or keys.")] = None,
    shuffle_labels: Annotated[bool, typer.Option(help="mooc: break the link to the label; AUC must be 0.5.")] = False,
    tor: Annotated[bool, typer.Option("--tor", help="Through a private Tor network, started for it.")] = False,
    control: Annotated[bool, typer.Option(help="mooc: run it a second time with shuffled labels.")] = True,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Keep everything in this new folder.")] = None,
) -> None:
    """Run a whole study with real peers on this machine, and say in words what came of it. The report is kept."""
    console = Console(stderr=True)
    chosen = secrets.randbits(31) if seed is None else seed
    report = None
    with _folder(keep) as folder:
        with _network(folder, console, tor):
            figures = Demo(folder, console, tor).run(example, data, peers, chosen, shuffle_labels)
        if tor:
            control = False
        if example == "mooc" and control and not shuffle_labels:
            figures |= _control(folder / "control", console, peers, chosen, figures)
        if (found := folder / "published" / "report.html").is_file():
            report = found if keep is not None else _kept(found, Path(example).stem)
    if json_file:
        json_file.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n", "utf-8")
    show(Console(), figures, report, example)
    if tor and not _isolated(figures):
        console.print("[bold red]shared circuits:[/] tor's log does not show one circuit for each packet")
        raise typer.Exit(1)
    if figures["lost"] or figures["missed"] or figures["enrolled"] != figures["peers"]:
        console.print(
            "[bold red]incomplete:[/] not every peer enrolled or sent in time. This machine was too busy for windows "
            f"of seconds: run it again when it is idle, or `anonml demo {example} --peers 300`"
        )
        raise typer.Exit(1)


def _isolated(figures: dict[str, Any]) -> bool:
    """True if each connection that carried a packet had a circuit of its own, and the control could have shown not."""
    sent, circuits = figures["packet_connections"], figures["packet_circuits"]
    return bool(figures["sent"] <= sent == circuits and figures["control_circuits"] == 1)


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


def _control(folder: Path, console: Console, peers: int, seed: int, figures: dict[str, Any]) -> dict[str, float]:
    """How far the model came from 0.5 to its ceiling, and the whole study again with labels that mean nothing."""
    console.print("the control: the same study with shuffled labels, in which there is nothing to find")
    folder.mkdir()
    shuffled = Demo(folder, console).run("mooc", None, peers, seed, shuffle_labels=True)
    return {
        "reached": round((figures["auc"] - 0.5) / (figures["auc_ceiling_binned"] - 0.5), 4),
        "auc_shuffled": shuffled["auc"],
        "shown_shuffled": shuffled["shown"],
        "lost": figures["lost"] + shuffled["lost"],
    }


def _kept(report: Path, example: str) -> Path:
    """The report where it stays: in this folder, or where that cannot be written to, in the one for passing files."""
    here = Path.cwd()
    return kept_report(report, example, here if os.access(here, os.W_OK) else Path(tempfile.gettempdir()))


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


class Demo:
    """One run, in its folder."""

    def __init__(self, folder: Path, console: Console, tor: bool = False) -> None:
        self._folder = folder
        self._console = console
        self._tor = tor
        self._hosts = TOR_HOSTS if tor else HOSTS
        self._home = folder / "aggregator"
        self._seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def run(self, example: str, data: Path | None, peers: int, seed: int, shuffle_labels: bool) -> dict[str, Any]:
        """The figures of docs/figures.md."""
        usual = TOR_PEERS if self._tor else PEERS
        with self._waiting("people are found", None):
            scene = self._scene(example, data, peers or usual.get(example, 200), seed, shuffle_labels)
        count = len(scene.peers)
        made_up = ", all made up: the census data are not installed" if scene.made_up else ""
        self._lap("read", f"{count:,} people to be peers, {len(scene.test):,} others to try the model on{made_up}")
        people = scenes.write_people(scene, self._folder, self._hosts)
        with ExitStack() as running:
            with self._waiting("every peer makes its home and imports its data", count, self._homes):
                children = running.enter_context(hosts(people, self._folder, max(2, count // 2), self._tor))
            preparing = self._lap("prepare", "every peer has its home and its data")
            with self._waiting("the aggregator starts", REACHING if self._tor else None):
                server, address = running.enter_context(serving(self._home, self._folder, self._tor))
            with self._waiting("staff publish the study and draw the invites", None):
                reaching = self._lap("serve", "the aggregator answers at its address")
                clock = Clock.through_tor(count, preparing, reaching) if self._tor else Clock.of(count, preparing)
                study = self._folder / "study.toml"
                study.write_text(_with_sections(scene.study_text, clock.sections(count)), "utf-8")
                command(self._home, "study", "publish", str(study))  # its clock runs from here
                links = command(self._home, "aggregator", "invite", "--count", str(count), "--address", address)
                for number, child in enumerate(children):
                    child.tell({"links": links[number :: self._hosts], "seconds": clock.longest})
            ended = self._follow(server, clock)
            with self._waiting("peers look for their packets in the transcript, and erase their secrets", None):
                outcomes = [child.line() for child in children]
        self._lap("peers end", "inclusion checked, secrets erased")
        with self._waiting("the model is tried on people who took no part", None):
            command(self._home, "aggregator", "export", str(self._folder / "published"))
            published = read_published(self._folder / "published")
            figures = self._figures(scene, outcomes, ended, published)
        self._lap("score", "the model tried on people whom no peer holds")
        return figures | {"seconds": self._seconds | {"total": round(sum(self._seconds.values()), 1)}}

    def _scene(self, example: str, data: Path | None, peers: int, seed: int, shuffle_labels: bool) -> scenes.Scene:
        if example == "census":
            return scenes.census(peers, seed, data)
        if example == "mooc":
            return scenes.mooc(peers, seed, self._folder / "logs", shuffle_labels)
        if data is None or not Path(example).is_file():
            raise Malformed(
                "demo: expected census, mooc, or a study file with --data FILE.csv (`anonml study synthesize`)"
            )
        return scenes.own_study(Path(example), data, peers, seed)

    def _homes(self) -> int:
        """How many peers have a home by now."""
        return sum(1 for _ in self._folder.glob("homes-*/*"))

    def _follow(self, server: Child, clock: Clock) -> dict[str, Any]:
        """Read the server's lines until the study has ended; each change of phase ends a stage."""
        phase = "enrolling"
        while phase not in ("published", "abandoned"):
            said, seconds = clock.stage(phase)
            with self._waiting(said, seconds):
                status = server.line()
                while status["phase"] == phase:
                    status = server.line()
            phase = status["phase"]
            self._lap(_STAGES.get(phase, phase), f"{status['enrolled']:,} enrolled")
        return status

    def _waiting(
        self, what: str, total: float | None, done: Callable[[], float] | None = None
    ) -> AbstractContextManager[None]:
        return waiting(self._console, what, total, done)

    def _lap(self, stage: str, said: str) -> float:
        now = time.perf_counter()
        self._seconds[stage] = round(self._seconds.get(stage, 0.0) + now - self._since, 1)
        self._since = now
        self._console.print(f"  {stage:<12} {self._seconds[stage]:6.1f} s   {said}", highlight=False)
        return self._seconds[stage]

    def _figures(
        self, scene: scenes.Scene, outcomes: Sequence[dict[str, Any]], ended: dict[str, Any], published: Published
    ) -> dict[str, Any]:
        manifest = parse_manifest(published.body("manifest"))
        sent = sum(one["sent"] for one in outcomes)
        accepted = published.accepted(len(manifest.surveys))
        roster = parse_roster(published.body("roster"), manifest.study_id) if find(published.chain, "roster") else ()
        figures: dict[str, Any] = {
            "peers": len(scene.peers),
            "enrolled": len(roster),
            "sent": sent,
            "attempts": sum(one["attempts"] for one in outcomes),
            "accepted": accepted,
            "included": sum(one["packets"].get("included", 0) for one in outcomes),
            "refused": {word: n for word, n in ended["packet_answers"].items() if word not in ("accepted", "busy")},
            "missed": len(roster) * manifest.packets - sent,
            "lost": sent - accepted,
            "epsilon_record": manifest.epsilon / 1e9,
            "epsilon_eq6": manifest.epsilon_per_attribute / 1e9,
            "most_spent": max((one["most_spent"] for one in outcomes), default=0.0),
        }
        if self._tor:
            figures |= {name: sum(one[name] for one in outcomes) for name in ("packet_connections", "packet_circuits")}
            figures |= {name: outcomes[0][name] for name in ("control_requests", "control_circuits")}
        if find(published.chain, "model"):
            figures |= self._scores(scene, published, Plan.of(manifest))
        return figures

    def _scores(self, scene: scenes.Scene, published: Published, plan: Plan) -> dict[str, float | bool]:
        """`shown`: the report holds that the model beats noise."""
        model = from_json(published.body("model").decode())
        return {
            "shown": bool(model.shown),
            "auc": round(evaluate(model, scene.test).auc, 4),
            "auc_ceiling_binned": round(binned_ceiling(plan, scene.train, scene.test), 4),
            "auc_ceiling_raw": round(raw_ceiling(plan, scene.train, scene.test), 4),
        }


_STAGES = {"settling": "enrol", "binning": "settle", "collecting": "bin", "learning": "collect", "published": "learn"}


def _with_sections(text: str, sections: str) -> str:
    """The study file with its schedule and cohort replaced."""
    for name in ("schedule", "cohort"):
        text = re.sub(rf"(?ms)^\[{name}\][^\n]*\n.*?(?=^\[|\Z)", "", text)
    return text.rstrip() + "\n\n" + sections


os.environ.setdefault("OMP_NUM_THREADS", "1")
