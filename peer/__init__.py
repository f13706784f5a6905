"""The peer keeps its owner's data and asks its owner. Perturbed answers or sealed shares of them leave."""
