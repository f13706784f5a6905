"""The aggregator: enrols members, verifies packets, rebuilds histograms, learns and publishes a model."""
