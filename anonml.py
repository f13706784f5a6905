"""The command `anonml`: the only module that may reach both the peer's and the aggregator's side."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
