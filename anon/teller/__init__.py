"""The third role, beside peer and aggregator: a teller adds up shares of vectors, and its noise.

Two to four tellers, run by different people, serve a study. Read `rules` (the numbered decisions, on bytes), `journal`
(what survives a crash, written before anything leaves), `session` (the two together: it signs every list and
statement), `calls` (who may ask for what), `service` (over HTTP) and `cli`. Peers and
aggregators import nothing of this room; what they know of tellers is in `anon.sharing`.
"""
