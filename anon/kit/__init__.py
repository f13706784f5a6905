"""The kit that shells are built of: terminal, page, diagnosis, and a private network to try them on."""
