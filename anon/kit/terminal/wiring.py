"""The parts of other shells that a command was given. No shell imports another: `anonml.py` alone joins them.

A part is named as "module:name" and loaded when it is asked for, so that no command pays for a page that it does
not show. Where a shell is not installed its parts are not given, and the command does without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import typer

from anon.errors import Refused
from anon.values import frozen


@frozen
class Wiring:
    """Parts by the name of the socket that they fit. `commands`: of this program, each the name after `anonml`."""

    parts: Mapping[str, Sequence[str]] = {}
    commands: frozenset[str] = frozenset()

    def all(self, socket: str) -> list[Any]:
        """Every part of a socket, loaded."""
        return [_loaded(part) for part in self.parts.get(socket, ())]

    def one(self, socket: str) -> Any:
        """The one part of a socket, loaded. Raises `Refused` when it was not given."""
        if not self.parts.get(socket):
            raise Refused(f"this installation comes without that part ({socket}); start `anonml`, or install it again")
        return _loaded(self.parts[socket][0])


def wiring_of(context: typer.Context) -> Wiring:
    """The parts that the command was started with; none where it was started by itself."""
    return context.find_object(Wiring) or Wiring()


def _loaded(part: str) -> Any:
    module, _, name = part.partition(":")
    return getattr(import_module(module), name)
