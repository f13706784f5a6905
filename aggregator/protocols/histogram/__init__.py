"""The histogram protocol's aggregator part: counting, reconstruction, classifiers, scores and tests against noise.

Read in this order: `part` -> `cohorts` -> `ensemble` (votes and soft tables) or `additive_model`.
"""
