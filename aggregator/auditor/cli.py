"""`anonml audit mechanism`: a mechanism as a black box, tested against the epsilon that it claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anon.errors import Refused
from anon.kit.terminal.foreign import inline
from anon.kit.terminal.options import JsonOption, print_json
from anon.kit.terminal.printing import Terminal

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Test a mechanism, as a black box, against the epsilon it claims."
)
COMMAND, LINES = "command", "lines"


@app.callback()
def _group() -> None:
    """Keeps `mechanism` a command of its own."""


@app.command()
def mechanism(
    target: Annotated[str, typer.Argument(help="FILE.py, FILE.py:function or module:function.")] = "",
    command: Annotated[
        str, typer.Option("--command", help="In place of a target: a program that reads an input and writes an output.")
    ] = "",
    stays: Annotated[bool, typer.Option("--lines", help="The program answers each line, and is started once.")] = False,
    epsilon: Annotated[float | None, typer.Option(help="The claimed epsilon.")] = None,
    delta: Annotated[float | None, typer.Option(help="The claimed delta; 0 by default.")] = None,
    domain: Annotated[
        str, typer.Option(help="The inputs: 0..1, a|b, '0..9; a|b', '20 * 0..1'; '\"1\"|\"2\"' are texts.")
    ] = "",
    neighbours: Annotated[
        str, typer.Option(help="Which two are neighbours: any (default), one, lacks, within:D.")
    ] = "",
    pair: Annotated[list[str] | None, typer.Option(help="Two neighbours as JSON: '[0, 1]'. Again for more.")] = None,
    requirement: Annotated[
        list[str] | None, typer.Option("--with", help="A package as pip names it, in an environment of its own.")
    ] = None,
    python: Annotated[str, typer.Option(help="The Python of that environment: 3.9, or a path.")] = "",
    runs: Annotated[int, typer.Option(min=200, help="The most runs.")] = 100_000,
    seconds: Annotated[float, typer.Option(min=1, help="The most seconds of processor time.")] = 60,
    error: Annotated[float, typer.Option(min=1e-15, max=0.1, help="Chance of a false alarm, over all tried.")] = 1e-9,
    page: Annotated[Path | None, typer.Option(help="A new file for the finding, in Markdown.")] = None,
    report: Annotated[Path | None, typer.Option(help="A new file for a letter to the mechanism's maintainer.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Search for a proof that a mechanism exceeds its claim. Exit code 1: the claim is broken; 0: not refuted.

    The mechanism runs on this machine with your rights: audit only what you would install.
    """
    import json
    import shlex
    from random import SystemRandom
    from time import process_time

    from numpy.random import SeedSequence, default_rng

    from aggregator.auditor.boxes import ProcessBox
    from aggregator.auditor.environments import interpreter
    from aggregator.auditor.page import AuditPage
    from aggregator.auditor.search import audit_black_box
    from aggregator.auditor.target import read_pairs, read_target

    for file in (page, report):
        if file is not None and file.exists():
            raise Refused(f"{file}: already exists; name a new file")
    said = {
        "epsilon": epsilon, "delta": delta, "domain": domain, "neighbours": neighbours, "python": python,
        "pairs": read_pairs(pair or ()), "requirements": tuple(requirement or ()),
    }  # fmt: skip
    place = (LINES if stays else COMMAND) + ":" + json.dumps(shlex.split(command)) if command else target
    if not place:
        raise Refused("name a target such as FILE.py:function, or a program with --command")
    tested = read_target(place, said)
    claim, tried = tested.claim(), tested.tried(SystemRandom())
    interpreter_path = interpreter(tested.requirements, tested.python, lambda line: typer.echo(line, err=True))
    with ProcessBox(tested.place, tested.function, interpreter_path) as box:
        coins = default_rng(SeedSequence())
        verdict = audit_black_box(box, claim, tried, coins, process_time, runs, seconds, error)
        told, faults = AuditPage(tested, verdict, box.python), box.faults
    if page is not None:
        page.write_text(told.page(), "utf-8")
    if report is not None and verdict.broken:
        report.write_text(told.letter(), "utf-8")
    if as_json:
        print_json(told.json())
    else:
        Terminal().print(inline(verdict.words()), soft_wrap=True)
        if verdict.best is not None:
            Terminal().print(inline(f"  event: {verdict.best.words}"), soft_wrap=True)
            Terminal().print(inline(f"  neighbours, first and second: {verdict.best.pair!r:.300}"), soft_wrap=True)
        for name, given in faults.items():
            said_of = f"  the mechanism raised {name} on the input {given!r:.300}; an exception counts as an output"
            Terminal().print(inline(said_of), soft_wrap=True)
    if verdict.broken:
        raise typer.Exit(1)
