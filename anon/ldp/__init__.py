"""Local differential privacy: mechanisms that know their own loss, and what several of them cost together."""
