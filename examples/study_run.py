"""One whole study of a demo: its processes are started, followed on the virtual clock, and ended with it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from rich.console import Console

from aggregator.lab.simulation.ceilings import binned_ceiling, raw_ceiling
from aggregator.lab.simulation.evaluation import evaluate
from aggregator.lab.simulation.run import Plan
from aggregator.protocols.installed import PROTOCOLS
from anon.kit.terminal.foreign import inline
from anon.protocols.cost_words import exact_cost, is_local, promise_in_words
from anon.protocols.models.linear import LinearModel
from anon.protocols.models.tables import Model
from anon.protocols.registry import charge_of
from anon.protocols.tellers import tellers_of
from anon.transparency.documents import find
from examples import parties, scenes
from examples.checks import UNPUBLISHED
from examples.clock import START, Keeper
from examples.picture import Picture, shown
from examples.processes import Child, DemoFailed, command, hosts, serving, tellers
from examples.published import Published, read_published
from examples.schedule import THROUGH_TOR, WEEKS, Schedule, scheduled, with_tellers
from examples.waiting import waiting
from peer.rules.lifecycle import State

HOSTS, TOR_HOSTS = 4, 2
_MEMBERS = (str(State.FINISHED),)
PUBLISHED = "published"
ENDED = (PUBLISHED, "abandoned", "ended")
_DONE = {
    "enrolling": ("enrol", "{enrolled:,} enrolled"),
    "settling": ("settle", "every peer checked the list of members"),
    "binning": ("bin", "ranges found"),
    "collecting": ("collect", "every window is closed"),
    "learning": ("learn", "the model is published"),
}
"""A stage by the phase that ended with it, and its last word."""
_SAID = {
    "enrolling": "people look at the study, consent and enrol, each at a time of their own",
    "settling": "the roster is closed, and every peer checks it",
    "binning": "some of the peers send first: one perturbed bit each, from which ranges of numbers are found",
    "collecting": "peers send, each at a time of its own",
}


@frozen
class Wanted:
    """A demo's study. `folder` is its own; `tor`: through a private Tor network, which stands already.

    `begins`: its first instant, in unix seconds. `title`: the one under which it is published; empty: its file's.
    """

    scene: scenes.Scene
    folder: Path
    seed: int
    tor: bool = False
    begins: float = START
    title: str = ""

    @property
    def schedule(self) -> Schedule:
        """The lengths of its stages."""
        return THROUGH_TOR if self.tor else WEEKS

    @property
    def peers(self) -> int:
        """How many people take part."""
        return len(self.scene.peers)

    @property
    def hosts(self) -> int:
        """How many processes have them."""
        return TOR_HOSTS if self.tor else HOSTS

    @property
    def least(self) -> int:
        """The members that each of them asks for at the least."""
        return max(2, self.peers // 2)

    def published_text(self, running: ExitStack) -> str:
        """The study file as it is published: with the demo's schedule, and with tellers that were started for it."""
        text = scheduled(self.scene.study_text, self.schedule, self.peers)
        proposal = PROTOCOLS.proposal(text)
        if not proposal.tellers:
            return text
        names = [teller.name for teller in proposal.tellers]
        return with_tellers(text, proposal, running.enter_context(tellers(names, self.folder, self.tor)))


@define
class StudyRun:
    """One run. `figures` are those of docs/figures.md, and `lived` is all of it but the scores."""

    wanted: Wanted
    console: Console
    _seconds: dict[str, float] = field(factory=dict)
    _since: float = field(factory=time.perf_counter)
    """When its data were first asked for; then, when the last stage ended."""

    def figures(self) -> dict[str, Any]:
        """Run the study to its end. Raises `DemoFailed` where one of its processes ends badly."""
        scene = self.wanted.scene
        self._lap("read", f"data of {self.wanted.peers:,} peers, and {len(scene.test):,} others to try the model on"
                  + (", all made up: the census data are not installed" if scene.made_up else ""))
        figures = self.lived()
        if UNPUBLISHED in figures:
            return figures
        with waiting(self.console, "the model is tried on others", None):
            figures |= self._scores()
        self._lap("score", "the model tried on people whom no peer holds")
        return figures | {"seconds": self._seconds | {"total": round(sum(self._seconds.values()), 1)}}

    def lived(self) -> dict[str, Any]:
        """The same without the model's scores. Where no report came, only why."""
        outcomes, ended = self._life()
        if ended["phase"] != PUBLISHED:
            return {UNPUBLISHED: ended["fault"] or ended["phase"]}
        with waiting(self.console, "what was published is audited", None):
            figures = self._checked(outcomes, ended)
        self._lap("audit", "everything published checked")
        return figures

    def _life(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        wanted, count, hosted = self.wanted, self.wanted.peers, self.wanted.hosts
        people = scenes.write_people(wanted.scene, wanted.folder, hosted)
        with ExitStack() as running:
            keeper = Keeper(wanted.folder / "clock", hosted + 1, wanted.schedule.ahead, wanted.begins)
            running.enter_context(keeper)
            with waiting(self.console, "every peer makes its home and imports its data", count, self._homes):
                children = running.enter_context(hosts(people, wanted.folder, wanted.least, keeper, wanted.tor))
            self._lap("prepare", "every peer has its home and its data")
            with waiting(self.console, "the study is published, and its invites are drawn", None):
                study = self._study_file(running)
                server, words, links = running.enter_context(self._serving(study, keeper))
            self._lap("publish", f"the aggregator serves, and every person has a link. The study's words: {words}")
            comes = wanted.schedule.comes(count, keeper.clock(), wanted.seed)
            for number, child in enumerate(children):
                child.tell({"links": links[number::hosted], "comes": comes[number::hosted]})
            picture = Picture(wanted.folder, count, keeper.clock, wanted.begins)
            ended = self._follow(server, picture)
            with shown(self.console, picture, "peers find their packets in the transcript, and erase their secrets"):
                outcomes = [child.line() for child in children]
            self._lap("peers end", "inclusion checked, secrets erased")
        return outcomes, ended

    def _serving(self, study: Path, keeper: Keeper) -> AbstractContextManager[tuple[Child, str, list[str]]]:
        wanted = self.wanted
        order = {"study": str(study), "invites": wanted.peers, "title": wanted.title}
        return serving(wanted.folder, order, keeper, wanted.tor, self.console.is_terminal)

    def _study_file(self, running: ExitStack) -> Path:
        wanted = self.wanted
        text = wanted.published_text(running)
        for given in PROTOCOLS.proposal(text).given:
            place = wanted.folder / given.file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(wanted.scene.given[given.name])
        file = wanted.folder / "study.toml"
        file.write_text(text, "utf-8")
        return file

    def _homes(self) -> int:
        """How many peers have a home by now."""
        return sum(1 for _ in self.wanted.folder.glob("homes-*/[0-9]*"))

    def _follow(self, server: Child, picture: Picture) -> dict[str, Any]:
        """Read the server's lines until the study has ended; each change of phase ends a stage. Each reason why it
        waits is told."""
        status = server.line()
        while (phase := status["phase"]) not in ENDED:
            with shown(self.console, picture, _SAID.get(phase, "the aggregator counts, and learns from noisy counts")):
                status = server.line()
            if status["phase"] != phase:
                over = "learning" if status["phase"] == PUBLISHED else phase
                stage, done = _DONE[over]
                self._lap(stage, done.format(enrolled=status["enrolled"]))
            elif status["fault"]:
                self.console.print(f"  it waits: {inline(status['fault'])}", highlight=False, markup=False)
        return status

    def _lap(self, stage: str, said: str) -> None:
        now = time.perf_counter()
        self._seconds[stage] = round(self._seconds.get(stage, 0.0) + now - self._since, 1)
        self._since = now
        line = f"  {stage:<10} {self._seconds[stage]:6.1f} s   {said}"
        self.console.print(line, highlight=False, soft_wrap=True)

    # The end

    def _checked(self, outcomes: Sequence[dict[str, Any]], ended: dict[str, Any]) -> dict[str, Any]:
        home, folder = self.wanted.folder / "aggregator", self.wanted.folder / "published"
        command(home, "aggregator", "export", str(folder))
        published = read_published(folder)
        figures = figures_of(self.wanted.peers, outcomes, ended, published)
        figures["audited"] = _audited(folder)
        if self.wanted.tor:
            figures |= {name: _added(outcomes, name) for name in ("packet_connections", "packet_circuits")}
            figures |= {name: outcomes[0][name] for name in ("control_requests", "control_circuits")}
        return figures

    def _scores(self) -> dict[str, Any]:
        published = read_published(self.wanted.folder / "published")
        scores = parties.scores if self.wanted.scene.held else _scores
        result = find(published.chain, "model") or find(published.chain, "rows")
        return scores(self.wanted.scene, published) if result else {}


def figures_of(
    peers: int, outcomes: Sequence[dict[str, Any]], ended: dict[str, Any], published: Published
) -> dict[str, Any]:
    """The counts of a study: by its publication, by its peers' own stores, and by the aggregator's answers."""
    manifest = PROTOCOLS.manifest(published.body("manifest"))
    sent, accepted = _added(outcomes, "sent"), published.accepted(len(manifest.slots))
    return {
        "title": manifest.title,
        "peers": peers,
        "joined": sum(count for each in outcomes for state, count in each["states"].items() if state in _MEMBERS),
        "enrolled": published.count("roster"),
        "packets": manifest.packets,
        "sent": sent,
        "attempts": _added(outcomes, "attempts"),
        "accepted": accepted,
        "included": sum(each["packets"].get("included", 0) for each in outcomes),
        "refused": {word: n for word, n in ended["packet_answers"].items() if word not in ("accepted", "busy")},
        "missed": peers * manifest.packets - sent,
        "lost": sent - accepted,
        "local": is_local(manifest),
        "price": exact_cost(manifest),
        "promise": promise_in_words(manifest),
        "unit": str(charge_of(manifest).unit),
        "noise_of": "the tellers" if tellers_of(manifest) else "the members",
        "epsilon_record": charge_of(manifest).amount / 1e9,
        "epsilon_eq6": manifest.epsilon_per_attribute / 1e9,
        "most_spent": max((each["most_spent"] for each in outcomes), default=0.0),
    }


def _added(outcomes: Sequence[dict[str, Any]], name: str) -> int:
    return sum(int(each[name]) for each in outcomes)


def _audited(folder: Path) -> bool:
    """True if `anonml aggregator audit` finds nothing wrong with what was published."""
    try:
        command(None, "aggregator", "audit", str(folder))
    except DemoFailed:
        return False
    return True


def _scores(scene: scenes.Scene, published: Published) -> dict[str, float | bool]:
    """`shown`: the report holds that the model beats noise."""
    plan, model = Plan.of(PROTOCOLS.manifest(published.body("manifest"))), PROTOCOLS.model(published.body("model"))
    if not isinstance(model, Model | LinearModel):
        return {}
    return {
        "shown": bool(model.shown),
        "auc": round(evaluate(model, scene.test).auc, 4),
        "auc_ceiling_binned": round(binned_ceiling(plan, scene.train, scene.test), 4),
        "auc_ceiling_raw": round(raw_ceiling(plan, scene.train, scene.test), 4),
    }


