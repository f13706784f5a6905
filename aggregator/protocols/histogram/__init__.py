"""The histogram protocol, aggregator half: accept, reconstruct, partition classifiers, scores, ensemble."""
