"""The peer's side of the network.

`client` draws one of an aggregator's addresses for each exchange. `routes` leads there, through Tor or directly.
`seen_chains` are the heads that were seen.
"""
