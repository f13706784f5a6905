"""The peer's rules: no waiting, no input and no output.

`consent` is the owner's sheet, and `promise` its sentences of protection. `ledger` keeps every budget, the local one
and those of exact sums; `limits` says how much of each. `checks` and `tellers` decide before anything leaves.
`schedule` draws times, and `lifecycle` is the table of a study's states.
"""
