"""Checks of an installation, with one next action per fault."""
