"""The histogram protocol's aggregator part: counting, learning from cohorts, votes and soft tables.

Read in this order: `part` -> `cohorts` -> `ensemble` (votes and soft tables) or `aggregator.protocols.additive`.
"""
