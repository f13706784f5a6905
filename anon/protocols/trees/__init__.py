"""A private decision tree of one member's records, and rows drawn from many members' trees: arithmetic alone.

It follows Fioretto and Van Hentenryck, "Privacy-Preserving Federated Data Sharing" (AAMAS 2019), as printed and
repaired. `docs/errata.md` lists the repairs. No study runs it yet. A member's whole answer is one text of a fixed size.
"""
