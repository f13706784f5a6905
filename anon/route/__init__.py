"""How bytes travel: directly or by any SOCKS5 proxy (`direct_and_socks`), and through `tor`, a folder of its own.

Each exchange is a fresh connection. `exchange` gives each a SOCKS user of its own, and so a Tor circuit of its own.
"""

from anon.route.direct_and_socks import DirectRoute, SocksRoute
from anon.route.far_side import FarSide
from anon.route.route import Response, Route, Starting

__all__ = ["DirectRoute", "FarSide", "Response", "Route", "SocksRoute", "Starting"]
