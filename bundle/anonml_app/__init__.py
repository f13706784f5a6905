"""The program that Briefcase starts."""
