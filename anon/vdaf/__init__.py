"""Exact sums of proven measurements in secret shares: Prio3 of draft-irtf-cfrg-vdaf-20, in Python alone.

Read `prio3` (the messages, and who must be honest), `circuits` (what is proven), `flp` (how), then `xof` and `field`.
"""
