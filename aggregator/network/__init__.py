"""The HTTP service and the onion service."""
