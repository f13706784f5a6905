"""Cryptography that a library does: the curve, NaCl and sealing, each native or by its twin in `pure`.

`backend` decides which. `labels` is the table of all domain separation.
"""
