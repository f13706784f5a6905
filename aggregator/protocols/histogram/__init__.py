"""The histogram protocol's aggregator part: counting, learning from cohorts, votes and soft tables.

Read in this order: `part`, `cohorts`, then `aggregator.protocols.additive.reconstruct` (unbiased shares of counts), and
`ensemble` (votes and soft tables) or `aggregator.protocols.additive.learner`.
"""
