"""The commands `anonml aggregator ...`, `anonml study ...` and `anonml simulate`."""
