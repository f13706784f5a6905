"""The protocol `oblivious`: the mean of a few parties' models, with the noise of the smallest party, unseen."""
