"""How bytes travel: `direct` (loopback and tests), `socks` (any SOCKS5 proxy), and `tor`, in a folder of its own.

Each exchange is a fresh connection.
"""

from anon.route.direct_and_socks import DirectRoute, SocksRoute
from anon.route.far_side import FarSide
from anon.route.route import Response, Route, Starting

__all__ = ["DirectRoute", "FarSide", "Response", "Route", "SocksRoute", "Starting"]
