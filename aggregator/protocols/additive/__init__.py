"""The additive learner, its test against noise and its report: what every protocol of tables learns by.

It knows noisy tables and moments, and no protocol: the histogram's reports and the tellers' sums are read elsewhere.
"""
