"""What staff and the public read of a study: the report, its charts, its PDF."""
