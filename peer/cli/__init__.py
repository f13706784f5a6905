"""The commands `anonml peer ...`."""
