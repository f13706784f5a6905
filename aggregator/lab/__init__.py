"""Simulation, planning and forecasts: no peer is ever asked here.

`simulation` runs a study on people of a file; `planning` compares designs on made-up people.
"""
