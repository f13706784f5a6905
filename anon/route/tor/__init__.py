"""Tor as a part that we own: found, started, followed, asked and stopped here (docs/decisions/0010)."""

from anon.route.tor.bootstrap import Bootstrap, BootstrapPhase, Trouble
from anon.route.tor.control import Controller, Events, Onion
from anon.route.tor.process import TorProcess
from anon.route.tor.program import extra_lines, find_tor
from anon.route.tor.replies import TorEvent, TorReply
from anon.route.tor.route import TorRoute, checked_onion
from anon.route.tor.shared_client import TorKeeper
from anon.route.tor.torrc import quiet_lines, torrc_of_client

__all__ = [
    "Bootstrap",
    "BootstrapPhase",
    "Controller",
    "Events",
    "Onion",
    "TorEvent",
    "TorKeeper",
    "TorProcess",
    "TorReply",
    "TorRoute",
    "Trouble",
    "checked_onion",
    "extra_lines",
    "find_tor",
    "quiet_lines",
    "torrc_of_client",
]
