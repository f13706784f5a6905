"""Backup and restore of a home in one file, and what a restored store must forget."""
