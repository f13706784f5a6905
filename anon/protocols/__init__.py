"""Protocols a study can run. Each follows `contract` and is listed in `registry`."""
