"""The histogram protocol's shared half: designs, slot tables and the draw, binning rules, the total category map."""
