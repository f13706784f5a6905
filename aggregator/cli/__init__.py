"""The commands `anonml aggregator ...` and `anonml study ...`; other shells join theirs to them."""
