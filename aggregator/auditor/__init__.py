"""A shell that tests a mechanism, as a black box, against the epsilon and delta that it claims.

`claim` turns counts into a lower bound of epsilon, and `search` decides. `readings` sees numbers in any output, `table`
in many at once, `events` learns from them. `boxes` runs the mechanism, and `page` tells what was found.
"""
