"""What peers and aggregators share: studies, messages, encodings, mechanisms, credentials and protocols."""
