"""The peer's home, its transactions, its outbox and its backup."""
