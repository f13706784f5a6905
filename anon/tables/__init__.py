"""Delimited text read into typed columns."""
