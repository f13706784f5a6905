"""The demo's last word: what came out, at what price, and what to try next, for somebody who never saw a study."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel

from anon.kit.terminal.foreign import inline
from anon.kit.terminal.hints import started_as
from anon.ldp import odds_moved
from examples.checks import CONTROL, faults

NANO = 10**9


def kept_here(report: Path, name: str) -> Path:
    """See `kept_report`: in this folder, or where that cannot be written to, in the one for passing files."""
    here = Path.cwd()
    return kept_report(report, name, here if os.access(here, os.W_OK) else Path(tempfile.gettempdir()))


def kept_report(report: Path, name: str, folder: Path) -> Path:
    """A copy of the report in `folder` under a name that nothing has yet."""
    names = (f"anonml-{name}{f'-{number}' if number > 1 else ''}.html" for number in range(1, 10_000))
    free = next(folder / name for name in names if not (folder / name).exists())
    shutil.copyfile(report, free)
    return free


def closing(figures: Mapping[str, Any], report: Path | None, example: str, published: Path | None = None) -> Panel:
    """The panel at the end of a demo. A sentence of success is said only where every check of the figures holds."""
    if found := faults(figures):
        return Panel("\n\n".join(_failed(found)), title="This run failed", **_LOOK)
    paragraphs = [*_outcome(figures), *_privacy(figures), *_packets(figures), *_next(report, example, published)]
    return Panel("\n\n".join(paragraphs), title="What happened", **_LOOK)


_LOOK: dict[str, Any] = {"expand": False, "width": 100, "padding": (1, 2)}


def _failed(found: Sequence[str]) -> Iterator[str]:
    yield f"[bold red]{len(found)} of the run's checks did not hold, so nothing is said about a model.[/]"
    yield "\n".join(f"* {escape(inline(fault))}" for fault in found)
    yield "No load of a machine can cause this: please report it, with the folder that --keep FOLDER keeps."


def _outcome(figures: Mapping[str, Any]) -> Iterator[str]:
    if "records" in figures:
        yield from _parties(figures)
        return
    asked = f"“{escape(inline(figures['title']))}”: "
    yield f"[bold]{asked}{figures['enrolled']:,} people trained one model, and nobody handed over their data.[/]"
    yield _worth(figures) if figures["shown"] else _CHANCE
    if CONTROL in figures:
        yield _FOUND if figures[CONTROL]["shown"] else _NOTHING_FOUND


def _parties(figures: Mapping[str, Any]) -> Iterator[str]:
    made = f"the models of {figures['groups']:,} groups, which predict together" if "groups" in figures else "one model"
    if "trees" in figures:
        made = f"{figures['rows']:,} rows that stand for nobody, drawn from a private tree of each"
    yield (
        f"[bold]“{escape(inline(figures['title']))}”: {figures['enrolled']:,} parties with {figures['records']:,} "
        f"records each made {made}, and none handed over a record.[/]"
    )
    rows = [f"  {name:<24} {error:6.3f}   {auc:6.3f}" for name, (error, auc) in figures["models"].items()]
    yield "\n".join([f"  {'':<24} {'error':>6}   {'AUC':>6}", *rows])
    (error, auc), (own_error, own_auc) = (figures["models"][name] for name in ("published", "one party alone"))
    if "trees" in figures:
        yield "Each tree is public as it is. A model of rows or records is a logistic regression."
    yield (
        f"Sharing takes the mean party's error from {own_error:.3f} to {error:.3f}, and its AUC from {own_auc:.3f} to "
        f"{auc:.3f}, on records that no party holds. A single run tells little: its noise is drawn anew each time."
    )
    least, most = figures["distance_band"]
    if "trees" in figures:
        yield (
            f"[bold]The noise:[/] counts of published trees are wrong by {figures['distance']:.2f} times as much as "
            f"those of trees that are grown again from the same records. A right run lies between {least:.2f} and "
            f"{most:.2f}, but for one in 100,000."
        )
        return
    of = "of all groups " if "groups" in figures else ""
    yield (
        f"[bold]The noise:[/] the published sum {of}is {figures['distance']:.2f} times as far from the exact one as "
        f"the declared noise is long, in the root mean square. A right run lies between {least:.2f} and {most:.2f}, "
        "but for one in a million."
    )


_CHANCE = (
    "[bold]The model was not shown to know anything.[/] Noise alone would look as good too often, so its report calls "
    "the result chance, and no accuracy is given here. More people, or a larger epsilon, would help. Each run draws "
    "other noise, so another may find something. README's table says how often, by the number of people."
)
_FOUND = (
    "[bold]The control:[/] with shuffled labels the report found something too. That is an error which its test makes "
    "in at most one of fifty studies."
)
_NOTHING_FOUND = (
    "[bold]The control:[/] with shuffled labels there is nothing to find, and the report says that nothing was found."
)


def _worth(figures: Mapping[str, Any]) -> str:
    auc, binned, raw = figures["auc"], figures["auc_ceiling_binned"], figures["auc_ceiling_raw"]
    added = round(raw - auc, 3)
    return (
        f"[bold]The private model: AUC {auc:.3f}.[/] Given two people of whom one is positive, it picks the right one "
        f"{100 * auc:.0f} times in 100. Guessing picks it 50 times. It was tried on people who took no part. "
        "The study knows no such people, so its report lacks this figure.\n"
        f"[bold]Without any privacy: AUC {raw:.3f}[/] from everybody's raw data, {binned:.3f} from the same data in "
        f"the study's ranges.{f' Collecting the data would add {added:.3f}.' if added > 0 else ''}"
    )


def _privacy(figures: Mapping[str, Any]) -> Iterator[str]:
    if not figures["local"]:
        yield (
            f"[bold]The price for each {figures['unit']}: {escape(inline(figures['price']))}.[/] As for what it means: "
            f"{escape(inline(figures['promise']))}. Nobody saw a single answer, and {figures['noise_of']} added the "
            "noise."
        )
        return
    epsilon = figures["epsilon_record"]
    moved = odds_moved(round(epsilon * NANO))
    yield (
        f"[bold]The price for each person: epsilon {epsilon:g}.[/] Whatever anyone believed about a person, the odds "
        f"of that belief {moved}, even for somebody who knows which packet is whose. Each machine adds the noise "
        "itself, so nobody has to be trusted for that."
    )


def _packets(figures: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"[bold]Packets:[/] {figures['sent']:,} sent, {figures['accepted']:,} accepted, {figures['included']:,} found "
        "again by their senders in the transcript; none was lost. Each carried a proof of membership and no name."
    )
    if "packet_circuits" in figures:
        yield (
            f"[bold]Tor:[/] {figures['packet_connections']:,} connections carried packets, on "
            f"{figures['packet_circuits']:,} circuits of their own by tor's log. Over one shared connection "
            f"{figures['control_requests']:,} requests took {figures['control_circuits']:,}."
        )


def _next(report: Path | None, example: str, published: Path | None) -> Iterator[str]:
    if report is not None:
        yield f"[bold]The report[/] that the study published: {escape(inline(str(report)))}"
    program = escape(inline(started_as(sys.argv[0])))
    yield (
        f"[bold]Check what was published:[/] {program} aggregator audit {escape(inline(quote(str(published))))}, or "
        "drop that folder on docs/verifier/verify.html in a browser."
        if published is not None
        else f"[bold]Check what was published:[/] {program} demo {escape(inline(quote(example)))}"
        f"{' --data FILE' if Path(example).suffix else ''} --keep FOLDER runs it again, keeps it all, and says how."
    )
    commands = [(words, said) for words, said in _NEXT if words != f"demo {example}"]
    yield "\n".join(["[bold]Try next:[/]", *(f"  {program} {words:<22} {said}" for words, said in commands)])


_NEXT = (
    ("demo census", "2,000 people, in 3-4 minutes"),
    ("demo sum", "300 people, exact sums"),
    ("demo mooc", "a course, in 6 minutes"),
    ("demo averaging", "parties with many records"),
    ("demo --tor", "through Tor; needs tor"),
    ("study init STUDY.toml", "a study of your own"),
    ("peer open", "the page for a member"),
)


def show(
    console: Console, figures: Mapping[str, Any], report: Path | None, example: str, published: Path | None = None
) -> None:
    """Print the panel. `published`: the folder of a kept study's documents."""
    console.print(closing(figures, report, example, published), highlight=False)
