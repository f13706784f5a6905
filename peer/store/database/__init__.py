"""The SQLite file below the store: its schema and migrations, its transactions, and a digest of its integrity."""
