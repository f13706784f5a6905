"""The completion scripts that the program carries, made from its commands: `make completion`.

A shell that starts evaluates a script. To make it anew would import every command each time, which takes seconds.
"""

from __future__ import annotations

from pathlib import Path

from anon.kit.terminal.completion import SHELLS, Node, node_of, script
from anon.kit.terminal.placeholders import placed
from anonml import COMMANDS, COMPLETION, HELP, application

FOLDER = Path(__file__).resolve().parents[1] / "anon" / "kit" / "terminal" / "completions"


def tree() -> Node:
    """All commands, those of parts that are installed apart included."""
    found = {name: node_of(placed(application(name))) for name in COMMANDS}
    top = Node("", ("--help", "--version", "-V"), found)
    found[COMPLETION] = Node("Print a shell's completion script.", (), {shell: Node() for shell in SHELLS})
    found[HELP] = Node("Show what a command is for.", (), {name: _plain(node) for name, node in found.items()})
    return top


def _plain(node: Node) -> Node:
    """A command after `help`: without its options."""
    return Node(node.summary, (), {name: _plain(below) for name, below in node.commands.items()})


def written() -> dict[Path, str]:
    """Each script by its file."""
    return {FOLDER / f"anonml.{shell}": script(shell, tree()) for shell in SHELLS}


if __name__ == "__main__":
    for file, text in written().items():
        file.write_text(text, "utf-8")
