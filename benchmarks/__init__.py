"""Speed and utility, measured; outside the packages that are installed."""
