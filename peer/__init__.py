"""The peer: keeps its owner's data, asks its owner, and lets only perturbed, sealed packets leave."""
