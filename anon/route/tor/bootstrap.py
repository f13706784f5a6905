"""How a tor comes up, or why it cannot: tables of phases and reasons. Pure; `process` brings the events and the clock.

Tor's own tags and reasons are those of control-spec, section 4.1.10 (STATUS_CLIENT) and 5.5 (bootstrap phases).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from attrs import evolve

from anon.errors import Malformed, Unreachable
from anon.route.tor.replies import arguments
from anon.text.foreign import LONGEST_TOLD, Quoted
from anon.text.sentences import NOTHING, Term, attributed, say
from anon.values import frozen

FAILURES = 3  # connections in a row that found no route, and none that was made: there is no network
SKEW_SECONDS = 3600  # a consensus lives three hours; half an hour off tor only mentions


class BootstrapPhase(Enum):
    """Where tor is; the value is how a person would say it."""

    STARTING = Term("starting")
    CONNECTING = say("connecting to the network")
    HANDSHAKING = say("greeting a relay")
    LOADING = say("loading the directory")
    BUILDING = say("building a circuit")
    DONE = Term("done")


class Trouble(Enum):
    """Why tor does not get on; the value is the reason's name."""

    NONE = "stalled"
    NO_NETWORK = "no-network"
    BLOCKED = "blocked"
    CLOCK_SKEW = "clock-skew"
    NO_TRANSPORT = "no-transport"
    BAD_TORRC = "bad-torrc"
    FOLDER_IN_USE = "folder-in-use"
    TOR_ENDED = "tor-ended"


# Phase of a bootstrap tag ("conn_pt", "conn_done_proxy", "ap_handshake", ...) by its beginning; the first match counts.
PHASES: tuple[tuple[str, BootstrapPhase], ...] = (
    ("starting", BootstrapPhase.STARTING),
    ("conn_done", BootstrapPhase.HANDSHAKING),
    ("conn", BootstrapPhase.CONNECTING),
    ("handshake", BootstrapPhase.HANDSHAKING),
    ("onehop_create", BootstrapPhase.HANDSHAKING),
    ("requesting", BootstrapPhase.LOADING),
    ("loading", BootstrapPhase.LOADING),
    ("enough_dirinfo", BootstrapPhase.LOADING),
    ("ap_", BootstrapPhase.BUILDING),
    ("circuit_create", BootstrapPhase.BUILDING),
    ("done", BootstrapPhase.DONE),
)

# Tor's REASON of a failed connection -> trouble.
REASONS: dict[str, Trouble] = {
    "NOROUTE": Trouble.NO_NETWORK,
    "RESOURCELIMIT": Trouble.NO_NETWORK,
    "CONNECTREFUSED": Trouble.BLOCKED,
    "CONNECTRESET": Trouble.BLOCKED,
    "TIMEOUT": Trouble.BLOCKED,
    "IOERROR": Trouble.BLOCKED,
    "TLS_ERROR": Trouble.BLOCKED,
    "IDENTITY": Trouble.BLOCKED,
    "DONE": Trouble.BLOCKED,  # closed by the other side in the middle of the greeting
    "MISC": Trouble.BLOCKED,
    "PT_MISSING": Trouble.NO_TRANSPORT,
}

_NETWORK = say("look whether this machine is online, then try again")
_BLOCKED = say(
    "if others on this network can use Tor try again later, else set bridges in the file that ANONML_TORRC names",
)
_LATER = say("try again; if it stays so, set bridges in the file that ANONML_TORRC names")
_CLOCK = say("set this machine's clock (date, time and zone), then try again")
_TRANSPORT = say("install the transport that ANONML_TORRC's ClientTransportPlugin names, or correct its path")
_TORRC = say("correct the file that ANONML_TORRC names, or update tor to 0.4.9 or later")
_IN_USE = say("end the other tor that uses this peer's folder, then try again")
_ENDED = say("correct what tor says, then try again")
_BRIDGE = say("ask for another bridge and set it in the file that ANONML_TORRC names")

# (phase, trouble) -> the one next action. A reason that is not listed under its phase stands under None.
ACTIONS: dict[tuple[BootstrapPhase | None, Trouble], str] = {
    (None, Trouble.NO_NETWORK): _NETWORK,
    (None, Trouble.BLOCKED): _BLOCKED,
    (None, Trouble.CLOCK_SKEW): _CLOCK,
    (None, Trouble.NO_TRANSPORT): _TRANSPORT,
    (None, Trouble.BAD_TORRC): _TORRC,
    (None, Trouble.FOLDER_IN_USE): _IN_USE,
    (None, Trouble.TOR_ENDED): _ENDED,
    (BootstrapPhase.STARTING, Trouble.NONE): _NETWORK,
    (BootstrapPhase.CONNECTING, Trouble.NONE): _NETWORK,
    (BootstrapPhase.HANDSHAKING, Trouble.NONE): _BLOCKED,
    (BootstrapPhase.LOADING, Trouble.NONE): _LATER,
    (BootstrapPhase.LOADING, Trouble.BLOCKED): _LATER,
    (BootstrapPhase.BUILDING, Trouble.NONE): _LATER,
    (BootstrapPhase.BUILDING, Trouble.BLOCKED): _LATER,
    (BootstrapPhase.DONE, Trouble.NONE): _LATER,
}

# Lines of tor's log where no event comes (a pattern) -> trouble; the first match counts.
LOGGED: tuple[tuple[str, Trouble], ...] = (
    ("another Tor process is running with the same data directory", Trouble.FOLDER_IN_USE),
    ("Failed to parse/validate config", Trouble.BAD_TORRC),
    ("Reading config failed", Trouble.BAD_TORRC),
    ("Managed proxy .* (terminated|died) ", Trouble.NO_TRANSPORT),  # what else it says of one is ordinary
    ("Could not launch managed proxy executable", Trouble.NO_TRANSPORT),
    ("behind the time published in the consensus", Trouble.CLOCK_SKEW),
    ("Our clock is", Trouble.CLOCK_SKEW),
)
# Seconds without progress in which a settled trouble may still turn out well: a slow link, a relay with a wrong clock.
PATIENCE: dict[Trouble, float] = {
    Trouble.NO_NETWORK: 5.0,
    Trouble.BLOCKED: 10.0,
    Trouble.NO_TRANSPORT: 5.0,
    Trouble.CLOCK_SKEW: 15.0,
}
_FINAL = frozenset((Trouble.BAD_TORRC, Trouble.FOLDER_IN_USE, Trouble.TOR_ENDED))
_LASTING = frozenset((Trouble.CLOCK_SKEW, Trouble.NO_TRANSPORT))  # no amount of trying makes these better


@frozen
class Bootstrap:
    """The known facts of one start. `since` is the time of the last progress, `settled` when tor (or the table) first
    called the trouble lasting; both in seconds of the caller's clock. `progress` in percent."""

    since: float
    phase: BootstrapPhase = BootstrapPhase.STARTING
    progress: int = 0
    trouble: Trouble = Trouble.NONE
    settled: float | None = None
    failures: int = 0
    bridges: bool = False
    said: str = ""

    def heard_status(self, text: str, now: float) -> Bootstrap:
        """After a line such as `WARN BOOTSTRAP PROGRESS=14 TAG=handshake ... REASON=TIMEOUT RECOMMENDATION=warn`, as
        both an event and GETINFO status/bootstrap-phase say it. A line that is not understood changes nothing."""
        try:
            words, pairs = arguments(text)
            progress = int(pairs.get("PROGRESS", self.progress))
            skew = abs(int(pairs.get("SKEW", "0")))
        except (Malformed, ValueError):
            return self
        if "CLOCK_SKEW" in words:
            return self._troubled(Trouble.CLOCK_SKEW, skew >= SKEW_SECONDS, now) if skew >= SKEW_SECONDS else self
        if "BOOTSTRAP" not in words:
            return self
        after = self._progressed(progress, pairs.get("TAG", ""), now)
        trouble = REASONS.get(pairs.get("REASON", ""))
        return after._troubled(trouble, pairs.get("RECOMMENDATION") == "warn", now) if trouble else after

    def heard_connection(self, text: str, now: float) -> Bootstrap:
        """After an ORCONN event, such as `$FINGERPRINT FAILED REASON=NOROUTE`. Where a connection fails before it is
        under way (no route at all) tor reports nothing else."""
        try:
            words, pairs = arguments(text)
        except Malformed:
            return self
        if "CONNECTED" in words:
            online = evolve(self, failures=0)
            return evolve(online, trouble=Trouble.NONE, settled=None) if self.trouble is Trouble.NO_NETWORK else online
        trouble = REASONS.get(pairs.get("REASON", ""))
        if "FAILED" not in words or trouble is None:
            return self
        failures = self.failures + 1
        lasting = trouble is Trouble.NO_NETWORK and failures >= FAILURES
        lasting = lasting or (trouble is self.trouble and self.settled is not None)
        return evolve(self, failures=failures)._troubled(trouble, lasting, now)

    def heard_log(self, line: str, now: float) -> Bootstrap:
        """After a line of tor's log; most change nothing."""
        for pattern, trouble in LOGGED:
            if re.search(pattern, line):
                text = line.partition("] ")[2] or line
                return evolve(self._troubled(trouble, True, now), said=self.said or text[:200])
        return self

    def ended(self, log: Sequence[str]) -> Bootstrap:
        """After tor ended by itself, with the last lines of its log: its own error, or the warning it points to."""
        after = self
        for line in log:
            after = after.heard_log(line, self.since)
        errors = [line.partition("] ")[2] for line in log if "[err]" in line]
        warnings = [line.partition("] ")[2] for line in log if "[warn]" in line and "root" not in line]
        reason = after.said if after.trouble in _FINAL else ""
        reason = reason or (errors[-1] if errors else warnings[-1] if warnings else say("it gave no reason"))
        trouble = after.trouble if after.trouble in _FINAL else Trouble.TOR_ENDED
        return evolve(after, trouble=trouble, said=reason[:200])

    def _progressed(self, progress: int, tag: str, now: float) -> Bootstrap:
        phase = next((phase for start, phase in PHASES if tag.startswith(start)), self.phase)
        if progress <= self.progress:
            return self if progress < self.progress else evolve(self, phase=phase)
        lasting = self.trouble in _LASTING
        trouble = self.trouble if lasting else Trouble.NONE
        return evolve(
            self, phase=phase, progress=progress, since=now, trouble=trouble, settled=self.settled if lasting else None
        )

    def _troubled(self, trouble: Trouble, settled: bool, now: float) -> Bootstrap:
        if self.trouble in _FINAL or (self.trouble in _LASTING and trouble not in _LASTING | _FINAL):
            return self  # a cause explains what follows from it, not the other way round
        since = self.settled if self.trouble is trouble else None
        return evolve(self, trouble=trouble, settled=since if since is not None else now if settled else None)

    @property
    def done(self) -> bool:
        """True if circuits can be built."""
        return self.progress >= 100

    def hopeless(self, now: float) -> bool:
        """True if waiting longer would not help: a final trouble, or a lasting one and no progress since."""
        if self.trouble in _FINAL:
            return True
        if self.settled is None:
            return False
        return now - max(self.settled, self.since) >= PATIENCE[self.trouble]

    def failure(self) -> Unreachable:
        """Phase, reason and one next action."""
        reason, action = self.trouble.value, ACTIONS.get((self.phase, self.trouble)) or ACTIONS[None, self.trouble]
        first = self.phase in (BootstrapPhase.CONNECTING, BootstrapPhase.HANDSHAKING)
        if self.trouble is Trouble.BLOCKED and self.bridges and first:
            reason, action = "bridge-refused", _BRIDGE
        said = Quoted(self.said.rstrip("."), LONGEST_TOLD)
        quoted = say(" (tor says: {value})", value=said) if self.said else NOTHING
        return Unreachable(
            say(
                "tor could not start: {reason} while {value} ({progress} %){quoted}; nothing is lost, {action}",
                reason=Term(reason),
                value=self.phase.value,
                progress=self.progress,
                quoted=quoted,
                action=attributed(action),
            )
        )
