"""The protocol `trees`: a private decision tree of each member's records, and rows drawn from the trees of all.

It follows Fioretto and Van Hentenryck, "Privacy-Preserving Federated Data Sharing" (AAMAS 2019), as printed and
repaired. `docs/errata.md` lists the repairs. A member's whole answer is one text of a fixed size.
"""
