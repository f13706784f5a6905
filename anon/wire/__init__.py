"""Bytes that travel: one encoding, every message, every reply word."""
