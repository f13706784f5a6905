"""The aggregator's side of a study's tellers: it relays between them, and learns nothing from them but the noisy sum.

Read `link` (the calls to one teller), then `walk` (the order of the calls), then `publishing` and `study_tellers`,
which take them before a study and after each of its rounds. `job` lets a study wait for its tellers and no other study
with it.
"""
