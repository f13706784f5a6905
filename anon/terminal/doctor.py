"""`anonml doctor`: look at this installation and say one next action per fault."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import typer
from rich.text import Text

from anon.diagnosis import CHECKS, Check
from anon.terminal.foreign import inline
from anon.terminal.options import JsonOption, print_json
from anon.terminal.printing import Terminal, styled

TELLERS = "    a teller's home, disk and address are looked at by `anonml teller doctor`"
app = typer.Typer(add_completion=False, help="Look at this installation and say what to do next.")


@app.command()
def main(as_json: JsonOption = False) -> None:
    """Exit code 1 when something a peer needs does not work."""
    try:
        show([check() for check in CHECKS], as_json)
    finally:
        if not as_json and find_spec("anon.teller.cli"):  # a program packed for peers has no tellers
            Terminal().print(TELLERS, soft_wrap=True)


def show(findings: Sequence[Check], as_json: bool) -> None:
    """Print each with its next action. Raises `typer.Exit` with 1 where something needed is wrong."""
    if as_json:
        print_json([{"name": finding.name, "ok": finding.ok, "action": finding.action} for finding in findings])
    else:
        for finding in findings:
            line = finding.name if finding.ok else f"{finding.name}: {_of_tor(finding)}{finding.action}"
            Terminal().print(_marked(finding, inline(line)), soft_wrap=True)
    if not all(needed.ok for needed in findings if needed.needed):
        raise typer.Exit(1)


def _of_tor(finding: Check) -> str:
    if finding.name != "tor":
        return ""
    return "a study on this machine alone (--loopback) needs none; for people elsewhere: "


def _marked(finding: Check, line: str) -> Text | str:
    if finding.ok:
        return styled("[green]ok[/]  {line}", line=line)
    return styled("[red]no[/]  {line}", line=line) if finding.needed else f"no  {line}"
