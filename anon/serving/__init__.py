"""Services that others reach: an HTTP server that says nothing of itself, and the onion service before it."""
