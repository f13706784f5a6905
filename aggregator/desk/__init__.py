"""The staff's desk: a dashboard on a loopback port of its own. It shows studies, never who sent what."""
