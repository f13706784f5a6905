"""Shell completion as a script that needs no Python while somebody types: the whole command tree is written into it.

`completion` of `anonml.py` gives it that tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from attrs import field

from anon.errors import Refused
from anon.values import frozen

SHELLS = ("bash", "zsh", "fish")
_ZSH = """#compdef anonml
(( $+functions[compdef] )) || { autoload -U compinit && compinit -i }
autoload -U +X bashcompinit && bashcompinit
"""
"""`bashcompinit` calls what `compinit` defines, which a new shell without settings of its own has not run."""


@frozen
class Node:
    """A command: what it is for, its options and its commands."""

    summary: str = ""
    options: tuple[str, ...] = ()
    commands: Mapping[str, Node] = field(factory=dict)


def node_of(command: Any) -> Node:
    """The tree of a typer command or group (`typer.main.get_command`)."""
    options = [
        name for param in command.params for name in (*param.opts, *param.secondary_opts) if name.startswith("-")
    ]
    shown = sorted({*options, "--help"} - {"--install-completion", "--show-completion"})
    inner = getattr(command, "commands", {})
    commands = {name: node_of(subcommand) for name, subcommand in sorted(inner.items()) if not subcommand.hidden}
    summary = (command.help or "").strip().partition("\n")[0]
    return Node(summary, tuple(shown), commands)


def plain(node: Node) -> Node:
    """A command after `help`: without its options."""
    return Node(node.summary, (), {name: plain(below) for name, below in node.commands.items()})


def script(shell: str, root: Node) -> str:
    """The script for `eval` or a completions folder. Raises `Refused` for another shell."""
    if shell == "fish":
        return _fish(root)
    if shell not in SHELLS:
        raise Refused(f"{shell}: expected one of {', '.join(SHELLS)}")
    return _ZSH + _bash(root) if shell == "zsh" else _bash(root)


def _places(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    yield path, node
    for name, command in node.commands.items():
        yield from _places(command, f"{path} {name}")


def _bash(root: Node) -> str:
    places = list(_places(root))
    known = "|".join(quote(path) for path, _ in places if path)
    lines = [
        "_anonml() {",
        '    local cur="${COMP_WORDS[COMP_CWORD]}" path="" word commands="" options=""',
        '    for word in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do',
        f'        case "$path $word" in {known}) path="$path $word" ;; esac',
        "    done",
        '    case "$path" in',
    ]
    for path, node in places:
        commands, options = " ".join(node.commands), " ".join(node.options)
        lines.append(f'        {quote(path)}) commands="{commands}"; options="{options}" ;;')
    lines += [
        "    esac",
        '    if [[ "$cur" == -* || -z "$commands" && -z "$cur" ]]; then commands="$options"; fi',
        '    COMPREPLY=($(compgen -W "$commands" -- "$cur"))',
        "}",
        "complete -o default -F _anonml anonml",
    ]
    return "\n".join(lines) + "\n"


def _fish(root: Node) -> str:
    places = list(_places(root))
    known = " ".join(quote(path) for path, _ in places if path)
    lines = [
        "function __anonml_at",
        "    set -l path ''",
        "    for word in (commandline -opc)[2..-1]",
        "        switch \"$path $word\"",
        f"            case {known}",
        "                set path \"$path $word\"",
        "        end",
        "    end",
        '    test "$path" = "$argv[1]"',
        "end",
    ]
    for path, node in places:
        at = f"-n {quote('__anonml_at ' + quote(path))}"
        for name, command in node.commands.items():
            lines.append(f"complete -c anonml -f {at} -a {quote(name)} -d {quote(command.summary)}")
        lines += [f"complete -c anonml {at} -l {option[2:]}" for option in node.options if option.startswith("--")]
    return "\n".join(lines) + "\n"
