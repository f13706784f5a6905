"""The machine that a program of ours runs on: its environment, its optional parts, its clock and its outages."""
