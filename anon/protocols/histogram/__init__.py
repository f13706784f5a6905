"""The histogram protocol's shared part: designs, slot tables, binning rules, the words of consent and the model."""
