"""Outages of the machine, and how long-lived commands of ours go on through them."""
