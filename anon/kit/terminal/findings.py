"""The findings of a diagnosis in lines, or for programs."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.text import Text

from anon.kit.diagnosis.checks import Check
from anon.kit.terminal.foreign import inline
from anon.kit.terminal.options import print_json
from anon.kit.terminal.printing import Terminal, styled


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
