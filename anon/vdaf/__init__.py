"""Exact sums of proven measurements in secret shares: Prio3 of draft-irtf-cfrg-vdaf-20.

Read `prio3` (the messages, and who must be honest), `circuits` (what is proven), `flp` (how), then `xof` and `field`.
"""
