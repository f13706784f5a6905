"""The protocol `sum`: exact vectors in shares for the study's tellers, whose noisy sums are published (`anon.sharing`).

Read `design` (what a survey sums, and the form of each design), `arranged` (from a study file to surveys and sums),
`standing` (the gradient's weights from published sums), `describe` (the words), `shared` (the protocol's shared part).
"""
