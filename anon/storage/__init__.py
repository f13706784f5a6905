"""SQLite files, schema migrations, home folders, secrets at rest and crash points."""
