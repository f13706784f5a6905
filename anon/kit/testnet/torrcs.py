"""The configuration of every tor of a private network, as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from anon.kit.testnet.layout import NetworkLayout, Relay
from anon.kit.testnet.timing import Votes
from anon.route.tor.torrc import quiet_lines, quoted_path

ROUND = 1800
"""Seconds between votes once the network stands. A long round keeps hidden-service periods long and memory low."""


def joining(layout: NetworkLayout, identity: str, fingerprint: str) -> tuple[str, ...]:
    """The lines that any tor needs to belong to this network: clients, services and relays alike.

    `identity` is the fingerprint of the authority's v3 identity key, `fingerprint` that of its relay.
    """
    named = f"{layout.authority.name} orport={layout.authority.or_port} v3ident={identity}"
    return (
        "TestingTorNetwork 1",
        f"DirAuthority {named} {layout.address}:{layout.dir_port} {fingerprint}",
        "PathsNeededToBuildCircuits 0.67",
        "ShutdownWaitLength 0",
        "NumCPUs 1",
    )


def relay_torrc(relay: Relay, joined: Sequence[str]) -> str:
    """A relay that carries circuits inside and nothing out."""
    return _text(*_relay_lines(relay), *joined)


def authority_torrc(layout: NetworkLayout, joined: Sequence[str], votes: Votes) -> str:
    """The authority: a relay that also decides, by itself, who is a relay."""
    return _text(
        *_relay_lines(layout.authority),
        *joined,
        f"DirPort {layout.address}:{layout.dir_port}",
        "AuthoritativeDirectory 1",
        "V3AuthoritativeDirectory 1",
        "ContactInfo private-network@example.org",
        "AuthDirTestReachability 0",
        f"TestingV3AuthInitialVotingInterval {votes.interval}",
        "TestingV3AuthInitialVoteDelay 2",
        "TestingV3AuthInitialDistDelay 2",
        f"TestingV3AuthVotingStartOffset {votes.offset}",
        f"V3AuthVotingInterval {ROUND}",
        "V3AuthVoteDelay 20",
        "V3AuthDistDelay 20",
        "V3AuthNIntervalsValid 2",
        "TestingAuthDirTimeToLearnReachability 0",
        "TestingMinExitFlagThreshold 0",
        "TestingDirAuthVoteGuard *",
        "TestingDirAuthVoteHSDir *",
        "TestingDirAuthVoteExit *",
        "MinUptimeHidServDirectoryV2 0",
    )


def _relay_lines(relay: Relay) -> tuple[str, ...]:
    return (
        f"Nickname {relay.name}",
        f"DataDirectory {quoted_path(relay.data)}",
        f"Address {relay.address}",
        f"ORPort {relay.address}:{relay.or_port}",
        "SocksPort 0",
        "AssumeReachable 1",
        "ExitRelay 0",
        "ExitPolicy reject *:*",
        "DoSCircuitCreationEnabled 0",
        "DoSConnectionEnabled 0",
        *quiet_lines(),
        "__ReloadTorrcOnSIGHUP 0",  # the torrc came on standard input, where it cannot be read a second time
    )


def _text(*lines: str) -> str:
    return "\n".join(lines) + "\n"
