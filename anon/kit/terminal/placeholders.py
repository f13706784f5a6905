"""The words that stand for what somebody types: the same in help and in messages.

A placeholder is one of `MEANING`, in capitals and without brackets, and may carry the ending of a file's name. Two
are joined by an equals sign.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from typer.main import get_command, get_group

MEANING = {
    "ADDRESS": "a host and a port, or an onion address",
    "COLUMN": "a column of a table",
    "DATABASE": "a database on a server, such as postgresql+asyncpg://USER@HOST/NAME",
    "DURATION": "a length of time, such as 30m, 4h or 2d",
    "EPSILON": "an amount of privacy",
    "FILE": "a file, by its path",
    "FOLDER": "a folder, by its path",
    "HOST": "a machine, by its number or name",
    "HOW": "a way of writing",
    "INPUTS": "inputs of a mechanism that is audited",
    "JOB": "a federated job's id or its beginning",
    "KEY": "a key, as hexadecimal digits",
    "LANGUAGE": "a language's code, such as de",
    "LINK": "an invite link",
    "MODEL": "a published model: a link to its study, a file, or a study's id",
    "N": "a whole number",
    "NAME": "a name that you choose",
    "PACKAGE": "a package, as pip names it",
    "PLACE": "where to compute: a number of processes, or a cluster's address",
    "PORT": "a port of this machine",
    "PROGRAM": "a program with its arguments",
    "ROUTE": "a way to the aggregator",
    "SECONDS": "a number of seconds",
    "SHARE": "a number between 0 and 1",
    "STUDY": "a study's id or its beginning; with an ending, a study file",
    "TABLE": "one of your tables",
    "VALUE": "a value of a column",
    "VERSION": "a version of Python, or the path of one",
    "WHICH": "one of the words that the help names",
}

_OF_TEXT = {
    "address": "ADDRESS",
    "column": "NAME=COLUMN",
    "command": "PROGRAM",
    "compute": "PLACE",
    "database": "DATABASE",
    "domain": "INPUTS",
    "duration": "DURATION",
    "example": "WHICH",
    "host": "HOST",
    "invite": "LINK",
    "job": "JOB",
    "key": "KEY",
    "keys": "KEY",
    "label": "COLUMN",
    "language": "LANGUAGE",
    "link": "LINK",
    "links": "LINK",
    "minimum_window": "DURATION",
    "name": "NAME",
    "neighbours": "WHICH",
    "numbers": "COLUMN=HOW",
    "pair": "INPUTS",
    "person": "COLUMN",
    "positive": "VALUE",
    "python": "VERSION",
    "requirement": "PACKAGE",
    "revoke": "NAME",
    "route": "ROUTE",
    "source": "MODEL",
    "study": "STUDY",
    "table": "TABLE",
    "target": "FILE.py",
    "which": "WHICH",
}
_OF_PATHS = {"directory": "FOLDER", "folder": "FOLDER", "home": "FOLDER", "keep": "FOLDER", "study": "STUDY.toml"}
_OF_WHOLE = {"desk_port": "PORT", "port": "PORT", "as_of": "SECONDS"}
_OF_NUMBERS = {
    "delta": "SHARE", "error": "SHARE", "max_seconds": "SECONDS", "seconds": "SECONDS", "test_share": "SHARE"
}  # fmt: skip
_BY_TYPE: dict[str, tuple[dict[str, str], str | None]] = {
    "str": (_OF_TEXT, None),
    "text": (_OF_TEXT, None),
    "path": (_OF_PATHS, "FILE"),
    "int": (_OF_WHOLE, "N"),
    "integer": (_OF_WHOLE, "N"),
    "float": (_OF_NUMBERS, "EPSILON"),
    "choice": ({}, "WHICH"),
}
"""By the first word of a type's name, which differs between versions of typer."""


def placed(app: Any, wanted: str = "") -> Any:
    """A typer application as the command that click runs, with a placeholder for each value that it takes.

    `wanted`: the one command of a group that is run; the parameters of the others are not read then.
    """
    alone = [command for command in app.registered_commands if name_of(command) == wanted]
    command: Any
    if alone and len(app.registered_commands) > 1:
        app = copy(app)
        app.registered_commands = alone
        command = get_group(app)
    else:
        command = get_command(app)
    for below in _all(command):
        for param in below.params:
            of_names, otherwise = _BY_TYPE.get(param.type.name.partition(" ")[0], ({}, None))
            param.metavar = param.metavar or of_names.get(param.name, otherwise)
            if param.param_type_name == "argument":
                _alone(param)
    return command


def name_of(registered: Any) -> str:
    """The name of a command that an application has, as it is typed."""
    return str(registered.name or registered.callback.__name__.replace("_", "-"))


def _alone(argument: Any) -> None:
    """The placeholder of an argument without braces around it and without its type beside it."""
    word = f"{argument.metavar}..." if argument.nargs != 1 else argument.metavar
    shown = word if argument.required else f"[{word}]"
    argument.make_metavar = lambda ctx=None, usage=False: shown if usage else word
    argument.type = copy(argument.type)
    argument.type.get_metavar = lambda **_: ""


def _all(command: Any) -> list[Any]:
    inner = getattr(command, "commands", {}).values()
    return [command, *(below for child in inner for below in _all(child))]
