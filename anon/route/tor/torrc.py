"""The lines of a torrc. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from anon.errors import Refused

# The lines that an owner may add. A list of what is allowed, since tor takes any unambiguous beginning of an option's
# name, and a list of what is forbidden would have to know them all. Names in lower case.
_ALLOWED = """address alternatedirauthority assumereachable avoiddiskwrites bandwidthburst bandwidthrate bridge
    circuitbuildtimeout circuitpadding circuitstreamtimeout clientbootstrapconsensusauthoritydownloadinitialdelay
    clientbootstrapconsensusauthorityonlydownloadinitialdelay clientbootstrapconsensusfallbackdownloadinitialdelay
    clientbootstrapconsensusmaxinprogresstries clientpreferipv6orport clienttransportplugin clientuseipv4 clientuseipv6
    connectionpadding dirauthority dormantclienttimeout downloadextrainfo entrynodes enforcedistinctsubnets
    excludenodes fallbackdir fascistfirewall fetchdirinfoearly fetchdirinfoextraearly firewallports geoipfile
    geoipv6file httpsproxy httpsproxyauthenticator keepaliveperiod learncircuitbuildtimeout maxcircuitdirtiness
    maxclientcircuitspending maxmeminqueues newcircuitperiod numcpus numdirectoryguards numentryguards
    numprimaryguards outboundbindaddress outboundbindaddressor pathbiascircthreshold pathsneededtobuildcircuits
    protocolwarnings reachableaddresses reachableaddressesdir reachableaddressesor reducedcircuitpadding
    reducedconnectionpadding sandbox shutdownwaitlength socks4proxy socks5proxy socks5proxypassword
    socks5proxyusername sockstimeout strictnodes tcpproxy updatebridgesfromauthority usebridges usedefaultfallbackdirs
    useentryguards vanguardsliteenabled"""
_TESTING = "testing"  # options of private networks; tor refuses them outside of one
_LINE = re.compile(r"([A-Za-z0-9]+)[ \t]+\S.*\Z")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")


def torrc_of_client(data: Path, extra: Sequence[str]) -> str:
    """The torrc of a private client that carries onion traffic only, with the owner's checked lines last.

    It listens on one SOCKS port of this machine, whose user and password decide the circuit. It has no control port on
    the network, resolves nothing for anybody, and relays nothing. It writes no log to a file. Raises `Refused` for a
    path that a torrc cannot hold.
    """
    return "\n".join(
        (
            f"DataDirectory {quoted_path(data)}",
            "SocksPort 127.0.0.1:auto OnionTrafficOnly IsolateSOCKSAuth ExtendedErrors",
            "SafeSocks 1",
            "ClientOnly 1",
            "MaxCircuitDirtiness 10",  # every circuit carries one exchange; let go of it soon after
            *quiet_lines(),
            *extra,
            "",
        )
    )


def quiet_lines() -> tuple[str, ...]:
    """The settings of every tor of ours: notices on standard output only, nothing of them on the disk, few writes."""
    return ("Log notice stdout", "SafeLogging 1", "AvoidDiskWrites 1", "GeoIPFile /dev/null", "GeoIPv6File /dev/null")


def owned_lines(control: Path, cookie: Path, owner: int, sockets: bool = True) -> tuple[str, ...]:
    """A control socket for its owner alone (a file, in a folder of mode 0700), and tor's end with its owner's (a
    process id). Without unix sockets (Windows) the file names a port of this machine; the cookie guards both."""
    here = ("ControlPort 0", f"ControlSocket {quoted_path(control)}")
    port = ("ControlPort 127.0.0.1:auto", f"ControlPortWriteToFile {quoted_path(control)}")
    return (
        *(here if sockets else port),
        "CookieAuthentication 1",
        f"CookieAuthFile {quoted_path(cookie)}",
        f"__OwningControllerProcess {owner}",
        "__ReloadTorrcOnSIGHUP 0",  # it came on standard input, where it cannot be read a second time
    )


def quoted_path(path: Path) -> str:
    """A path as a torrc value. Raises `Refused` for one with control characters or a quote."""
    text = path.as_posix()  # on Windows tor takes slashes too, and a backslash begins an escape
    if _UNSAFE.search(text) or '"' in text or "\\" in text:
        raise Refused(
            "tor: the data directory's path holds a quote, a backslash or a control character; choose another --home"
        )
    return f'"{text}"' if " " in text or "#" in text else text


def checked_extra(text: str, name: str = "ANONML_TORRC") -> tuple[str, ...]:
    """The lines of an owner's file: bridges, transports, proxies, private networks; comments and blanks dropped.

    Raises `Refused`, naming line and option but no value, for an option that could undo what `torrc_of_client` promises
    (another port, service, folder or log) or that is not known here.
    """
    found = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None or _UNSAFE.sub("", line.replace("\t", " ")) != line.replace("\t", " ") or line.endswith("\\"):
            raise Refused(f"{name}, line {number}: expected an option and its value on one line; correct it")
        option = match[1].lower()
        if option not in _ALLOWED.split() and not option.startswith(_TESTING):
            raise Refused(
                f"{name}, line {number}: {match[1][:40]} may not be set, since ports, services, folders and logs are "
                "AnonML's; remove the line (bridges, transports, proxies and private networks may be set)"
            )
        found.append(line)
    return tuple(found)
