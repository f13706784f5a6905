"""Exact sums that no single server sees into: the part of them that everybody may know.

Read `arrangement` (who the tellers are, and which sums they add up), `sealed_shares` (a peer's vector for its tellers),
`statements` (what tellers sign), `exchange` (the wire between aggregator and teller), `combine` (the sums, from public
documents alone). A teller's own state is in `anon.teller`, which peers and aggregators do not import.
"""
