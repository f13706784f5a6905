"""The owner's page: everything of the peer in a browser, served on this machine's loopback only."""
