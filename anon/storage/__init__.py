"""SQLite files, schema migrations, home folders, private files and crash points."""
