"""The reference pages of commands, exit codes, study files and outages, from the code that they are about.

    python -m benchmarks.reference           write docs/reference/{commands,exit-codes,study-file,operations}.md

and anon/kit/terminal/helps.json, from which `--help` is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Any

import aggregator.rules.faults
import anon.errors
import peer.rules.checks
import peer.store.manifests
from aggregator.audit import Verdict
from anon.errors import AnonmlError
from anon.kit.terminal.helps import FILE
from anon.kit.terminal.placeholders import placed
from anon.machine.outages import COMMANDS as LONG_LIVED
from anon.machine.outages import TABLE, Outage, OutageCell
from anon.study.schema import DURATION_PATTERN, study_schema
from anonml import COMMANDS, INTERRUPTED, USAGE, application
from examples.protocols import PROTOCOLS

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
_MADE = "<!-- Written by `python -m benchmarks.reference`; do not edit it by hand. -->"


# Commands


def commands() -> str:
    """Every command with its arguments, options and defaults."""
    parts = [_MADE, "# Commands", _ABOUT_COMMANDS]
    for name, (_module, summary) in COMMANDS.items():
        parts += _command(f"anonml {name}", placed(application(name)), summary, 2)
    parts += ["## `anonml completion`", _ABOUT_COMPLETION, "## `anonml help`", _ABOUT_HELP]
    return "\n\n".join(parts) + "\n"


_ABOUT_COMMANDS = """Each command answers `--help` with what stands here. Those that read take `--json`
([keys](../figures.md)). A command ends with one of these [exit codes](exit-codes.md)."""
_ABOUT_HELP = "Show what a command is for: `anonml help peer join`. `anonml -V` tells the version."
_ABOUT_COMPLETION = "Print a script that completes commands in bash, zsh or fish: `anonml completion bash`."


def _command(path: str, command: Any, summary: str, depth: int) -> Iterator[str]:
    """A command's chapter, then those of its commands. Hidden ones are left out."""
    named = [_metavar(param) for param in command.params if param.param_type_name == "argument"]
    yield f"{'#' * min(depth, 4)} `{' '.join([path, *named])}`"
    yield _prose(command.help or summary)
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    if shown:
        yield "\n".join(["| argument or option | meaning | default |", "|---|---|---|", *map(_row, shown)])
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _command(f"{path} {name}", inner, "", depth + 1)


def _metavar(param: Any) -> str:
    name = param.metavar or param.name.upper()
    return (name if param.required else f"[{name}]") + ("..." if param.nargs == -1 else "")


def _row(param: Any) -> str:
    return f"| `{_names(param)}` | {_cell(param.help or '')} | {_default(param)} |"


def _names(param: Any) -> str:
    if param.param_type_name == "argument":
        return _metavar(param)
    names = ", ".join((*param.opts, *param.secondary_opts))
    return names if param.is_flag else f"{names} {param.metavar or _kind(param.type)}"


def _kind(kind: Any) -> str:
    if choices := getattr(kind, "choices", None):
        return "|".join(str(getattr(one, "value", one)) for one in choices).replace("|", r"\|")
    return str(_KINDS.get(kind.name, kind.name))


_KINDS = {"str": "TEXT", "path": "PATH", **dict.fromkeys(("int", "int range", "float", "float range"), "NUMBER")}


def _default(param: Any) -> str:
    if param.required:
        return "needed"
    default = getattr(param.default, "value", param.default)
    if default in (None, "", False, (), []) or callable(default):
        return ""
    if isinstance(default, bool):
        return f"`{param.opts[0]}`"
    return f"`{str(default).replace(str(Path.home()), '~')}`"


def helps() -> str:
    """The same as `--help` shows it (`anon.kit.terminal.helps`)."""
    found = {name: _told(placed(application(name)), summary) for name, (_module, summary) in COMMANDS.items()}
    return json.dumps(found, indent=0, ensure_ascii=False) + "\n"


def _told(command: Any, summary: str = "") -> dict[str, Any]:
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    given = [(_group(param), _names(param), _flat(param.help), _default(param).strip("`")) for param in shown]
    arguments = [_metavar(param) for param in command.params if param.param_type_name == "argument"]
    inner = {name: one for name, one in getattr(command, "commands", {}).items() if not one.hidden}
    return {
        "about": _prose(command.help or summary),
        "usage": ["[OPTIONS]", *arguments, *(["COMMAND [ARGS]..."] if inner else [])],
        "given": [*sorted(given, key=lambda row: row[0] != "Arguments"), ("Options", "--help", "Show this.", "")],
        "panel": getattr(command, "rich_help_panel", None) or "Commands",
        "commands": {name: _told(one) for name, one in inner.items()},
    }


def _group(param: Any) -> str:
    return "Arguments" if param.param_type_name == "argument" else "Options"


# Exit codes


def exit_codes() -> str:
    """Every exit code, from the errors that carry it."""
    rows = sorted({*_FURTHER_CODES, *_codes_of_errors()})
    lines = [f"| {code} | {word and f'`{word}`'} | {_cell(said)} |" for code, word, said in rows]
    table = "\n".join(["| code | word | meaning |", "|---|---|---|", *lines])
    return "\n\n".join([_MADE, "# Exit codes", _ABOUT_CODES, table]) + "\n"


def _codes_of_errors() -> Iterator[tuple[int, str, str]]:
    for module in (anon.errors, peer.rules.checks, peer.store.manifests, aggregator.rules.faults):
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, AnonmlError) and vars(kind).get("code", "error") != "error":
                yield kind.exit_code, kind.code, _flat(cleandoc(kind.__doc__ or "").partition("\n\n")[0])


_FURTHER_CODES = (
    (0, "", "Done."),
    (1, "system", "A fault of the system: a full disk, a port that is taken, a file that cannot be read."),
    (1, "not-installed", "A part that the command needs is not installed. The message says how to install it."),
    (1, "bug", "A fault of the program. The lines above the message say where; no data are in them."),
    (
        Verdict.NOT_ALL_CHECKED.exit_code,
        Verdict.NOT_ALL_CHECKED.word,
        (
            "`anonml aggregator audit` found no fault, and something was not checked: a report in other words, a file "
            "that nobody signed, a round whose packets are not published yet. The lines name it."
        ),
    ),
    (137, "", "SIGKILL, as a shell shows it. Nothing is lost; the next start goes on from there."),
    (USAGE, "usage", "The command line is wrong: a command, an option or a value does not exist."),
    (INTERRUPTED, "stopped", "Ctrl-C. Nothing is lost; the same command goes on from there."),
)
_ABOUT_CODES = """A command that fails says so on standard error, in a message that begins with the word of the second
column. Code 1 without a word is a check that found something, as `anonml doctor`, `anonml audit mechanism`,
`anonml aggregator audit` and `anonml evidence compare` do, or a usage that was explained on the line."""


# Study files


def study_file() -> str:
    """Every key of a study file, from its schema."""
    schema = study_schema(PROTOCOLS.designs)
    parts = [_MADE, "# The study file", _ABOUT_STUDY, "## The file itself", _keys(schema)]
    for section, title in _SECTIONS.items():
        parts += [f"## {title}", _keys(schema["$defs"][section])]
    return "\n\n".join(parts) + "\n"


_ABOUT_STUDY = """`anonml study init` writes a commented example, `anonml study lint` checks a file and says what
it asks and costs, and `anonml study schema` prints the JSON Schema that editors check it by. Unknown keys are refused.
Nothing in a study can change once it is published."""
_SECTIONS: Mapping[str, str] = {
    "Label": "`[label]`",
    "Feature": "`[[features]]`",
    "OnePacket": '`[design]` with `kind = "one-packet"`',
    "Paper": '`[design]` with `kind = "paper"`',
    "TablesSum": '`[design]` with `kind = "tables-sum"`',
    "Marginals": '`[design]` with `kind = "marginals"`',
    "Moments": '`[design]` with `kind = "moments"`',
    "Gradient": '`[design]` with `kind = "gradient"`',
    "CalibratedRule": '`[design]` with `kind = "rule"`',
    "Averaging": '`[design]` with `kind = "averaging"`',
    "Transfer": '`[design]` with `kind = "transfer"`',
    "MaskedMoments": '`[design]` with `kind = "masked-moments"`',
    "MaskedAveraging": '`[design]` with `kind = "masked-averaging"`',
    "MaskedTransfer": '`[design]` with `kind = "masked-transfer"`',
    "ObliviousAveraging": '`[design]` with `kind = "oblivious-averaging"`',
    "GroupAveraging": '`[design]` with `kind = "group-averaging"`',
    "Trees": '`[design]` with `kind = "trees"`',
    "TellerPlace": "`[[tellers]]`",
    "GivenFile": "`[[given]]`",
    "Translation": "`[texts.LANGUAGE]`",
    "Schedule": "`[schedule]`",
    "Cohort": "`[cohort]`",
    "Learning": "`[learning]`",
    "Release": "`[release]`",
    "Cover": "`[cover]`",
}


def _keys(section: Mapping[str, Any]) -> str:
    rows = [
        f"| `{key}` | {_cell(about['description'])} | {_values(about)} | {_given(key, about, section)} |"
        for key, about in section["properties"].items()
    ]
    return "\n".join(["| key | meaning | values | default |", "|---|---|---|---|", *rows])


def _values(about: Mapping[str, Any]) -> str:
    if "const" in about:
        return f"`{_toml(about['const'])}`"
    if "enum" in about:
        return ", ".join(f"`{_toml(one)}`" for one in about["enum"])
    if about.get("pattern") == DURATION_PATTERN:
        return "duration"
    least, above, most = (about.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    if most is not None:
        return f"{least} to {most}" if above is None else f"above {above}, to {most}"
    return str(about.get("type", ""))


def _given(key: str, about: Mapping[str, Any], section: Mapping[str, Any]) -> str:
    if key in section["required"]:
        return "needed"
    return f"`{_toml(about['default'])}`" if "default" in about else ""


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


# Outages


def operations() -> str:
    """The page of operations: its own part, written by hand, and below it the table of outages."""
    by_hand = (FOLDER / "operations.md").read_text("utf-8").partition(_OUTAGES)[0]
    parts = [by_hand + _OUTAGES, _ABOUT_OUTAGES, *map(_outage, Outage)]
    return "\n\n".join(parts) + "\n"


_OUTAGES = "## Outages"
_ABOUT_OUTAGES = """<!-- From here on written by `python -m benchmarks.reference`, from anon/machine/outages.py. -->

No long-lived command ends because a disk, a database or a network is away while it runs: each of its loops is tried
again by itself, and says so. A command that cannot even begin ends at once with its [exit code](exit-codes.md). Each
row was met by the real command (`tests/outages`). `aggregator status`, `teller status` and `peer status` tell a disk
that takes nothing. `peer tray` and `peer window` are as `peer open`."""


def _outage(kind: Outage) -> str:
    rows: dict[OutageCell, list[str]] = {}
    for command in LONG_LIVED:
        if command in TABLE[kind]:
            rows.setdefault(TABLE[kind][command], []).append(f"`{command}`")
    lines = [
        f"| {', '.join(commands)} | {cell.goes_on} | {cell.said and f'“{cell.said}”'} | {_ended(cell)} |"
        for cell, commands in rows.items()
    ]
    head = ["| command | what goes on | what is said | exit code |", "|---|---|---|---|"]
    return "\n".join([f"### {kind.value}", "", *head, *lines])


def _ended(cell: OutageCell) -> str:
    return "goes on" if cell.code is None else str(cell.code)


# Texts


def _flat(text: str | None) -> str:
    return " ".join((text or "").split())


def _prose(text: str) -> str:
    return cleandoc(text.replace("\b", ""))


def _cell(text: str) -> str:
    """A text within a cell of a table."""
    return _flat(text).replace("|", r"\|").replace("<", r"\<")


PAGES = {"commands": commands, "exit-codes": exit_codes, "study-file": study_file, "operations": operations}


def main() -> None:
    """Write the pages anew."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / f"{name}.md").write_text(page(), "utf-8")
    FILE.write_text(helps(), "utf-8")


if __name__ == "__main__":
    main()
